/* crash.c - see crash.h. SPDX-License-Identifier: MIT
 *
 * Files and folders are known by their inode; each one seen is held open, so that its number is
 * not given away and its bytes can be read after its name is gone. Read watch(), then
 * crash_write(). This file uses the calls behind the wrapped ones and stdio, which is not
 * wrapped. */
#include "support/crash.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/philox.h"
#include "support/fail.h"

int __real_open(const char *path, int flags, ...);
int __real_openat(int at, const char *path, int flags, ...);
int __real_close(int fd);

typedef struct entry {
    char name[256], link[128]; /* target of a symbolic link, else "" */
    ino_t inode;
} entry;

typedef struct listing {
    entry *list;
    size_t count;
} listing;

typedef struct node {
    ino_t inode;
    int fd, folder, synced;
    char *bytes; /* of a file: what its last fsync saw */
    size_t size;
    listing *states; /* of a folder: as its last fsync saw it (empty, if there was none), and all states since */
    size_t count;
} node;

static node *nodes;
static size_t node_count;
static ino_t root_inode;
static int calls, target, hit;
static char root_path[1024];

static void *grown(void *list, size_t bytes)
{
    void *more = realloc(list, bytes);
    if (!more)
        abort();
    return more;
}

static node *node_find(ino_t inode)
{
    for (size_t i = 0; i < node_count; i++)
        if (nodes[i].inode == inode)
            return &nodes[i];
    return NULL;
}

/* The node of an open file, made where there is none; takes the descriptor. */
static node *node_of(int fd)
{
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0)
        abort();
    node *found = node_find(info.st_ino);
    if (found) {
        __real_close(fd);
        return found;
    }
    nodes = grown(nodes, (node_count + 1) * sizeof *nodes);
    nodes[node_count] = (node){.inode = info.st_ino, .fd = fd, .folder = S_ISDIR(info.st_mode)};
    node *n = &nodes[node_count++];
    if (n->folder) { /* a new folder is empty on the disk */
        n->states = grown(NULL, sizeof *n->states);
        n->states[0] = (listing){0};
        n->count = 1;
    }
    return n;
}

