/* cifar_layout.h - the published files of a CIFAR set. SPDX-License-Identifier: MIT
 *
 * The readers take the layout as an argument, so that tests can describe a set of a few records. */
#ifndef DATA_CIFAR_LAYOUT_H
#define DATA_CIFAR_LAYOUT_H

#include "data/data.h"

enum { CIFAR_FILES = 6, CIFAR_SIDE = 32, CIFAR_PLANE = CIFAR_SIDE * CIFAR_SIDE };

typedef struct cifar_layout {
    const char *kind;
    const char *folder; /* inside the archive */
    size_t files;       /* the last one is the test split */
    const char *file_names[CIFAR_FILES];
    size_t records[CIFAR_FILES]; /* all training files alike */
    int label_bytes;             /* 2: coarse, then fine */
    size_t classes, coarse_classes;
    const char *const *names, *const *coarse_names;
    const unsigned char *coarse_of; /* by fine label */
    double mean[3], std[3];
    const char *archive, *url, *sha256; /* as published */
    uint64_t archive_bytes;
    const char *python_file, *python_meta; /* a file of the Python version, which is not read */
} cifar_layout;

extern const cifar_layout cifar10_layout, cifar100_layout;

static inline size_t cifar_record_bytes(const cifar_layout *l)
{
    return (size_t)l->label_bytes + 3 * CIFAR_PLANE;
}

/* The archive must have the published hash, or `hash`. What else it may be is named: the other set,
 * the Python version, an archive that was cut, a folder. */
berlu_status cifar_archive_check(const cifar_layout *layout, const char *path, const char *hash);

/* Whether a folder (or the folder inside it that unpacking makes) holds the whole set. */
berlu_status cifar_verify(const cifar_layout *layout, const char *path);

berlu_status cifar_open_layout(data_source *s, const char *path, const data_options *o, const cifar_layout *layout);

#endif
