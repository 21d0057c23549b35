/* test_image.c - images that are broken, absurd, wanted in part, scaled or as numbers.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "data/levels.h"
#include "support.h"

static const char *golden(char out[512], const char *name)
{
    const char *root = getenv("BERLU_SOURCE_DIR");
    snprintf(out, 512, "%s/tests/golden/images/%s", root ? root : ".", name);
    return out;
}

/* Cut at every length: an error each time, never a grey rest. JPEG: the end marker itself may be
 * missing in part. */
static void an_image_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"rgb420.jpg", "progressive.jpg", "grey.jpg",           "cmyk.jpg",
                                        "rgb8.png",   "palette4.png",    "rgb8_interlaced.png"};
    for (size_t n = 0; n < COUNT(names); n++) {
        char path[512], *bytes;
        size_t size;
        image out = {0};
        assert_ok(file_read_all(&bytes, &size, golden(path, names[n]), 1 << 20));
        size_t tail =
            strstr(names[n], ".png") ? 16 : 2; /* Pillow, too, reads a PNG without its IEND and last checksum */
        for (size_t cut = 0; cut < size - tail; cut += 1 + cut / 50) {
            unsigned char *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees one byte too far */
            memcpy(exact, bytes, cut);
            if (image_decode(&out, exact, cut, NULL) != BERLU_ERR_INPUT)
                fail_msg("%s cut to %zu of %zu bytes was taken", names[n], cut, size);
            free(exact);
        }
        char *longer = calloc(1, size + 100); /* but garbage behind the image is fine */
        memcpy(longer, bytes, size);
        assert_ok(image_decode(&out, longer, size + 100, NULL));
        free(longer);
        free(bytes);
        image_free(&out);
    }
}

static void images_of_absurd_size_are_refused_before_memory_is_asked_for(void **state)
{
    (void)state;
    char path[512], *bytes;
    size_t size;
    image out = {0};
    assert_ok(file_read_all(&bytes, &size, golden(path, "rgb420.jpg"), 1 << 20));
    for (size_t i = 0; i + 9 < size; i++) /* the frame header: FF C0, length, precision, height, width */
        if ((unsigned char)bytes[i] == 0xff && (unsigned char)bytes[i + 1] == 0xc0) {
            memset(bytes + i + 5, 0xff, 4);
            break;
        }
    assert_refused(image_decode(&out, bytes, size, NULL), BERLU_ERR_INPUT, "");
    free(bytes);
    unsigned char huge[] = {0x89, 'P',  'N',  'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I',  'H',  'D',  'R', 0,
                            0,    0xff, 0xff, 0,   0,    0xff, 0xff, 8,    2, 0, 0, 0,  0x3b, 0xf0, 0xe0, 0x85};
    assert_int_equal(image_decode(&out, huge, sizeof huge, NULL), BERLU_ERR_INPUT);
    assert_int_equal(out.capacity, 0);
    assert_refused(image_check_size(65535, 65535), BERLU_ERR_INPUT, "over the limit");
    assert_refused(image_check_size(70000, 1), BERLU_ERR_INPUT, "over the limit");
    assert_refused(image_check_size(0, 5), BERLU_ERR_INPUT, "no pixels");
    assert_refused(image_decode(&out, "", 0, NULL), BERLU_ERR_INPUT, "empty");
    assert_refused(image_decode(&out, "GIF89a", 6, NULL), BERLU_ERR_INPUT, "neither a JPEG nor a PNG");
}

/* ---- parts and scales ------------------------------------------------------------------------ */

static void choose_part(void *context, int width, int height, image_part *part)
{
    (void)width, (void)height;
    *part = *(const image_part *)context;
}

static void a_part_is_cut_out_of_the_whole(void **state)
{
    (void)state;
    static const char *const names[] = {"rgb420.jpg", "progressive.jpg", "grey.jpg",
                                        "cmyk.jpg",   "rgb8.png",        "rgb8_interlaced.png"};
    for (size_t n = 0; n < COUNT(names); n++) {
        char path[512], *bytes;
        size_t size;
        image whole = {0}, part = {0};
        assert_ok(file_read_all(&bytes, &size, golden(path, names[n]), 1 << 20));
        assert_ok(image_decode(&whole, bytes, size, NULL));
        for (int top = 0; top + 5 <= whole.height; top += 3) {
            image_part wanted = {top % 7, top, 6, 5, 0};
            image_request request = {.choose = choose_part, .context = &wanted};
            assert_ok(image_decode(&part, bytes, size, &request));
            assert_int_equal(part.width, 6);
            assert_int_equal(part.height, 5);
            for (int y = 0; y < 5; y++)
                assert_memory_equal(part.pixels + y * 18, whole.pixels + ((top + y) * whole.width + top % 7) * 3, 18);
        }
        image_free(&whole);
        image_free(&part);
        free(bytes);
    }
}

/* Where whole blocks are skipped on the way to the part: 180 x 140 pixels, chroma at half size. */
static void a_part_far_inside_a_large_jpeg_has_the_bytes_of_the_whole(void **state)
{
    (void)state;
    char path[512], *bytes;
    size_t size;
    image whole = {0}, part = {0};
    assert_ok(file_read_all(&bytes, &size, golden(path, "large420.jpg"), 1 << 20));
    assert_ok(image_decode(&whole, bytes, size, NULL));
    for (int i = 0; i < 300; i++) {
        int width = 1 + i * 7 % 120, height = 1 + i * 11 % 90;
        image_part wanted = {i * 13 % (181 - width), i * 17 % (141 - height), width, height, 0};
        image_request request = {.choose = choose_part, .context = &wanted};
        assert_ok(image_decode(&part, bytes, size, &request));
        for (int y = 0; y < height; y++)
            assert_memory_equal(part.pixels + y * width * 3, whole.pixels + ((wanted.top + y) * 180 + wanted.left) * 3,
                                width * 3);
    }
    image_free(&whole);
    image_free(&part);
    free(bytes);
}

