/* test_models_fail.c - models and weights when memory or disk run out. SPDX-License-Identifier:
 * MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "models/models.h"
#include "models/weights.h"
#include "support/fail.h"

#define PATH "test_models_fail.safetensors.tmp"

static void making_a_model_survives_every_failed_allocation(void **state)
{
    (void)state;
    static const char *const names[] = {"vit_micro", "tnt_micro", "convnext_micro"};
    const char *acts[] = {"berlu:learn=alpha+eps"};
    const model_options options = {.acts = acts, .act_count = 1};
    for (size_t i = 0; i < COUNT(names); i++) {
        model *m = NULL;
        berlu_status status = BERLU_OK;
        int n = 1;
        for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = model_create(&m, names[i], &options), fail_hit(); n++) {
            assert_int_equal(status, BERLU_ERR_MEMORY);
            assert_null(m);
        }
        assert_int_equal(status, BERLU_OK);
        assert_true(n > 5); /* there was something to fail */
        model_free(m);
    }
}

static void open_model(model **m, engine **e)
{
    const engine_options how = {.backend = cpu_backend(), .batch = 1};
    *m = NULL, *e = NULL;
    assert_int_equal(model_create(m, "tnt_micro", NULL), BERLU_OK);
    assert_int_equal(engine_create(e, (*m)->graph, &how), BERLU_OK);
}

static void one_parameter(engine *e, float out[48])
{
    assert_int_equal(engine_get(e, ARRAY_WEIGHT, 0, out), BERLU_OK);
}

static void loading_and_saving_survive_every_failed_allocation_and_file_call(void **state)
{
    (void)state;
    model *m;
    engine *e;
    float before[48], after[48];
    berlu_status status = BERLU_OK;
    open_model(&m, &e);
    assert_int_equal(weights_init(e, 1, NULL), BERLU_OK);
    one_parameter(e, before);
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n),
             status = weights_save_in(e, ARRAY_WEIGHT, NULL, PATH, NULL, 0), fail_hit();
         n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    for (int n = 1;
         fail_after(FAIL_WRITE, n), status = weights_save_in(e, ARRAY_WEIGHT, NULL, PATH, NULL, 0), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_IO);
    assert_int_equal(status, BERLU_OK);

    assert_int_equal(weights_init(e, 2, NULL), BERLU_OK);
    one_parameter(e, after);
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_OPEN | FAIL_READ, n), status = weights_load_path(e, PATH), fail_hit();
         n++) {
        float now[48];
        assert_true(status == BERLU_ERR_MEMORY || status == BERLU_ERR_INPUT);
        one_parameter(e, now);
        assert_memory_equal(now, after, sizeof now); /* nothing was set */
    }
    assert_int_equal(status, BERLU_OK);
    one_parameter(e, after);
    assert_memory_equal(after, before, sizeof after);
    engine_free(e);
    model_free(m);
    unlink(PATH);
}

static void drawing_and_filling_survive_every_failed_allocation(void **state)
{
    (void)state;
    model *m;
    engine *e;
    berlu_status status = BERLU_OK;
    open_model(&m, &e);
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = weights_init(e, 1, NULL), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = weights_fill(e), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    engine_free(e);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_a_model_survives_every_failed_allocation),
        cmocka_unit_test(loading_and_saving_survive_every_failed_allocation_and_file_call),
        cmocka_unit_test(drawing_and_filling_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
