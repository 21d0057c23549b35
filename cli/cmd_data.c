/* cmd_data.c - `berlu data get|make|info|pack`: downloads, creates, inspects and packs sets of
 * images. SPDX-License-Identifier: MIT
 *
 * All four end with the same report: the kind of the set, the images of each split, the classes,
 * mean and standard deviation of its training pixels. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "commands.h"
#include "data/cache.h"
#include "data/get.h"
#include "data/make.h"
#include "data_args.h"
#include "io/png.h"
#include "output.h"
#include "plot_target.h"
#include "progress.h"
#include "signals.h"

/* ---- the report ------------------------------------------------------------------------------ */

/* `verified` is NULL without --verify. */
static berlu_status report_json(data_source *source, const data_statistics *measured, const data_verification *verified,
                                const char *sheet)
{
    const data_info *info = data_describe(source);
    output out;
    output_start(&out);
    output_string(&out, "kind", info->kind);
    output_string(&out, "path", info->path);
    output_int(&out, "images", (int64_t)(info->images[DATA_TRAIN] + info->images[DATA_TEST]));
    output_object(&out, "splits");
    for (int s = 0; s < DATA_SPLITS; s++)
        output_int(&out, data_split_names[s], (int64_t)info->images[s]);
    output_end(&out);
    output_array(&out, "classes");
    for (size_t k = 0; k < info->classes; k++)
        output_string(&out, NULL, info->class_names[k]);
    output_end(&out);
    output_string(&out, "class_order", info->class_order);
    output_reals(&out, "mean", measured->mean, 3);
    output_reals(&out, "std", measured->std, 3);
    output_int(&out, "measured", (int64_t)measured->images);
    output_int(&out, "least_width", measured->least_width);
    output_int(&out, "least_height", measured->least_height);
    output_int(&out, "most_width", measured->most_width);
    output_int(&out, "most_height", measured->most_height);
    output_array(&out, "broken");
    for (size_t i = 0; i < data_bad_count(source); i++)
        output_string(&out, NULL, data_bad_message(source, i));
    output_end(&out);
    output_bool(&out, "unchecked", info->unchecked);
    if (verified)
        output_int(&out, "verified", (int64_t)verified->images);
    if (sheet)
        output_string(&out, "sheet", sheet);
    return output_print(&out);
}

static void report_text(data_source *source, const data_statistics *m, const data_verification *verified,
                        const char *sheet)
{
    const data_info *info = data_describe(source);
    printf("%s%s%s\n", info->kind, *info->path ? "  " : "", info->path);
    printf("  images   %zu train, %zu test\n", info->images[DATA_TRAIN], info->images[DATA_TEST]);
    if (m->least_width == m->most_width && m->least_height == m->most_height)
        printf("  size     %d x %d\n", m->most_width, m->most_height);
    else
        printf("  size     %d x %d to %d x %d\n", m->least_width, m->least_height, m->most_width, m->most_height);
    printf("  classes  %zu (%s order):", info->classes, info->class_order);
    for (size_t k = 0; k < info->classes && k < 20; k++)
        printf(" %s", info->class_names[k]);
    printf("%s\n", info->classes > 20 ? " ..." : "");
    printf("  mean     %.4f %.4f %.4f   (over %zu training images)\n", m->mean[0], m->mean[1], m->mean[2], m->images);
    printf("  std      %.4f %.4f %.4f\n", m->std[0], m->std[1], m->std[2]);
    if (info->unchecked)
        printf("  checks   none: packed by berlu 0.1.0 without checksums; pack the set again to have them\n");
    if (verified)
        printf("  verified %zu images%s\n", verified->images, info->unchecked ? ", as far as they can be read" : "");
    if (sheet)
        printf("  sheet    %s\n", sheet);
    for (size_t i = 0; i < data_bad_count(source); i++)
        printf("  broken   %s\n", data_bad_message(source, i));
}

static berlu_status sheet_write(data_source *source, const char *path, int cell)
{
    const data_info *info = data_describe(source);
    image sheet = {0};
    int rows = info->classes < 100 ? (int)info->classes : 100;
    if (cell == 0)
        cell = info->width > 0 && info->width < 96 ? info->width : 96;
    berlu_status status = data_contact_sheet(source, rows, 10, cell, &sheet);
    if (status == BERLU_OK)
        status = png_write(path, sheet.pixels, sheet.width, sheet.height);
    image_free(&sheet);
    return status;
}

static berlu_status report(data_source *source, const options *o, size_t sample, const data_verification *verified,
                           const char *sheet, int cell)
{
    data_statistics measured = {0};
    data_split split = data_describe(source)->images[DATA_TRAIN] ? DATA_TRAIN : DATA_TEST;
    TRY(data_measure(source, split, sample, 0, options_threads(o), &measured));
    if (sheet)
        TRY(sheet_write(source, sheet, cell));
    if (options_json(o))
        return report_json(source, &measured, verified, sheet);
    report_text(source, &measured, verified, sheet);
    return BERLU_OK;
}

