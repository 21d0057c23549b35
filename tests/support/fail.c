/* fail.c - see fail.h. SPDX-License-Identifier: MIT
 *
 * -Wl,--wrap=malloc makes every call of malloc() in our objects a call of __wrap_malloc(), and
 * __real_malloc() the true one. The list of wrapped names stands in cmake/layers.cmake. */
#include "support/fail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

static void (*watcher)(int fd);
static atomic_int kinds_now, calls, target, hit, for_ever, cut;

static void arm(int kinds, int n, int always)
{
    kinds_now = 0; /* off while the rest changes */
    calls = hit = cut = 0;
    target = n;
    for_ever = always;
    kinds_now = n > 0 ? kinds : 0;
}

void fail_after(int kinds, int n)
{
    arm(kinds, n, 0);
}

void fail_from(int kinds, int n)
{
    arm(kinds, n, 1);
}

int fail_hit(void)
{
    int was = hit;
    kinds_now = 0;
    return was;
}

void fail_watch(void (*watch)(int fd))
{
    watcher = watch;
}

int fail_calls(void)
{
    return calls;
}

/* Whether this call of `kind` is to fail; then errno is set. */
static int now(int kind, int error)
{
    if (!(kinds_now & kind))
        return 0;
    int call = ++calls;
    if (call != target && !(for_ever && call > target))
        return 0;
    hit = 1;
    errno = error;
    return 1;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    return now(FAIL_ALLOC, ENOMEM) ? NULL : __real_malloc(bytes);
}

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return now(FAIL_ALLOC, ENOMEM) ? NULL : __real_calloc(count, bytes);
}

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes)
{
    return now(FAIL_ALLOC, ENOMEM) ? NULL : __real_realloc(memory, bytes);
}

void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    return now(FAIL_ALLOC, ENOMEM) ? NULL : __real_aligned_alloc(align, bytes);
}

int __real_posix_memalign(void **out, size_t align, size_t bytes);
int __wrap_posix_memalign(void **out, size_t align, size_t bytes);
int __wrap_posix_memalign(void **out, size_t align, size_t bytes)
{
    return now(FAIL_ALLOC, ENOMEM) ? ENOMEM : __real_posix_memalign(out, align, bytes);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return now(FAIL_ALLOC, ENOMEM) ? NULL : __real_strdup(text);
}

char *__real_strndup(const char *text, size_t count);
char *__wrap_strndup(const char *text, size_t count);
char *__wrap_strndup(const char *text, size_t count)
{
    return now(FAIL_ALLOC, ENOMEM) ? NULL : __real_strndup(text, count);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = (mode_t)va_arg(args, int);
        va_end(args);
    }
    return now(FAIL_OPEN, EACCES) || now(FAIL_MANY, EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = (mode_t)va_arg(args, int);
        va_end(args);
    }
    return now(FAIL_OPEN, EACCES) || now(FAIL_MANY, EMFILE) ? -1 : __real_openat(at, path, flags, mode);
}

ssize_t __real_read(int fd, void *bytes, size_t count);
ssize_t __wrap_read(int fd, void *bytes, size_t count);
ssize_t __wrap_read(int fd, void *bytes, size_t count)
{
    return now(FAIL_READ, EIO) ? -1 : __real_read(fd, bytes, count);
}

ssize_t __real_pread(int fd, void *bytes, size_t count, off_t at);
ssize_t __wrap_pread(int fd, void *bytes, size_t count, off_t at);
ssize_t __wrap_pread(int fd, void *bytes, size_t count, off_t at)
{
    return now(FAIL_READ, EIO) ? -1 : __real_pread(fd, bytes, count, at);
}

struct dirent *__real_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder)
{
    return now(FAIL_READ, EIO) ? NULL : __real_readdir(folder);
}

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    if (cut && kinds_now & FAIL_SHORT) {
        errno = ENOSPC;
        return -1;
    }
    if (now(FAIL_SHORT, 0)) {
        cut = 1;
        count /= 2;
        return count ? __real_write(fd, bytes, count) : 0;
    }
    return now(FAIL_WRITE, ENOSPC) ? -1 : __real_write(fd, bytes, count);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    if (watcher)
        watcher(fd);
    return now(FAIL_SYNC, EIO) ? -1 : watcher ? 0 : __real_fsync(fd);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    return now(FAIL_RENAME, EACCES) ? -1 : __real_rename(from, to);
}