static void scaled_decoding_keeps_the_part_at_least_as_large_as_needed(void **state)
{
    (void)state;
    char path[FOLDER_PATH], *bytes;
    size_t size;
    image out = {0};
    if (!real_data(path, "images/photos/rgb_baseline_flower.jpg")) /* 480 x 360 */
        skip();
    assert_ok(file_read_all(&bytes, &size, path, 1 << 24));
    static const struct {
        image_part part;
        int width, height;
    } cases[] = {
        {{0, 0, 480, 360, 0}, 480, 360}, {{0, 0, 480, 360, 181}, 480, 360}, {{0, 0, 480, 360, 180}, 240, 180},
        {{0, 0, 480, 360, 64}, 120, 90}, {{0, 0, 480, 360, 10}, 60, 45},    {{16, 32, 400, 320, 100}, 200, 160},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        image_part part = cases[i].part;
        image_request request = {.choose = choose_part, .context = &part};
        assert_ok(image_decode(&out, bytes, size, &request));
        assert_int_equal(out.width, cases[i].width);
        assert_int_equal(out.height, cases[i].height);
    }
    image_free(&out);
    free(bytes);
}

static void every_real_photograph_decodes(void **state)
{
    (void)state;
    static const char *const names[] = {
        "rgb_baseline_flower.jpg",
        "rgb_baseline_sample.jpg",
        "gray_hopper.jpg",
        "cmyk_adobe_sample.jpg",
        "progressive_orient1.jpg",
        "progressive_exif_orient6.jpg",
        "baseline_exif_orient6_hopper.jpg",
        "rgb8_hopper.png",
        "rgba8.png",
        "palette8_sample.png",
        "palette4.png",
        "rgb16_sample.png",
        "gray16_trns.png",
        "gray8_gradient.png",
        "rgba8_interlaced.png",
        "palette8_interlaced.png",
    };
    char path[FOLDER_PATH], name[128], *bytes;
    size_t size;
    image out = {0};
    if (!real_data(path, "images/photos"))
        skip();
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(name, sizeof name, "images/photos/%s", names[i]);
        assert_non_null(real_data(path, name));
        assert_ok(file_read_all(&bytes, &size, path, 1 << 24));
        assert_ok(image_decode(&out, bytes, size, NULL));
        free(bytes);
    }
    assert_int_equal(out.width, 162);
    image_free(&out);
}

/* Bytes of every value at every width around the vector's length, both ways round; a large one that
 * bypasses the cache. */
static void normalised_images_are_the_tables_numbers_to_the_bit(void **state)
{
    (void)state;
    static const double means[][3] = {{0.485, 0.456, 0.406}, {0.4914, 0.4822, 0.4465}, {0, 0.5, 1}};
    static const double stds[][3] = {{0.229, 0.224, 0.225}, {0.247, 0.2435, 0.2616}, {1, 1e-3, 1.9999999}};
    enum { LARGEST = 160 };
    size_t most = (size_t)3 * LARGEST * LARGEST;
    float *got = aligned_alloc(64, most * sizeof *got), *want = aligned_alloc(64, most * sizeof *want);
    image decoded = {0};
    assert_true(got && want);
    for (size_t m = 0; m < COUNT(means); m++) {
        levels l;
        assert_ok(levels_make(&l, means[m], stds[m]));
        for (int width = 1; width <= LARGEST; width = width < 40 ? width + 1 : 4 * width) {
            int height = width < LARGEST ? 3 : LARGEST;
            size_t count = (size_t)width * (size_t)height * 3;
            assert_ok(image_reserve(&decoded, width, height));
            for (size_t i = 0; i < count; i++)
                decoded.pixels[i] = (uint8_t)(i * 2654435761u >> 11);
            for (int mirrored = 0; mirrored < 2; mirrored++) {
                levels_apply_plain(&l, want, &decoded, mirrored);
                levels_apply(&l, got, &decoded, mirrored);
                assert_memory_equal(got, want, count * sizeof *got);
            }
        }
        assert_true(want[0] == ((float)decoded.pixels[3 * (LARGEST - 1)] / 255.0f - l.mean[0]) / l.std[0]);
    }
    image_free(&decoded);
    free(got);
    free(want);
}

static void impossible_normalisations_are_refused(void **state)
{
    (void)state;
    static const double half[3] = {0.5, 0.5, 0.5}, zero[3] = {0.2, 0, 0.2}, nan_mean[3] = {0.5, 0.5, NAN};
    levels l;
    assert_refused(levels_make(&l, half, zero), BERLU_ERR_ARG, "channel 1");
    assert_refused(levels_make(&l, nan_mean, half), BERLU_ERR_ARG, "channel 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_cut_anywhere_is_refused),
        cmocka_unit_test(images_of_absurd_size_are_refused_before_memory_is_asked_for),
        cmocka_unit_test(a_part_is_cut_out_of_the_whole),
        cmocka_unit_test(a_part_far_inside_a_large_jpeg_has_the_bytes_of_the_whole),
        cmocka_unit_test(scaled_decoding_keeps_the_part_at_least_as_large_as_needed),
        cmocka_unit_test(every_real_photograph_decodes),
        cmocka_unit_test(normalised_images_are_the_tables_numbers_to_the_bit),
        cmocka_unit_test(impossible_normalisations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
