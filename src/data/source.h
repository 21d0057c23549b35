/* source.h - the internal interface of a kind of data set, for the files of src/data alone.
 * SPDX-License-Identifier: MIT */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include <pthread.h>

#include "base/arena.h"
#include "data/data.h"

enum { HAS_COARSE = 1, HAS_CLASS_ORDER = 2, HAS_VAL_LABELS = 4, HAS_ARCHIVE = 8, HAS_FILES = 16 };

/* One row of the table in data.c. Everything but open and close may be called by many threads at
 * once. */
typedef struct data_kind {
    const char *name;
    const char *help;                   /* for people: what it is */
    unsigned options;                   /* HAS_ bits: which of data_options mean something to it */
    int (*recognise)(const char *path); /* NULL: only by name */
    berlu_status (*open)(data_source *s, const char *path,
                         const data_options *o); /* fills info and state; close follows on failure too */
    int (*label)(const data_source *s, data_split split, size_t index);
    berlu_status (*read)(data_source *s, data_split split, size_t index, const image_request *request, image *out);
    const char *(*name_of)(const data_source *s, data_split split, size_t index, char *out,
                           size_t size); /* NULL: "train/17" */
    void (*close)(data_source *s);       /* state may be NULL or incomplete */
} data_kind;

/* Finds a published set that was named without a path. The message of BERLU_ERR_INPUT says how to
 * get it. */
berlu_status data_find(const data_kind *kind, char *out, size_t size);
berlu_status data_unknown(const char *name); /* the failure for a name that is nothing */

extern const data_kind data_cifar10, data_cifar100, data_folder, data_synthetic, data_packed;

typedef struct data_bad {
    data_split split;
    size_t index;
    const char *message;
} data_bad;

struct data_source {
    const data_kind *kind;
    data_info info;
    arena memory; /* names; lives as long as the source */
    void *state;  /* the kind's own */
    size_t max_bad;
    pthread_mutex_t lock; /* guards the following fields, and `memory` once the source is open */
    data_bad *bad;
    size_t bad_count, bad_capacity;
    size_t skipped; /* of them, those left out at opening: listed and counted, but not against max_bad */
};

/* Notes while opening, for kinds: a message about something that has no place in the set. */
berlu_status data_report_skipped(data_source *s, const char *message);

#endif
