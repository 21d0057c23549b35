/* cmd_bench_data.c - `berlu bench data`: images per second of the loader.
 * SPDX-License-Identifier: MIT
 *
 * The loader runs as in training, and batches are requested as fast as it produces them. For a
 * folder of JPEGs the yardstick is libjpeg-turbo alone: the same files, already in memory, decoded
 * at the scale that the loader would use, by the same number of threads, and discarded. Both
 * alternate, a second each, and the median of the ratios is reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/clock.h"
#include "base/file_in.h"
#include "base/median.h"
#include "base/threads.h"
#include "commands.h"
#include "data/augment_plan.h"
#include "data/loader.h"
#include "data_args.h"
#include "output.h"

static const option_row rows[] = {
    {"data", OPTION_STRINGS, "DATA", .flags = OPTION_ARGUMENT, .help = "sets to read (default: synthetic)"},
    {"augment", OPTION_CHOICE, .standard = "crop-flip", .choices = "none|crop-flip|deit|convnext",
     .help = "as in training"},
    {"image-size", OPTION_INT, "N", .least = 1, .most = 4096,
     .help = "side of the images (default: 32 for sets of small images, else 224)"},
    {"batch", OPTION_INT, "N", .standard = "128", .least = 1, .most = 65536, .help = "images per batch"},
    {"rounds", OPTION_INT, "N", .standard = "5", .least = 1, .most = 1000, .help = "turns of a second each"},
    {"seconds", OPTION_FLOAT, "S", .standard = "1", .least = 0.01, .most = 600, .help = "length of a turn"},
    DATA_ROWS,
    {0}};

enum { ROUNDS_MOST = 1000, YARDSTICK_FILES = 512, WARM_BATCHES = 8 };

typedef struct bench {
    const char *name;
    data_source *source;
    loader *l;
    int side, threads, rounds;
    double seconds;
    uint32_t epoch;
    double images[ROUNDS_MOST], decoded[ROUNDS_MOST]; /* a second */
} bench;

/* ---- the loader ------------------------------------------------------------------------------ */

static berlu_status batch_next(bench *b, size_t *count)
{
    const loader_batch *batch;
    TRY(loader_next(b->l, &batch));
    if (!batch) {
        TRY(loader_start(b->l, ++b->epoch, 0));
        TRY(loader_next(b->l, &batch));
    }
    *count += batch->count;
    return BERLU_OK;
}

static berlu_status loader_round(bench *b, double *rate)
{
    size_t count = 0;
    for (int i = 0; i < WARM_BATCHES; i++) /* prefetched batches do not count */
        TRY(batch_next(b, &count));
    double began = clock_seconds(), now;
    for (count = 0; (now = clock_seconds()) - began < b->seconds;)
        TRY(batch_next(b, &count));
    *rate = (double)count / (now - began);
    return BERLU_OK;
}

/* ---- the yardstick --------------------------------------------------------------------------- */

typedef struct jpeg_file {
    unsigned char *bytes;
    size_t size;
    unsigned eighths; /* the scale of the loader's crop of this file */
} jpeg_file;

typedef struct jpeg_files {
    jpeg_file file[YARDSTICK_FILES];
    size_t count;
} jpeg_files;

typedef struct decode_round {
    const jpeg_files *files;
    double until;
    size_t done[256]; /* by thread */
} decode_round;

static void on_message(j_common_ptr lib, int level)
{
    (void)lib, (void)level;
}

/* The loader's decoder has verified the files, so libjpeg's error handler, which exits, is not
 * reached. */