enum { SAMPLE = 50000 }; /* images measured by default */

/* Opens and reports the set that a command has just written. */
static berlu_status report_new(const options *o, const char *kind, const char *path, const data_options *how)
{
    data_source *source = NULL;
    char set[4096];
    snprintf(set, sizeof set, "%s:%s", kind, path);
    TRY(data_open(&source, set, how));
    berlu_status status = report(source, o, SAMPLE, NULL, NULL, 0);
    data_close(source);
    return status;
}

/* ---- progress -------------------------------------------------------------------------------- */

static void on_count(void *context, size_t done, size_t all)
{
    (void)all;
    progress_step(context, done);
}

static void on_download(void *context, uint64_t done, uint64_t all)
{
    progress *p = context;
    p->total = all >> 20;
    progress_step(p, done >> 20);
}

/* ---- info ------------------------------------------------------------------------------------ */

static const option_row info_rows[] = {
    {"data", OPTION_STRING, "DATA", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "a folder, an archive, `synthetic`, or KIND:PATH with KIND cifar10, cifar100, folder or packed"},
    {"sheet", OPTION_STRING, "FILE",
     .help = "write a contact sheet as PNG: ten images of each class (at most 100 classes)"},
    {"cell", OPTION_INT, "N", .least = 8, .most = 512,
     .help = "side of an image on the sheet (default: that of the set's images, at most 96)"},
    {"sample", OPTION_INT, "N", .standard = "50000", .least = 0, .most = 1e15,
     .help = "images to measure, evenly spaced; 0: all"},
    {"verify", OPTION_FLAG, .help = "read every image: decode files, compare the checksums of a packed set"},
    DATA_ROWS,
    {0}};

/* Damage is bad input here (exit 2): no run was interrupted by it. */
static berlu_status verify(data_source *source, const options *o, data_verification *found)
{
    const data_info *info = data_describe(source);
    progress bar;
    progress_start(&bar, "verify", "images", info->images[DATA_TRAIN] + info->images[DATA_TEST], 0);
    berlu_status status = data_verify(source, options_threads(o), on_count, &bar, found);
    progress_finish(&bar);
    TRY(status);
    if (found->damaged)
        return berlu_fail(BERLU_ERR_INPUT, "%s (%zu of %zu images are damaged)", found->message, found->damaged,
                          found->images);
    return BERLU_OK;
}

static berlu_status info_run(options *o)
{
    data_source *source = NULL;
    data_options how = data_options_from(o);
    data_verification found = {0};
    int verified = options_flag(o, "verify");
    berlu_status status;
    if (options_given(o, "sheet"))
        TRY(target_check("sheet", options_string(o, "sheet")));
    else if (options_given(o, "cell"))
        return berlu_fail(BERLU_ERR_ARG, "option --cell has no effect without --sheet");
    TRY_DONE(data_open(&source, options_string(o, "data"), &how));
    if (verified)
        TRY_DONE(verify(source, o, &found));
    TRY_DONE(report(source, o, (size_t)options_int(o, "sample"), verified ? &found : NULL, options_string(o, "sheet"),
                    (int)options_int(o, "cell")));
done:
    data_close(source);
    return status;
}

const command cmd_data_info = {"data info",
                               "what a set of images holds: counts, classes, mean, standard deviation, a contact sheet",
                               "    berlu data info ~/imagenet --sheet sheet.png\n"
                               "    berlu data info imagenet-256.pack --verify\n"
                               "    berlu data info cifar10:data/cifar-10-batches-bin --json",
                               info_rows, info_run};

/* ---- get ------------------------------------------------------------------------------------- */

static const option_row get_rows[] = {
    {"set", OPTION_CHOICE, .choices = "cifar10|cifar100", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "which set"},
    {"out", OPTION_STRING, "DIR", .standard = "data", .help = "folder to put it in"},
    {"url", OPTION_STRING, "URL", .help = "another place of the same archive"},
    {"file", OPTION_STRING, "ARCHIVE", .help = "the archive, fetched by other means, instead of a download"},
    {"sha256", OPTION_STRING, "HEX", .help = "accept an archive with this hash instead of the published one"},
    {"keep-archive", OPTION_FLAG, .help = "do not remove the archive after unpacking"},
    NO_COMPUTE_ROWS,
    {0}};

static berlu_status get_run(options *o)
{
    const cifar_layout *layout = options_choice(o, "set") == 0 ? &cifar10_layout : &cifar100_layout;
    const char *folder = options_string(o, "out");
    progress bar;
    if (options_given(o, "file") && options_given(o, "url"))
        return berlu_fail(BERLU_ERR_ARG, "option --url has no effect with --file");
    if (options_given(o, "file") && options_flag(o, "keep-archive"))
        return berlu_fail(BERLU_ERR_ARG, "option --keep-archive has no effect with --file, which stays where it is");
    download from = {.url = options_string(o, "url"),
                     .file = options_string(o, "file"),
                     .sha256 = options_string(o, "sha256"),
                     .progress = on_download,
                     .context = &bar,
                     .stop = signals_stop()};
    char there[4096];
    if (snprintf(there, sizeof there, "%s/%s", folder, layout->folder) < (int)sizeof there && folder_exists(there))
        fprintf(stderr, "note: %s is there already%s%s\n", there, from.file ? ", and nothing is taken from " : "",
                from.file ? from.file : "");
    if (!from.file)
        progress_start(&bar, layout->archive, "MiB", layout->archive_bytes >> 20, 0);
    berlu_status status = data_get(layout, folder, &from, options_flag(o, "keep-archive"));
    if (!from.file)
        progress_finish(&bar);
    TRY(status);
    return report_new(o, layout->kind, folder, NULL);
}

