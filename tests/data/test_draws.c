/* test_draws.c - batches from draws over bytes equal the loader's, and which sets allow it.
 * SPDX-License-Identifier: MIT */
#include "cpu/cpu.h"
#include "data/draws_check.h"
#include "data/loader.h"
#include "graph/guarded.h"
#include "support.h"

static void the_cpu_makes_the_loaders_batches_from_draws(void **state)
{
    (void)state;
    draws_check(cpu_backend(), NULL, 0);
}

static void a_device_whose_memory_is_its_own_makes_them_too(void **state)
{
    (void)state;
    draws_check(guarded_backend(), NULL, 0);
}

/* What changes the size or the colours of an image needs its pixels on the host. */
static void what_resizes_or_recolours_cannot_be_drawn(void **state)
{
    (void)state;
    data_source *small = NULL, *large = NULL;
    assert_ok(data_open(&small, "synthetic", &(data_options){.images = 40, .threads = 1}));
    assert_ok(data_open(&large, "synthetic", &(data_options){.images = 40, .image_size = 48, .threads = 1}));
    loader_options plain = {.batch = 8};
    assert_ok(augment_preset(&plain.augment, "crop-flip", 32));
    assert_true(loader_drawable(small, &plain));
    assert_false(loader_drawable(large, &plain));
    loader_options strong = plain, jitter = plain, resized = plain, margin = plain;
    assert_ok(augment_preset(&strong.augment, "deit", 32));
    jitter.augment.brightness = 0.1;
    resized.augment.crop = CROP_RESIZED;
    margin.augment.crop = CROP_EVAL, margin.augment.crop_pct = 0.9;
    assert_false(loader_drawable(small, &strong));
    assert_false(loader_drawable(small, &jitter));
    assert_false(loader_drawable(small, &resized));
    assert_false(loader_drawable(small, &margin));
    data_close(small);
    data_close(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_makes_the_loaders_batches_from_draws),
        cmocka_unit_test(a_device_whose_memory_is_its_own_makes_them_too),
        cmocka_unit_test(what_resizes_or_recolours_cannot_be_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