static void decode_alone(const jpeg_file *file)
{
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr errors;
    lib.err = jpeg_std_error(&errors);
    errors.emit_message = on_message;
    jpeg_create_decompress(&lib);
    jpeg_mem_src(&lib, file->bytes, (unsigned long)file->size);
    jpeg_read_header(&lib, TRUE);
    lib.scale_num = file->eighths;
    lib.scale_denom = 8;
    if (lib.num_components != 4)
        lib.out_color_space = JCS_RGB;
    jpeg_start_decompress(&lib);
    JSAMPARRAY row =
        lib.mem->alloc_sarray((j_common_ptr)&lib, JPOOL_IMAGE, lib.output_width * (JDIMENSION)lib.output_components, 1);
    while (lib.output_scanline < lib.output_height)
        jpeg_read_scanlines(&lib, row, 1);
    jpeg_finish_decompress(&lib);
    jpeg_destroy_decompress(&lib);
}

static void decode_block(void *context, size_t block)
{
    decode_round *t = context;
    for (size_t i = block * 7919; clock_seconds() < t->until; i++) {
        decode_alone(&t->files->file[i % t->files->count]);
        t->done[block]++;
    }
}

static double decode_measure(const bench *b, const jpeg_files *files)
{
    double began = clock_seconds(), count = 0;
    decode_round t = {.files = files, .until = began + b->seconds};
    threads_for(b->threads, (size_t)b->threads, decode_block, &t);
    double seconds = clock_seconds() - began;
    for (int i = 0; i < b->threads; i++)
        count += (double)t.done[i];
    return count / seconds;
}

/* The scale at which the loader would decode one random crop of this image. */
typedef struct scale_probe {
    int side;
    uint64_t sample;
    unsigned eighths;
} scale_probe;

static void probe_choose(void *context, int width, int height, image_part *part)
{
    scale_probe *p = context;
    draws d = draws_for(0, PURPOSE_CROP, 0, p->sample);
    image_part crop = crop_random(&d, width, height, 0.08, 1);
    for (p->eighths = 8; p->eighths > 1; p->eighths /= 2)
        if (crop.width * (int)p->eighths / 2 < p->side * 8 || crop.height * (int)p->eighths / 2 < p->side * 8)
            break;
    *part = crop;
}

static berlu_status files_collect(bench *b, jpeg_files *files)
{
    const data_info *info = data_describe(b->source);
    image decoded = {0};
    size_t all = info->images[DATA_TRAIN], step = all / YARDSTICK_FILES ? all / YARDSTICK_FILES : 1;
    for (size_t i = 0; i < all && files->count < YARDSTICK_FILES; i += step) {
        char path[4096];
        scale_probe probe = {.side = b->side, .sample = i, .eighths = 8};
        image_request request = {.choose = probe_choose, .context = &probe};
        unsigned char *bytes;
        size_t size;
        data_name(b->source, DATA_TRAIN, i, path, sizeof path);
        berlu_status status = file_in_all(&bytes, &size, path);
        if (status == BERLU_ERR_MEMORY) {
            image_free(&decoded);
            return status;
        }
        if (status != BERLU_OK) /* the loader reports it when it reads it */
            continue;
        if (size > 2 && bytes[0] == 0xff && bytes[1] == 0xd8 &&
            image_decode(&decoded, bytes, size, &request) == BERLU_OK)
            files->file[files->count++] = (jpeg_file){bytes, size, probe.eighths};
        else
            free(bytes);
    }
    image_free(&decoded);
    return BERLU_OK;
}

/* ---- one set --------------------------------------------------------------------------------- */

static double rounds_median(const double *values, int count)
{
    double sorted[ROUNDS_MOST];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    return median(sorted, (size_t)count);
}

