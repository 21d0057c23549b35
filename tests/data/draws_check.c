/* draws_check.c - see draws_check.h. SPDX-License-Identifier: MIT */
#include "data/draws_check.h"

#include "data/loader.h"
#include "data/support.h"
#include "engine/engine_internal.h"
#include "engine/image_set.h"
#include "models/models.h"

enum { TRAIN = 90, BATCH = 16, CLASSES = 10 };

typedef struct draw_case {
    const char *name, *augment;
    double erase, mixup, cutmix, smoothing;
    int test, repeats, squash, ranks;
} draw_case;

static const draw_case cases[] = {
    {.name = "as they are, a short batch at the end", .augment = "none", .test = 1},
    {.name = "squashed", .augment = "none", .squash = 1},
    {.name = "window and flip", .augment = "crop-flip"},
    {.name = "erased", .augment = "crop-flip", .erase = 0.7},
    {.name = "erased alone", .augment = "none", .erase = 1},
    {.name = "repeated", .augment = "crop-flip", .repeats = 3, .erase = 0.3},
    {.name = "mixup", .augment = "crop-flip", .mixup = 0.8, .smoothing = 0.1},
    {.name = "cutmix", .augment = "crop-flip", .cutmix = 1, .smoothing = 0.1},
    {.name = "the second of two ranks", .augment = "crop-flip", .erase = 0.5, .mixup = 0.8, .cutmix = 1, .ranks = 2},
};

static loader_options options_of(const draw_case *c, int side)
{
    loader_options o = {.split = c->test ? DATA_TEST : DATA_TRAIN, .batch = BATCH, .seed = 5, .workers = 1};
    assert_ok(augment_preset(&o.augment, c->augment, side));
    o.augment.crop = c->squash ? CROP_SQUASH : o.augment.crop;
    o.augment.erase = c->erase;
    o.shuffle = o.drop_last = !c->test;
    o.repeats = c->repeats;
    o.ranks = c->ranks;
    o.group = (size_t)c->ranks;
    o.rank = c->ranks ? c->ranks - 1 : 0;
    o.mix = (mix_options){
        .mixup = c->mixup, .cutmix = c->cutmix, .probability = 0.9, .switch_to_cutmix = 0.5, .smoothing = c->smoothing};
    o.mix.group = mix_is_on(&o.mix) ? BATCH / 2 : 0;
    return o;
}

/* Both splits, one behind the other. */
static image_set *set_make(const backend *b, device *d, data_source *data, const float *levels, int side)
{
    image_set *set = NULL;
    const size_t *images = data_describe(data)->images;
    size_t all = images[DATA_TRAIN] + images[DATA_TEST], bytes = (size_t)(3 * side * side);
    uint8_t *pixels = malloc(all * bytes);
    assert_non_null(pixels);
    assert_ok(data_bytes(data, DATA_TRAIN, 0, images[DATA_TRAIN], 2, pixels));
    assert_ok(data_bytes(data, DATA_TEST, 0, images[DATA_TEST], 1, pixels + images[DATA_TRAIN] * bytes));
    assert_ok(image_set_create(&set, b, d, side, all, levels));
    assert_ok(image_set_write(set, 0, 7, pixels));
    assert_ok(image_set_write(set, 7, all - 7, pixels + 7 * bytes));
    assert_int_equal(image_set_bytes(set), all * bytes);
    free(pixels);
    return set;
}

static void feed_equals(const engine *e, feed_id id, const void *want, size_t bytes, const char *name)
{
    const char *const feeds[] = {"images", "labels", "targets"};
    void *got = malloc(bytes);
    assert_non_null(got);
    assert_ok(e->backend->download(e->device, got, engine_data(e, e->feed[id].t), bytes));
    for (size_t i = 0; i < bytes; i++)
        if (((unsigned char *)got)[i] != ((const unsigned char *)want)[i])
            fail_msg("%s: %s differ at number %zu: %.9g, not %.9g", name, feeds[id], i / 4, ((float *)got)[i / 4],
                     ((const float *)want)[i / 4]);
    free(got);
}

