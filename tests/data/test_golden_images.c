/* test_golden_images.c - decoding, resizing and pixel operations against Pillow's results.
 * SPDX-License-Identifier: MIT
 *
 * tools/golden_images.py made the images and the checksums. A case is a row of golden.csv; its name
 * says what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "data/augment_plan.h"
#include "data/pixels.h"
#include "data/resize_pass.h"

static const char *golden_path(char out[512], const char *name)
{
    const char *root = getenv("BERLU_SOURCE_DIR");
    snprintf(out, 512, "%s/tests/golden/images/%s", root ? root : ".", name);
    return out;
}

static void image_load(image *out, const char *name)
{
    char path[512], *bytes;
    size_t size;
    assert_int_equal(file_read_all(&bytes, &size, golden_path(path, name), 1 << 20), BERLU_OK);
    berlu_status status = image_decode(out, bytes, size, NULL);
    if (status != BERLU_OK)
        fail_msg("%s: %s", name, berlu_last_error());
    free(bytes);
}

/* Calls `check` for every row whose name begins with `prefix`; at least `least` of them must
 * exist. */
static void rows_check(const char *prefix, int least, void (*make)(image *out, const char *rest))
{
    char path[512], *csv, *rest = NULL;
    size_t size;
    int found = 0;
    assert_int_equal(file_read_all(&csv, &size, golden_path(path, "golden.csv"), 1 << 20), BERLU_OK);
    for (char *line = strtok_r(csv, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[128];
        int width, height;
        unsigned crc;
        if (strncmp(line, prefix, strlen(prefix)) != 0 ||
            sscanf(line, "%127[^,],%d,%d,%x", name, &width, &height, &crc) != 4)
            continue;
        image made = {0};
        make(&made, name + strlen(prefix));
        if (made.width != width || made.height != height ||
            crc32c(0, made.pixels, (size_t)width * (size_t)height * 3) != crc)
            fail_msg("'%s' is not what Pillow makes", name);
        image_free(&made);
        found++;
    }
    free(csv);
    assert_true(found >= least);
}

static void make_decoded(image *out, const char *rest)
{
    image_load(out, rest);
}

static void every_format_decodes_to_pillows_bytes(void **state)
{
    (void)state;
    rows_check("decode ", 20, make_decoded);
}

static const resize_passes *passes;

static void make_resized(image *out, const char *rest)
{
    image in = {0};
    resize_scratch scratch = {0};
    char filter[16];
    int width, height;
    assert_int_equal(sscanf(rest, "%15s %dx%d", filter, &width, &height), 3);
    image_load(&in, "input.png");
    resize_filter f = strcmp(filter, "bicubic") == 0 ? RESIZE_BICUBIC : RESIZE_BILINEAR;
    assert_int_equal(image_resize_by(out, &in, width, height, f, &scratch, passes), BERLU_OK);
    resize_scratch_free(&scratch);
    image_free(&in);
}

static void make_crop_resized(image *out, const char *rest)
{
    image in = {0}, part = {0};
    resize_scratch scratch = {0};
    image_load(&in, "input.png");
    assert_int_equal(image_copy_part(&part, in.pixels, in.width, (image_part){5, 7, 40, 31, 0}), BERLU_OK);
    resize_filter f = strcmp(rest, "bicubic") == 0 ? RESIZE_BICUBIC : RESIZE_BILINEAR;
    assert_int_equal(image_resize_by(out, &part, 48, 48, f, &scratch, passes), BERLU_OK);
    resize_scratch_free(&scratch);
    image_free(&part);
    image_free(&in);
}

static void resizing_equals_pillow_to_the_bit(void **state)
{
    (void)state;
    passes = &resize_passes_plain;
    rows_check("resize ", 14, make_resized);
    rows_check("crop-resize ", 2, make_crop_resized);
#if defined(__x86_64__)
    if (cpu_has(CPU_AVX2)) {
        passes = &resize_passes_avx2;
        rows_check("resize ", 14, make_resized);
        rows_check("crop-resize ", 2, make_crop_resized);
    }
#endif
}

static int op_number(const char *name)
{
    for (int i = 0; i < RANDAUGMENT_OPS; i++)
        if (strcmp(randaugment_names[i], name) == 0)
            return i;
    fail_msg("no operation '%s'", name);
    return -1;
}

static void make_augmented(image *out, const char *rest)
{
    static const double mean[3] = {0.485, 0.456, 0.406}, std[3] = {0.229, 0.224, 0.225};
    augment_plan plan;
    augment_options o = {.image_size = 32};
    data_info info = {0};
    image spare = {0};
    char name[32], sign[2], filter[16] = "bicubic";
    double level;
    assert_true(sscanf(rest, "%31s %lf %1s %15s", name, &level, sign, filter) >= 3);
    assert_int_equal(augment_prepare(&plan, &o, &info, mean, std, 0), BERLU_OK);
    image_load(out, "input.png");
    resize_filter f = strcmp(filter, "bicubic") == 0 ? RESIZE_BICUBIC : RESIZE_BILINEAR;
    assert_int_equal(randaugment_op(op_number(name), level, sign[0] == '-', &plan, f, out, &spare), BERLU_OK);
    image_free(&spare);
}

static void every_randaugment_operation_equals_pillow_to_the_bit(void **state)
{
    (void)state;
    rows_check("op ", 200, make_augmented);
}

static void make_brightness(image *out, const char *rest)
{
    image_load(out, "input.png");
    pixels_brightness(out, (float)atof(rest));
}
static void make_contrast(image *out, const char *rest)
{
    image_load(out, "input.png");
    pixels_contrast(out, (float)atof(rest));
}
static void make_saturation(image *out, const char *rest)
{
    image_load(out, "input.png");
    pixels_saturation(out, (float)atof(rest));
}
static void make_hue(image *out, const char *rest)
{
    image_load(out, "input.png");
    pixels_hue(out, atof(rest));
}

static void colour_jitter_equals_pillow_to_the_bit(void **state)
{
    (void)state;
    rows_check("brightness ", 5, make_brightness);
    rows_check("contrast ", 5, make_contrast);
    rows_check("saturation ", 5, make_saturation);
    rows_check("hue ", 5, make_hue);
}

static void make_flat(image *out, const char *rest)
{
    static const uint8_t colour[3] = {7, 200, 31};
    assert_int_equal(image_reserve(out, 9, 9), BERLU_OK);
    for (int i = 0; i < 9 * 9 * 3; i++)
        out->pixels[i] = colour[i % 3];
    if (strcmp(rest, "equalize") == 0)
        pixels_equalize(out);
    else
        pixels_autocontrast(out);
}

static void an_image_of_one_colour_is_left_alone(void **state)
{
    (void)state;
    rows_check("flat ", 2, make_flat);
}

/* Both passes, both filters, from width x height to to_width x to_height, against the plain
 * loops. */
static void resize_compare(const resize_passes *fast_passes, int width, int height, int to_width, int to_height)
{
    image in = {0}, plain = {0}, fast = {0};
    resize_scratch scratch = {0};
    assert_int_equal(image_reserve(&in, width, height), BERLU_OK);
    for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++)
        in.pixels[i] = (uint8_t)(i * 2654435761u >> 13);
    for (int f = 0; f < 2; f++) {
        resize_filter filter = (resize_filter)f;
        image_resize_by(&plain, &in, to_width, to_height, filter, &scratch, &resize_passes_plain);
        image_resize_by(&fast, &in, to_width, to_height, filter, &scratch, fast_passes);
        assert_memory_equal(plain.pixels, fast.pixels, (size_t)to_width * (size_t)to_height * 3);
    }
    resize_scratch_free(&scratch);
    image_free(&in);
    image_free(&plain);
    image_free(&fast);
}

