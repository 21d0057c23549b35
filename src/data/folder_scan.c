/* folder_scan.c - walks a folder of classes and puts its files in the order others use. SPDX-License-Identifier: MIT
 *
 * The number of a class and the order of the samples decide what a trained head means, so both customs are followed
 * exactly: torchvision takes the folders right under the root as classes and sorts by code point; timm takes the last
 * folder of a path as its class and sorts naturally ("n2" before "n10", case ignored). */
#include "data/folder_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/text.h"

enum { DEPTH_LIMIT = 16 };

static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
enum { EXTENSIONS_OF_TIMM = 3 };

/* Formats that cannot be decoded are listed too (torchvision counts them as samples): they will be named as broken. */
static int is_image(const char *name, int natural)
{
    const char *dot = strrchr(name, '.');
    size_t known = natural ? EXTENSIONS_OF_TIMM : COUNT(extensions);
    for (size_t i = 0; dot && i < known; i++)
        if (strcasecmp(dot, extensions[i]) == 0)
            return 1;
    return 0;
}

static size_t digits_at(const char *s)
{
    size_t n = 0;
    while (isdigit((unsigned char)s[n]))
        n++;
    return n;
}

/* Two runs of digits as numbers of any length. */
static int order_numbers(const char *a, size_t la, const char *b, size_t lb)
{
    while (la > 1 && *a == '0')
        a++, la--;
    while (lb > 1 && *b == '0')
        b++, lb--;
    if (la != lb)
        return la < lb ? -1 : 1;
    return strncmp(a, b, la);
}

/* Python compares the lists [text, number, text, ...]; a text that ends where digits begin is shorter, hence less. */
int order_natural(const char *a, const char *b)
{
    while (*a && *b) {
        size_t la = digits_at(a), lb = digits_at(b);
        if (la && lb) {
            int order = order_numbers(a, la, b, lb);
            if (order != 0)
                return order;
            a += la, b += lb;
            continue;
        }
        if (la || lb)
            return la ? -1 : 1;
        int ca = tolower((unsigned char)*a), cb = tolower((unsigned char)*b);
        if (ca != cb)
            return ca - cb;
        a++, b++;
    }
    return (*a != 0) - (*b != 0);
}

static berlu_status names_add(scan_list *l, const char *path, size_t length, uint64_t *at)
{
    if (l->names_used + length + 1 > l->names_capacity) {
        size_t room = 2 * l->names_capacity + length + 4096;
        char *grown = realloc(l->names, room);
        if (!grown)
            return berlu_fail_memory(room, "the list of files");
        l->names = grown;
        l->names_capacity = room;
    }
    *at = l->names_used;
    memcpy(l->names + l->names_used, path, length + 1);
    l->names_used += length + 1;
    return BERLU_OK;
}

/* `path` is relative to the root. */
static berlu_status file_add(scan_list *l, const char *path)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 1024;
        scan_file *grown = realloc(l->files, room * sizeof *grown);
        if (!grown)
            return berlu_fail_memory(room * sizeof *grown, "the list of files");
        l->files = grown;
        l->room = room;
    }
    scan_file *f = &l->files[l->count];
    *f = (scan_file){0};
    const char *last = strrchr(path, '/'), *first = strchr(path, '/');
    if (last && l->natural) {
        const char *begin = last;
        while (begin > path && begin[-1] != '/')
            begin--;
        f->class_at = (uint32_t)(begin - path);
        f->class_length = (uint32_t)(last - begin);
    } else if (first) {
        f->class_length = (uint32_t)(first - path);
    }
    berlu_status status = names_add(l, path, strlen(path), &f->path);
    l->count += status == BERLU_OK;
    return status;
}

static berlu_status walk(scan_list *l, text *path, size_t root, int depth);