static void epochs_compare(engine *e, loader *pixels, loader *drawn, size_t image_floats, const char *name)
{
    const loader_batch *want, *got;
    engine_step step = {.lr = 1e-3};
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        assert_ok(loader_start(pixels, epoch, 1));
        assert_ok(loader_start(drawn, epoch, 1));
        for (;;) {
            assert_ok(loader_next(pixels, &want));
            assert_ok(loader_next(drawn, &got));
            assert_int_equal(!want, !got);
            if (!want)
                break;
            size_t rows = want->rows;
            assert_true(got->draws && !got->images && !want->draws);
            assert_true(got->rows == rows && got->count == want->count && got->number == want->number);
            assert_memory_equal(got->labels, want->labels, rows * sizeof *want->labels);
            assert_memory_equal(got->indices, want->indices, rows * sizeof *want->indices);
            engine_set_draws(e, got->draws);
            assert_ok(engine_forward(e, &step));
            feed_equals(e, FEED_IMAGE, want->images, rows * image_floats * sizeof(float), name);
            if (want->targets)
                feed_equals(e, FEED_TARGETS, want->targets, rows * CLASSES * sizeof(float), name);
            else
                feed_equals(e, FEED_LABELS, want->labels, rows * sizeof(int32_t), name);
        }
    }
}

/* Whether labels come with draws or with images: the step is refused by number, before anything is
 * computed. */
static void labels_outside_are_refused(engine *e)
{
    engine_step step = {.lr = 1e-3};
    char words[64];
    for (int drawn = 0; drawn < 2; drawn++) {
        image_draw draws[BATCH] = {0};
        int at = drawn ? BATCH - 1 : 0;
        snprintf(words, sizeof words, "label %d of image %d is outside the %d classes", CLASSES + drawn, at, CLASSES);
        memset(engine_labels(e), 0, BATCH * sizeof(int32_t));
        engine_labels(e)[at] = draws[at].label = CLASSES + drawn;
        engine_set_draws(e, drawn ? draws : NULL);
        assert_int_equal(engine_forward(e, &step), BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), words));
    }
}

static void case_compare(const draw_case *c, const engine_options *on, data_source *data, const model *m)
{
    loader *pixels = NULL, *drawn = NULL;
    engine *e = NULL;
    int side = m->config.image_size;
    loader_options o = options_of(c, side);
    assert_true(loader_drawable(data, &o));
    assert_ok(loader_open(&pixels, data, &o));
    o.draws = 1;
    o.draws_first = c->test ? data_describe(data)->images[DATA_TRAIN] : 0;
    assert_ok(loader_open(&drawn, data, &o));
    engine_options how = *on;
    how.batch = BATCH;
    how.loss = mix_is_on(&o.mix) ? LOSS_SOFT_TARGET : LOSS_CROSS_ENTROPY;
    assert_ok(engine_create(&e, m->graph, &how));
    image_set *set = set_make(how.backend, engine_device(e), data, loader_levels(pixels), side);
    assert_ok(engine_use_images(e, set));
    epochs_compare(e, pixels, drawn, (size_t)(3 * side * side), c->name);
    if (how.loss == LOSS_CROSS_ENTROPY)
        labels_outside_are_refused(e);
    image_set_free(set);
    engine_free(e);
    loader_close(pixels);
    loader_close(drawn);
}

void draws_check(const backend *b, device *opened, int profile)
{
    engine_options on = {.backend = b, .device = opened, .mode = ENGINE_TRAIN, .no_update = 1, .threads = 2};
    const int sides[] = {32, 30}; /* a kernel may take pixels by fours */
    on.profile = profile;
    for (int k = 0; k < 2; k++) {
        data_source *data = NULL;
        model *m = NULL;
        assert_ok(
            data_open(&data, "synthetic", &(data_options){.images = TRAIN, .threads = 1, .image_size = sides[k]}));
        assert_ok(model_create(&m, "linear", &(model_options){.classes = CLASSES, .image_size = sides[k]}));
        assert_int_equal(m->config.image_size, sides[k]);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            case_compare(&cases[i], &on, data, m);
        model_free(m);
        data_close(data);
    }
}