/* Sizes chosen to meet every tail of the vector loops, and strong shrinking, where a run is longer
 * than a row's rest. */
static void the_vector_loops_of_resizing_equal_the_plain_ones_at_every_width(void **state)
{
    (void)state;
#if defined(__x86_64__)
    const struct {
        const resize_passes *passes;
        int usable;
    } loops[] = {{&resize_passes_avx2, cpu_has(CPU_AVX2)},
                 {&resize_passes_vnni, cpu_has(CPU_AVX512) && __builtin_cpu_supports("avx512vnni")}};
    for (size_t i = 0; i < 2; i++) {
        if (!loops[i].usable)
            continue;
        for (int width = 1; width < 40; width++)
            for (int to = 1; to < 40; to += 3)
                resize_compare(loops[i].passes, width, 41 - width, to, 40 - to);
        resize_compare(loops[i].passes, 500, 375, 224, 224);
        resize_compare(loops[i].passes, 1021, 37, 7, 5);
        resize_compare(loops[i].passes, 37, 1021, 3, 11);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_decodes_to_pillows_bytes),
        cmocka_unit_test(resizing_equals_pillow_to_the_bit),
        cmocka_unit_test(every_randaugment_operation_equals_pillow_to_the_bit),
        cmocka_unit_test(colour_jitter_equals_pillow_to_the_bit),
        cmocka_unit_test(an_image_of_one_colour_is_left_alone),
        cmocka_unit_test(the_vector_loops_of_resizing_equal_the_plain_ones_at_every_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
