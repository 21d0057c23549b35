/* data.h - a set of labelled images, whatever it is stored in. SPDX-License-Identifier: MIT
 *
 * `data_open` takes the text of --data: `synthetic`, the path of a folder or archive whose kind is
 * recognised, or KIND:PATH with KIND one of cifar10, cifar100, folder, synthetic, packed. A source
 * is immutable apart from its list of broken files, so any number of threads may read from it.
 * Images are found by (split, index); the order is that of the files and never changes. loader.h
 * makes batches of them.
 *
 * A new kind is one file (its functions) and one line in the table of data.c. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "data/image.h"

typedef enum data_split { DATA_TRAIN, DATA_TEST, DATA_SPLITS } data_split;
extern const char *const data_split_names[DATA_SPLITS]; /* "train", "test" (a folder's val or valid counts as test) */

/* Options for opening a set. {0} means the defaults in brackets. Options that do not apply to a
 * kind are refused. */
typedef struct data_options {
    const char *class_order; /* of folders: "torchvision" (by code point) or "timm" (natural order) ["torchvision"] */
    const char *labels;      /* of CIFAR-100: "fine" or "coarse" ["fine"] */
    const char *val_labels;  /* of folders: a text file "FILENAME CLASS" a line for a flat val folder [none] */
    const char *sha256;      /* of an archive: accept this hash instead of the published one [none] */
    int max_bad_given;       /* max_bad counts only when this is 1 */
    size_t max_bad;          /* broken files to be skipped before giving up [one in a thousand] */
    uint64_t seed;           /* of synthetic, as below [0] */
    size_t images;           /* of synthetic, the training split; a fifth of it comes on top as test [10000] */
    size_t classes;          /* of synthetic: 10 or 100 [10] */
    int image_size;          /* of synthetic [32] */
    int threads;             /* for work done while opening [all] */
    const berlu_log *log;
} data_options;

/* Known without reading the images. */
typedef struct data_info {
    const char *kind;           /* "cifar10", ... */
    const char *path;           /* as given; "" for embedded sets */
    const char *class_order;    /* how class numbers were given: "torchvision", "timm" or "fixed" */
    size_t images[DATA_SPLITS]; /* 0: the set has no such split */
    size_t classes;
    const char *const *class_names;
    int width, height;      /* of every image; 0, 0 when they differ */
    double mean[3], std[3]; /* the normalisation customary for this set: its own where published, else ImageNet's */
    int unchecked;          /* images carry no checksum although this kind has them: a pack of berlu 0.1.0 */
    int published;          /* mean and std are the set's own; 0: nobody knows them without data_measure() */
} data_info;

typedef struct data_source data_source;
berlu_status data_open(data_source **out, const char *text, const data_options *options); /* options may be NULL */
void data_close(data_source *source);                                                     /* NULL is allowed */
const data_info *data_describe(const data_source *source);

int data_label(const data_source *source, data_split split, size_t index); /* index < images[split] */

/* Reads one image (or the requested part) as RGB bytes. BERLU_ERR_INPUT names the file and what is
 * wrong with it. */
berlu_status data_read(data_source *source, data_split split, size_t index, const image_request *request, image *out);

/* Images [first, first + count) of a split whose images have one size, one after the other, 3
 * bytes a pixel. */
berlu_status data_bytes(data_source *source, data_split split, size_t first, size_t count, int threads, uint8_t *out);

/* Name of an image: a path, or "train/123". */
const char *data_name(const data_source *source, data_split split, size_t index, char *out, size_t size);

/* Records that an image is broken (with the message of the last error; a second report of the same
 * one is not counted). BERLU_OK while that is within the limit; BERLU_ERR_INPUT once more than
 * max_bad are broken. Thread-safe. */
berlu_status data_report_bad(data_source *source, data_split split, size_t index);
size_t data_bad_count(const data_source *source);
const char *data_bad_message(const data_source *source, size_t n); /* n < data_bad_count(); lives with the source */

/* Warns of broken images from number *told on, and moves *told behind them: the first by name, the
 * rest by their number. */
void data_bad_warn(const data_source *source, size_t *told, const berlu_log *log);

/* Mean and standard deviation of all pixels of a split, in [0, 1], over at most `limit` images (0:
 * all; else evenly spaced), without those of a holdout of that size (loader.h, its seed 0). Broken
 * images are reported and left out. The sums are integers, so threads never change a bit. */
typedef struct data_statistics {
    size_t images;
    double mean[3], std[3];
    int least_width, least_height, most_width, most_height;
} data_statistics;
berlu_status data_measure(data_source *source, data_split split, size_t limit, size_t holdout, int threads,
                          data_statistics *out);

/* Reads every image of all splits. Files broken one by one are reported as by data_report_bad(),
 * whose limit ends the search; damage that stops a run at once (checksums of a packed set, a file
 * cut short) is counted, with the first message. progress may be NULL; it is called from this
 * thread only. */
typedef struct data_verification {
    size_t images, damaged;
    char message[512];
} data_verification;
berlu_status data_verify(data_source *source, int threads, void (*progress)(void *context, size_t done, size_t all),
                         void *context, data_verification *out);

/* A contact sheet: `columns` images of each of the first `rows` classes, each `cell` pixels square,
 * as one image. */
berlu_status data_contact_sheet(data_source *source, int rows, int columns, int cell, image *out);

#endif