const command cmd_data_get = {
    "data get", "download a published set, check it and unpack it",
    "A cut download goes on where it stopped when the command is given again. The archive's hash must be the\n"
    "published one; the set appears under DIR whole or not at all.\n\n"
    "    berlu data get cifar10\n"
    "    berlu data get cifar10 --file Downloads/cifar-10-binary.tar.gz\n"
    "    berlu data get cifar100 --out ~/sets --url http://mirror.example/cifar-100-binary.tar.gz",
    get_rows, get_run};

/* ---- make ------------------------------------------------------------------------------------ */

static const option_row make_rows[] = {
    {"set", OPTION_CHOICE, .choices = "synthetic", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "which set"},
    {"out", OPTION_STRING, "DIR", .flags = OPTION_REQUIRED, .help = "folder to make; it must not exist"},
    {"images", OPTION_INT, "N", .standard = "10000", .least = 10, .most = 1e8,
     .help = "training images; a fifth of it more for testing"},
    {"classes", OPTION_CHOICE, .standard = "10", .choices = "10|100", .help = "how many classes"},
    {"image-size", OPTION_INT, "N", .standard = "32", .least = 16, .most = 1024, .help = "side of the square images"},
    {"seed", OPTION_INT, "N", .standard = "0", .least = 0, .most = 9e15,
     .help = "of everything that is drawn at random"},
    {0}};

static berlu_status make_run(options *o)
{
    data_options how = {.images = (size_t)options_int(o, "images"),
                        .classes = options_choice(o, "classes") == 0 ? 10 : 100,
                        .image_size = (int)options_int(o, "image-size"),
                        .seed = (uint64_t)options_int(o, "seed"),
                        .threads = options_threads(o)};
    const char *folder = options_string(o, "out");
    data_source *source = NULL;
    progress bar;
    TRY(data_open(&source, "synthetic", &how));
    const data_info *info = data_describe(source);
    progress_start(&bar, "synthetic", "images", info->images[DATA_TRAIN] + info->images[DATA_TEST], 0);
    berlu_status status = make_folder(source, folder, options_threads(o), on_count, &bar);
    progress_finish(&bar);
    data_close(source);
    TRY(status);
    return report_new(o, "folder", folder, NULL);
}

const command cmd_data_make = {
    "data make", "write the built-in set as folders of PNG files",
    "The same images as `--data synthetic` draws in memory: textured shapes in random place, size, colour and\n"
    "clutter, by seed.\n\n"
    "    berlu data make synthetic --out shapes --images 2000 --image-size 64",
    make_rows, make_run};

/* ---- pack ------------------------------------------------------------------------------------ */

static const option_row pack_rows[] = {
    {"data", OPTION_STRING, "DATA", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "the set to pack, as in `data info`"},
    {"out", OPTION_STRING, "FILE", .flags = OPTION_REQUIRED, .help = "file to write"},
    {"image-size", OPTION_INT, "N", .standard = "256", .least = 1, .most = 4096,
     .help = "side of the packed images: short edge to N, centre crop, bicubic"},
    DATA_ROWS,
    {0}};

static berlu_status pack_run(options *o)
{
    data_source *source = NULL;
    data_options how = data_options_from(o);
    const char *path = options_string(o, "out");
    progress bar;
    TRY(data_open(&source, options_string(o, "data"), &how));
    const data_info *info = data_describe(source);
    progress_start(&bar, "pack", "images", info->images[DATA_TRAIN] + info->images[DATA_TEST], 0);
    berlu_status status =
        cache_write(source, path, (int)options_int(o, "image-size"), options_threads(o), on_count, &bar);
    progress_finish(&bar);
    for (size_t i = 0; i < data_bad_count(source); i++)
        fprintf(stderr, "broken: %s\n", data_bad_message(source, i));
    data_close(source);
    TRY(status);
    how = (data_options){.max_bad_given = 1, .max_bad = SIZE_MAX, .threads = options_threads(o)};
    return report_new(o, "packed", path, &how);
}

const command cmd_data_pack = {
    "data pack", "decode and resize every image once, into one file that is read at memory speed",
    "A packed set is a set like any other: give FILE to --data. Random crops are then taken from the packed images,\n"
    "so make them somewhat larger than the network's input.\n\n"
    "    berlu data pack ~/imagenet --out imagenet-256.pack --image-size 256",
    pack_rows, pack_run};
