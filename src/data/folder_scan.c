/* folder_scan.c - lists a folder of classes in the order of torchvision or timm.
 * SPDX-License-Identifier: MIT
 *
 * The number of a class and the order of the samples define the meaning of a trained head, so both
 * conventions are followed exactly: torchvision takes the folders right under the root as classes
 * and sorts by code point; timm takes the last folder of a path as its class and sorts naturally
 * ("n2" before "n10", case ignored).
 *
 * Links are followed. The folders above the one being read are known by device and inode, those
 * above the root included, so a link to one of them is a cycle: it is skipped and reported, and the
 * rest of the set stays usable. */
#include "data/folder_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"

enum { DEPTH_LIMIT = 16 };

static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
enum { EXTENSIONS_OF_TIMM = 3 };

/* Formats that cannot be decoded are listed too (torchvision counts them as samples): they will be
 * reported as broken. */
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

/* Compares two runs of digits as numbers of any length. */
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

/* Python compares the lists [text, number, text, ...]; a text that ends where digits begin is
 * shorter, hence less. */
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
        size_t capacity = 2 * l->names_capacity + length + 4096;
        char *grown = realloc(l->names, capacity);
        if (!grown)
            return berlu_fail_memory(capacity, "the list of files");
        l->names = grown;
        l->names_capacity = capacity;
    }
    *at = l->names_used;
    memcpy(l->names + l->names_used, path, length + 1);
    l->names_used += length + 1;
    return BERLU_OK;
}