int __real_renameat(int from_at, const char *from, int to_at, const char *to);
int __wrap_renameat(int from_at, const char *from, int to_at, const char *to);
int __wrap_renameat(int from_at, const char *from, int to_at, const char *to)
{
    if (watcher)
        watcher(-1);
    return now(FAIL_RENAME, EACCES) ? -1 : __real_renameat(from_at, from, to_at, to);
}

int __real_symlinkat(const char *target_path, int at, const char *path);
int __wrap_symlinkat(const char *target_path, int at, const char *path);
int __wrap_symlinkat(const char *target_path, int at, const char *path)
{
    return now(FAIL_RENAME, EACCES) ? -1 : __real_symlinkat(target_path, at, path);
}

int __real_symlink(const char *target_path, const char *path);
int __wrap_symlink(const char *target_path, const char *path);
int __wrap_symlink(const char *target_path, const char *path)
{
    return now(FAIL_RENAME, EACCES) ? -1 : __real_symlink(target_path, path);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    int failed = now(FAIL_CLOSE, EIO), result = __real_close(fd);
    if (failed)
        errno = EIO;
    return failed ? -1 : result;
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    return now(FAIL_MKDIR, ENOSPC) ? -1 : __real_mkdir(path, mode);
}

int __real_mkdirat(int at, const char *path, mode_t mode);
int __wrap_mkdirat(int at, const char *path, mode_t mode);
int __wrap_mkdirat(int at, const char *path, mode_t mode)
{
    return now(FAIL_MKDIR, ENOSPC) ? -1 : __real_mkdirat(at, path, mode);
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    return now(FAIL_TRUNCATE, EIO) ? -1 : __real_ftruncate(fd, size);
}

/* ---- arenas ---------------------------------------------------------------------------------- */

static int arena_fails(size_t bytes)
{
    if (!now(FAIL_ARENA, ENOMEM))
        return 0;
    berlu_fail_memory(bytes, "arena");
    return 1;
}

void *__real_arena_alloc(arena *a, size_t bytes, size_t align);
void *__wrap_arena_alloc(arena *a, size_t bytes, size_t align);
void *__wrap_arena_alloc(arena *a, size_t bytes, size_t align)
{
    return arena_fails(bytes) ? NULL : __real_arena_alloc(a, bytes, align);
}

void *__real_arena_array(arena *a, size_t count, size_t size, size_t align);
void *__wrap_arena_array(arena *a, size_t count, size_t size, size_t align);
void *__wrap_arena_array(arena *a, size_t count, size_t size, size_t align)
{
    return arena_fails(count * size) ? NULL : __real_arena_array(a, count, size, align);
}

char *__real_arena_strdup(arena *a, const char *text);
char *__wrap_arena_strdup(arena *a, const char *text);
char *__wrap_arena_strdup(arena *a, const char *text)
{
    return arena_fails(0) ? NULL : __real_arena_strdup(a, text);
}

char *__wrap_arena_printf(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *__wrap_arena_printf(arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *out = arena_fails((size_t)length + 1) ? NULL : __real_arena_alloc(a, (size_t)length + 1, 1);
    if (out)
        vsnprintf(out, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return out;
}

/* ---- libraries that take an allocator -------------------------------------------------------- */

static void *sqlite_malloc(int bytes)
{
    return malloc((size_t)bytes);
}

static void *sqlite_realloc(void *memory, int bytes)
{
    return realloc(memory, (size_t)bytes);
}

static int sqlite_size(void *memory)
{
    return (int)malloc_usable_size(memory);
}

static int sqlite_roundup(int bytes)
{
    return (bytes + 7) & ~7;
}

static int sqlite_start(void *context)
{
    (void)context;
    return SQLITE_OK;
}

static void sqlite_stop(void *context)
{
    (void)context;
}

void fail_json(void)
{
    json_set_alloc_funcs(malloc, free);
}

void fail_sqlite(void)
{
    static sqlite3_mem_methods methods = {.xMalloc = sqlite_malloc,
                                          .xFree = free,
                                          .xRealloc = sqlite_realloc,
                                          .xSize = sqlite_size,
                                          .xRoundup = sqlite_roundup,
                                          .xInit = sqlite_start,
                                          .xShutdown = sqlite_stop};
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK)
        abort(); /* SQLite was used before */
}