static void row_print(const bench *b, const options *o, const jpeg_files *files, output *out)
{
    double ratios[ROUNDS_MOST], rate = rounds_median(b->images, b->rounds), alone = 0, ratio = 0;
    if (files->count) {
        for (int i = 0; i < b->rounds; i++)
            ratios[i] = b->images[i] / b->decoded[i];
        alone = rounds_median(b->decoded, b->rounds);
        ratio = rounds_median(ratios, b->rounds);
    }
    if (!options_json(o)) {
        printf("%-28s %-10s %4d px  batch %-5zu %2d threads %12.0f images/s", b->name, options_string(o, "augment"),
               b->side, (size_t)options_int(o, "batch"), b->threads, rate);
        if (files->count)
            printf("   decode alone %.0f, ratio %.2f", alone, ratio);
        putchar('\n');
        return;
    }
    output_object(out, NULL);
    output_string(out, "data", b->name);
    output_string(out, "kind", data_describe(b->source)->kind);
    output_string(out, "augment", options_string(o, "augment"));
    output_int(out, "image_size", b->side);
    output_int(out, "batch", options_int(o, "batch"));
    output_int(out, "threads", b->threads);
    output_real(out, "images_per_s", rate);
    output_real(out, "mb_per_s", rate * 12 * b->side * b->side / 1e6);
    if (files->count) {
        output_string(out, "yardstick", "decode");
        output_real(out, "yardstick_images_per_s", alone);
        output_real(out, "ratio", ratio);
    }
    output_end(out);
}

static berlu_status bench_open(bench *b, const options *o)
{
    data_options how = data_options_from(o);
    TRY(data_open(&b->source, b->name, &how));
    const data_info *info = data_describe(b->source);
    b->side = options_given(o, "image-size")         ? (int)options_int(o, "image-size")
              : info->width > 0 && info->width <= 64 ? info->width
                                                     : 224;
    b->threads = threads_granted(options_threads(o));
    b->threads = b->threads > 256 ? 256 : b->threads;
    loader_options l = {.batch = (size_t)options_int(o, "batch"),
                        .shuffle = 1,
                        .drop_last = info->images[DATA_TRAIN] >= (size_t)options_int(o, "batch"),
                        .workers = b->threads};
    TRY(augment_preset(&l.augment, options_string(o, "augment"), b->side));
    TRY(loader_open(&b->l, b->source, &l));
    return loader_start(b->l, 0, 0);
}

static berlu_status bench_set(const options *o, const char *name, output *out)
{
    bench *b = calloc(1, sizeof *b);
    jpeg_files *files = calloc(1, sizeof *files);
    berlu_status status;
    if (!b || !files)
        TRY_DONE(berlu_fail_memory(sizeof *b + sizeof *files, "a bench"));
    b->name = name;
    b->rounds = (int)options_int(o, "rounds");
    b->seconds = options_float(o, "seconds");
    TRY_DONE(bench_open(b, o));
    if (strcmp(data_describe(b->source)->kind, "folder") == 0)
        TRY_DONE(files_collect(b, files));
    for (int i = 0; i < b->rounds; i++) {
        TRY_DONE(loader_round(b, &b->images[i]));
        if (files->count)
            b->decoded[i] = decode_measure(b, files);
    }
    row_print(b, o, files, out);
done:
    for (size_t i = 0; files && i < files->count; i++)
        free(files->file[i].bytes);
    if (b) {
        loader_close(b->l);
        data_close(b->source);
    }
    free(files);
    free(b);
    return status;
}

static berlu_status bench_run(options *o)
{
    static const char *const standard[] = {"synthetic"};
    size_t count = options_count(o, "data");
    const char *const *sets = count ? options_strings(o, "data") : standard;
    output out;
    if (options_json(o)) {
        output_start(&out);
        output_array(&out, "rows");
    }
    berlu_status status = BERLU_OK;
    for (size_t i = 0; i < (count ? count : 1) && status == BERLU_OK; i++)
        status = bench_set(o, sets[i], &out);
    if (!options_json(o))
        return status;
    if (status != BERLU_OK) {
        text_free(&out.json);
        return status;
    }
    return output_print(&out);
}

const command cmd_bench_data = {"bench data", "images a second out of the data loader, beside libjpeg-turbo alone",
                                "    berlu bench data data/cifar-10-batches-bin\n"
                                "    berlu bench data ~/imagenet --image-size 224 --augment crop-flip --json",
                                rows, bench_run};