/* One name inside the folder that `path` holds. */
static berlu_status scan_entry(scan_list *l, text *path, size_t root, int depth, const struct dirent *entry)
{
    size_t length = path->length;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return BERLU_OK;
    int picture = is_image(entry->d_name, l->natural);
    if (entry->d_type == DT_REG && !picture)
        return BERLU_OK;
    text_add(path, "/%s", entry->d_name);
    berlu_status status = text_status(path);
    if (status != BERLU_OK)
        return status;
    struct stat info;
    int type = entry->d_type;
    if (type != DT_REG && type != DT_DIR) /* a link, or a file system that does not tell */
        type = stat(path->data, &info) != 0 ? DT_UNKNOWN
               : S_ISDIR(info.st_mode)      ? DT_DIR
               : S_ISREG(info.st_mode)      ? DT_REG
                                            : DT_UNKNOWN;
    if (type == DT_DIR)
        status = walk(l, path, root, depth + 1);
    else if (picture && type == DT_REG)
        status = file_add(l, path->data + root + 1);
    path->length = length;
    path->data[length] = '\0';
    return status;
}

static berlu_status walk(scan_list *l, text *path, size_t root, int depth)
{
    if (depth > DEPTH_LIMIT)
        return berlu_fail(BERLU_ERR_INPUT, "%s: folders nested deeper than %d (a link in a circle?)", path->data,
                          DEPTH_LIMIT);
    DIR *folder = opendir(path->data);
    if (!folder)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %s", path->data, strerror(errno));
    berlu_status status = BERLU_OK;
    const struct dirent *entry;
    errno = 0;
    while (status == BERLU_OK && (entry = readdir(folder))) {
        status = scan_entry(l, path, root, depth, entry);
        errno = 0;
    }
    if (status == BERLU_OK && errno != 0)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: %s", path->data, strerror(errno));
    closedir(folder);
    return status;
}

/* torchvision sorts folders as whole paths, then names inside them. */
static int order_by_folder(const void *a, const void *b, void *names)
{
    const char *pa = (const char *)names + ((const scan_file *)a)->path,
               *pb = (const char *)names + ((const scan_file *)b)->path;
    const char *fa = strrchr(pa, '/'), *fb = strrchr(pb, '/');
    size_t la = fa ? (size_t)(fa - pa) : 0, lb = fb ? (size_t)(fb - pb) : 0;
    int order = memcmp(pa, pb, la < lb ? la : lb);
    if (order == 0 && la != lb)
        order = la < lb ? -1 : 1;
    return order ? order : strcmp(pa + la, pb + lb);
}

static int order_by_nature(const void *a, const void *b, void *names)
{
    const char *pa = (const char *)names + ((const scan_file *)a)->path,
               *pb = (const char *)names + ((const scan_file *)b)->path;
    int order = order_natural(pa, pb);
    return order ? order : strcmp(pa, pb);
}

berlu_status scan_folder(scan_list *out, const char *root, int natural)
{
    scan_list l = {.natural = natural};
    text path = {0};
    text_string(&path, root);
    berlu_status status = text_status(&path);
    while (status == BERLU_OK && path.length > 1 && path.data[path.length - 1] == '/')
        path.data[--path.length] = '\0';
    if (status == BERLU_OK)
        status = walk(&l, &path, path.length, 0);
    text_free(&path);
    if (status != BERLU_OK) {
        scan_free(&l);
        return status;
    }
    if (l.count)
        qsort_r(l.files, l.count, sizeof *l.files, natural ? order_by_nature : order_by_folder, l.names);
    *out = l;
    return BERLU_OK;
}

void scan_free(scan_list *l)
{
    free(l->names);
    free(l->files);
    *l = (scan_list){0};
}

static int is_folder_at(const char *root, const struct dirent *entry)
{
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", root, entry->d_name);
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int order_pointers(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

berlu_status scan_empty_class(const char *root, const char *const *names, size_t count)
{
    berlu_status status = BERLU_OK;
    DIR *folder = opendir(root);
    if (!folder)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %s", root, strerror(errno));
    const struct dirent *entry;
    while (status == BERLU_OK && (entry = readdir(folder))) {
        const char *name = entry->d_name;
        if (name[0] != '.' && !bsearch(&name, names, count, sizeof *names, order_pointers) && is_folder_at(root, entry))
            status = berlu_fail(BERLU_ERR_INPUT, "%s/%s: a class without pictures; remove the folder or fill it", root,
                                name);
    }
    closedir(folder);
    return status;
}