/* `path` is relative to the root. */
static berlu_status file_add(scan_list *l, const char *path)
{
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : 1024;
        scan_file *grown = realloc(l->files, capacity * sizeof *grown);
        if (!grown)
            return berlu_fail_memory(capacity * sizeof *grown, "the list of files");
        l->files = grown;
        l->capacity = capacity;
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

/* ---- traversal ------------------------------------------------------------------------------- */

/* A folder and its ancestors, up to the root of the file system. */
typedef struct ancestor {
    const struct ancestor *above;
    dev_t device;
    ino_t inode;
} ancestor;

typedef struct walker {
    scan_list *list;
    text path;   /* of the current folder */
    size_t root; /* its length at the start */
} walker;

static int is_above(const ancestor *a, const struct stat *info)
{
    for (; a; a = a->above)
        if (a->device == info->st_dev && a->inode == info->st_ino)
            return 1;
    return 0;
}

static berlu_status skip_note(scan_list *l, const char *path, const char *why)
{
    size_t length = strlen(path) + strlen(why) + 3;
    char *grown = realloc(l->skipped, l->skipped_used + length);
    if (!grown)
        return berlu_fail_memory(l->skipped_used + length, "the list of files");
    snprintf(grown + l->skipped_used, length, "%s: %s", path, why);
    l->skipped = grown;
    l->skipped_used += length;
    l->skipped_count++;
    return BERLU_OK;
}

static berlu_status walk(walker *w, const ancestor *above, int depth);

/* A folder, a file, or neither, as stat() sees it. */
static int kind_of(const struct stat *info)
{
    return S_ISDIR(info->st_mode) ? DT_DIR : S_ISREG(info->st_mode) ? DT_REG : DT_UNKNOWN;
}

/* The name that `w->path` ends with now, inside the folder `above`. */
static berlu_status entry_take(walker *w, const ancestor *above, int depth, int type, int is_image_name)
{
    const char *path = w->path.data;
    struct stat info;
    if (type == DT_REG)
        return file_add(w->list, path + w->root + 1);
    if (type != DT_DIR && stat(path, &info) != 0) {
        int matters = errno == ELOOP || is_image_name;
        return matters ? skip_note(w->list, path, errno == ELOOP ? "a link in a circle" : "a link to nothing")
                       : BERLU_OK;
    }
    if (type != DT_DIR && (type = kind_of(&info)) == DT_DIR && is_above(above, &info))
        return skip_note(w->list, path, "a link to a folder that holds it");
    if (type == DT_DIR)
        return walk(w, above, depth + 1);
    return type == DT_REG && is_image_name ? file_add(w->list, path + w->root + 1) : BERLU_OK;
}

static berlu_status scan_entry(walker *w, const ancestor *above, int depth, const struct dirent *entry)
{
    size_t length = w->path.length;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return BERLU_OK;
    int is_image_name = is_image(entry->d_name, w->list->natural);
    if (entry->d_type == DT_REG && !is_image_name)
        return BERLU_OK;
    text_add(&w->path, "/%s", entry->d_name);
    TRY(text_status(&w->path));
    berlu_status status = entry_take(w, above, depth, entry->d_type, is_image_name);
    w->path.length = length;
    w->path.data[length] = '\0';
    return status;
}

static berlu_status walk(walker *w, const ancestor *above, int depth)
{
    struct stat info;
    if (depth > DEPTH_LIMIT)
        return berlu_fail(BERLU_ERR_INPUT, "%s: folders nested deeper than %d", w->path.data, DEPTH_LIMIT);
    DIR *folder = opendir(w->path.data);
    if (!folder || fstat(dirfd(folder), &info) != 0) {
        berlu_status status = file_fail_read(w->path.data);
        if (folder)
            closedir(folder);
        return status;
    }
    const ancestor here = {above, info.st_dev, info.st_ino};
    berlu_status status;
    const struct dirent *entry;
    for (;;) {
        TRY_DONE(folder_next(&entry, folder, w->path.data));
        if (!entry)
            break;
        TRY_DONE(scan_entry(w, &here, depth, entry));
    }
done:
    closedir(folder);
    return status;
}

/* Traverses with the folders above the root as ancestors; restores the path afterwards. */
static berlu_status walk_from(walker *w, const ancestor *below, int steps)
{
    enum { ABOVE_MAX = 64 };
    struct stat info;
    text up = {0};
    text_string(&up, w->path.data);
    for (int i = 0; i < steps; i++)
        text_string(&up, "/..");
    berlu_status status = text_status(&up);
    int there = status == BERLU_OK && stat(up.data, &info) == 0;
    text_free(&up);
    if (status != BERLU_OK)
        return status;
    const ancestor here = {below, there ? info.st_dev : 0, there ? info.st_ino : 0};
    int top = !there || (below && below->device == here.device && below->inode == here.inode) || steps == ABOVE_MAX;
    return top ? walk(w, below, 0) : walk_from(w, &here, steps + 1);
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
    walker w = {.list = &l};
    text_string(&w.path, root);
    berlu_status status = text_status(&w.path);
    while (status == BERLU_OK && w.path.length > 1 && w.path.data[w.path.length - 1] == '/')
        w.path.data[--w.path.length] = '\0';
    w.root = w.path.length;
    if (status == BERLU_OK)
        status = walk_from(&w, NULL, 1);
    text_free(&w.path);
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
    free(l->skipped);
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

/* Whether ROOT/NAME was left out of the scan, whose messages begin with the path. */
static int was_skipped(const scan_list *l, const char *root, const char *name)
{
    char path[4096];
    size_t length = strlen(root);
    while (length > 1 && root[length - 1] == '/')
        length--;
    int used = snprintf(path, sizeof path, "%.*s/%s: ", (int)length, root, name);
    const char *message = l->skipped;
    for (size_t i = 0; i < l->skipped_count; i++, message += strlen(message) + 1)
        if (used < (int)sizeof path && strncmp(message, path, (size_t)used) == 0)
            return 1;
    return 0;
}

berlu_status scan_empty_class(const scan_list *l, const char *root, const char *const *names, size_t count)
{
    DIR *folder = opendir(root);
    if (!folder)
        return file_fail_read(root);
    const struct dirent *entry;
    berlu_status status;
    while ((status = folder_next(&entry, folder, root)) == BERLU_OK && entry) {
        const char *name = entry->d_name;
        if (name[0] != '.' && !bsearch(&name, names, count, sizeof *names, order_pointers) &&
            is_folder_at(root, entry) && !was_skipped(l, root, name))
            TRY_DONE(
                berlu_fail(BERLU_ERR_INPUT, "%s/%s: a class without images; remove the folder or fill it", root, name));
    }
done:
    closedir(folder);
    return status;
}