static char *bytes_now(int fd, size_t *size)
{
    char path[64], *bytes = NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FILE *f = fopen(path, "rb");
    if (!f)
        abort();
    *size = 0;
    for (size_t got = 1; got > 0; *size += got) {
        bytes = grown(bytes, *size + 65536);
        got = fread(bytes + *size, 1, 65536, f);
    }
    fclose(f);
    return bytes;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

/* Lists a folder and makes nodes for what is in it. */
static listing listing_now(int folder)
{
    listing found = {0};
    int fd = __real_openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return found; /* removed: it has no names any more */
    for (struct dirent *item; (item = readdir(dir));) {
        struct stat info;
        entry e = {0};
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        snprintf(e.name, sizeof e.name, "%s", item->d_name);
        if (fstatat(folder, e.name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            abort();
        e.inode = info.st_ino;
        if (S_ISLNK(info.st_mode)) {
            if (readlinkat(folder, e.name, e.link, sizeof e.link - 1) <= 0)
                abort();
        } else {
            node_of(__real_openat(folder, e.name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
        }
        found.list = grown(found.list, (found.count + 1) * sizeof *found.list);
        found.list[found.count++] = e;
    }
    closedir(dir);
    if (found.count)
        qsort(found.list, found.count, sizeof *found.list, by_name);
    return found;
}

static int listing_same(const listing *a, const listing *b)
{
    return a->count == b->count && (!a->count || memcmp(a->list, b->list, a->count * sizeof *a->list) == 0);
}

/* The state of every known folder, again and again while new ones turn up. */
static void folders_look(void)
{
    for (size_t i = 0; i < node_count; i++) {
        if (!nodes[i].folder)
            continue;
        listing now = listing_now(nodes[i].fd); /* nodes may move */
        node *n = &nodes[i];
        if (listing_same(&now, &n->states[n->count - 1])) {
            free(now.list);
            continue;
        }
        n->states = grown(n->states, (n->count + 1) * sizeof *n->states);
        n->states[n->count++] = now;
    }
}

static void node_sync(node *n)
{
    n->synced = 1;
    if (!n->folder) {
        free(n->bytes);
        n->bytes = bytes_now(n->fd, &n->size);
        return;
    }
    for (size_t i = 0; i + 1 < n->count; i++)
        free(n->states[i].list);
    n->states[0] = n->states[n->count - 1];
    n->count = 1;
}

/* Before every fsync and rename; `fd` is -1 for the latter. */
static void watch(int fd)
{
    if (hit)
        return;
    folders_look();
    if (++calls == target) {
        hit = 1;
        fail_from(FAIL_FILE, 1);
        return;
    }
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && node_find(info.st_ino)) /* else it lies outside of the root */
        node_sync(node_find(info.st_ino));
}

void crash_start(const char *root, int n)
{
    crash_free();
    snprintf(root_path, sizeof root_path, "%s", root);
    int fd = __real_open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    node *first = node_of(fd);
    root_inode = first->inode;
    folders_look();
    target = n;
    fail_watch(watch);
}

void crash_settle(void)
{
    folders_look();
    for (size_t i = 0; i < node_count; i++)
        node_sync(&nodes[i]);
}

int crash_stop(void)
{
    fail_watch(NULL);
    fail_hit();
    return hit;
}

void crash_free(void)
{
    for (size_t i = 0; i < node_count; i++) {
        __real_close(nodes[i].fd);
        free(nodes[i].bytes);
        for (size_t k = 0; k < nodes[i].count; k++)
            free(nodes[i].states[k].list);
        free(nodes[i].states);
    }
    free(nodes);
    nodes = NULL;
    node_count = 0;
    calls = target = hit = 0;
}

/* ---- the disk after the cut ------------------------------------------------------------------ */

typedef struct cut {
    int mode;
    uint64_t seed, draws;
} cut;

static uint32_t draw(cut *c, uint32_t below)
{
    uint32_t word = philox_draw(c->seed, PURPOSE_TEST, 0, c->draws++, 0).w[0];
    return below ? word % below : 0;
}

/* A file that was changed since its fsync: the old bytes and a part of the new ones, or zeros
 * where they should be. */
static void file_mix(cut *c, const node *n, char *now, size_t *size)
{
    int grew = *size >= n->size && (!n->size || memcmp(now, n->bytes, n->size) == 0);
    uint32_t kind = draw(c, 3);
    if (kind == 0 && n->synced) {
        *size = n->size;
        if (n->size)
            memcpy(now, n->bytes, n->size);
    } else if (kind <= 1 && grew) {
        *size = n->size + draw(c, (uint32_t)(*size - n->size + 1));
    } else if (grew) {
        memset(now + n->size, 0, *size - n->size);
    }
}

static void file_put(cut *c, const node *n, const char *to)
{
    size_t size;
    char *bytes = bytes_now(n->fd, &size);
    int old = c->mode == CRASH_DROP || c->mode == CRASH_NAMES;
    if (old && size < n->size)
        bytes = grown(bytes, n->size + 1);
    if (old) {
        size = n->size;
        if (size)
            memcpy(bytes, n->bytes, size);
    } else if (c->mode == CRASH_ANY) {
        bytes = grown(bytes, (size > n->size ? size : n->size) + 1);
        file_mix(c, n, bytes, &size);
    }
    FILE *f = fopen(to, "wb");
    if (!f || (size && fwrite(bytes, 1, size, f) != size) || fclose(f) != 0)
        abort();
    free(bytes);
}

static void folder_put(cut *c, const node *n, const char *to)
{
    int old = c->mode == CRASH_DROP || c->mode == CRASH_BYTES;
    size_t which = old ? 0 : c->mode == CRASH_ANY ? draw(c, (uint32_t)n->count) : n->count - 1;
    listing names = n->states[which];
    mkdir(to, 0777);
    for (size_t i = 0; i < names.count; i++) {
        char path[1024];
        const entry *e = &names.list[i];
        if (snprintf(path, sizeof path, "%s/%s", to, e->name) >= (int)sizeof path)
            abort();
        if (*e->link) {
            if (symlink(e->link, path) != 0)
                abort();
        } else if (node_find(e->inode)->folder) {
            folder_put(c, node_find(e->inode), path);
        } else {
            file_put(c, node_find(e->inode), path);
        }
    }
}

void crash_write(const char *to, int mode, uint64_t seed)
{
    cut c = {.mode = mode, .seed = seed};
    if (folder_remove(to) != BERLU_OK)
        abort();
    folder_put(&c, node_find(root_inode), to);
}
