/* algorithms.h - which product algorithm was chosen for which shape, as a list and as a file.
 * SPDX-License-Identifier: MIT
 *
 * A choice by timing differs from day to day, and with it the last bits of a product; so a choice
 * is made once and kept. The file is text, a heading and a line per choice:
 *
 *     berlu cuBLASLt algorithms 1
 *     NVIDIA H200, 132 processors|13.1.0|576x66560x192 tn bf16>bf16 bias|<128 hexadecimal digits>
 *
 * The digits mean something to that version of the library alone. */
#ifndef CUDA_ALGORITHMS_H
#define CUDA_ALGORITHMS_H

#include "base/text.h"
#include "cuda/cuda_api.h"

typedef struct algorithm_entry {
    char *machine, *version, *shape; /* one allocation, which `machine` begins */
    lt_algorithm algorithm;
} algorithm_entry;

typedef struct algorithm_list {
    algorithm_entry *entries;
    int count, capacity;
} algorithm_list; /* {0} is empty */

void algorithms_free(algorithm_list *list); /* leaves {0} */
/* Adds a choice, or replaces the one for the same machine, version and shape. */
berlu_status algorithms_set(algorithm_list *list, const char *machine, const char *version, const char *shape,
                            const lt_algorithm *algorithm);
/* The choice for a shape; version NULL: of any version. NULL where there is none. */
const algorithm_entry *algorithms_find(const algorithm_list *list, const char *machine, const char *version,
                                       const char *shape);

int algorithms_is_text(const char *words); /* a list itself, not the name of a file */

/* Reads a text of `size` bytes; `name` is for messages, which give the line.
 * Adds to the list; on failure it may hold some of the lines. */
berlu_status algorithms_parse(algorithm_list *list, const char *data, size_t size, const char *name);
void algorithms_print(const algorithm_list *list, text *out);

berlu_status algorithms_read(algorithm_list *list, const char *path); /* a missing file is an empty list */
berlu_status algorithms_write(const algorithm_list *list,
                              const char *path); /* with what others wrote there meanwhile */

#endif
