/* folder_scan.h - the list of files under a folder of classes. SPDX-License-Identifier: MIT */
#ifndef DATA_FOLDER_SCAN_H
#define DATA_FOLDER_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Paths are kept in one block of text, relative to the folder; a file costs its path and sixteen
 * bytes. */
typedef struct scan_file {
    uint64_t path; /* offset into names */
    uint32_t class_at,
        class_length; /* position of the class name in the path; length 0: none (a file beside the classes) */
} scan_file;
typedef struct scan_list {
    char *names;
    size_t names_used, names_capacity;
    scan_file *files;
    size_t count, capacity;
    int natural;   /* timm: class is the last folder; order is natural */
    char *skipped; /* messages about broken or cyclic links, each ended by NUL */
    size_t skipped_used, skipped_count;
} scan_list;

/* Every file with the extension of an image, sorted: by folder, then name (torchvision), or by
 * natural order (timm). Links are followed; broken and cyclic ones are skipped and reported.
 * Folders nested deeper than 16 are refused. Hidden files count, as there. */
berlu_status scan_folder(scan_list *out, const char *root, int natural);
void scan_free(scan_list *list);

/* BERLU_ERR_INPUT when a folder right under the root of a scan is not among the sorted class names:
 * it holds no image. Links that the scan skipped do not count. */
berlu_status scan_empty_class(const scan_list *l, const char *root, const char *const *names, size_t count);

/* The natural order of timm: lower case, runs of digits compared as numbers. Negative, 0, positive
 * like strcmp. */
int order_natural(const char *a, const char *b);

static inline const char *scan_path(const scan_list *l, size_t i)
{
    return l->names + l->files[i].path;
}

#endif
