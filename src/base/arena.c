/* arena.c - see arena.h. SPDX-License-Identifier: MIT
 *
 * Blocks form a list, newest first; only the newest hands out memory. calloc() provides the zeros,
 * which the kernel has ready for large blocks. A request that does not fit gets a block of at least
 * its own size, so an allocation fails only when the system's does. */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_BLOCK = 4096, LARGEST_STEP = 1 << 24 };

struct arena_block {
    arena_block *older;
    size_t size, used; /* of the bytes that follow this header */
};

/* Offset of the next allocation in this block; may lie past its end. */
static size_t block_offset(const arena_block *block, size_t align)
{
    uintptr_t at = (uintptr_t)(block + 1) + block->used;
    return block->used + (size_t)(-at & (align - 1));
}

static int block_fits(const arena_block *block, size_t bytes, size_t align)
{
    size_t offset = block_offset(block, align);
    return offset <= block->size && bytes <= block->size - offset;
}

static arena_block *block_add(arena *a, size_t bytes, size_t align)
{
    size_t need, size = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK;
    if (size > LARGEST_STEP)
        size = LARGEST_STEP;
    if (__builtin_add_overflow(bytes, align, &need) || need > SIZE_MAX - sizeof(arena_block)) {
        berlu_fail_memory(bytes, "arena");
        return NULL;
    }
    if (size < need)
        size = need;
    arena_block *block = calloc(1, sizeof *block + size);
    if (!block) {
        berlu_fail_memory(size, "arena");
        return NULL;
    }
    block->size = size;
    block->older = a->blocks;
    a->blocks = block;
    a->total += sizeof *block + size;
    return block;
}

void *arena_alloc(arena *a, size_t bytes, size_t align)
{
    arena_block *block = a->blocks;
    assert(align > 0 && (align & (align - 1)) == 0);
    if (!block || !block_fits(block, bytes, align))
        block = block_add(a, bytes, align);
    if (!block)
        return NULL;
    size_t offset = block_offset(block, align);
    assert(offset <= block->size && bytes <= block->size - offset);
    block->used = offset + bytes;
    a->used += bytes;
    return (char *)(block + 1) + offset;
}

void *arena_array(arena *a, size_t count, size_t size, size_t align)
{
    size_t bytes;
    if (!size_mul(count, size, &bytes)) {
        berlu_fail(BERLU_ERR_MEMORY, "arena: %zu items of %zu bytes do not fit into memory", count, size);
        return NULL;
    }
    return arena_alloc(a, bytes, align);
}

char *arena_strdup(arena *a, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = arena_alloc(a, bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *arena_printf(arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *out = length < 0 ? NULL : arena_alloc(a, (size_t)length + 1, 1);
    if (out)
        vsnprintf(out, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return out;
}

void arena_free(arena *a)
{
    for (arena_block *block = a->blocks; block;) {
        arena_block *older = block->older;
        free(block);
        block = older;
    }
    *a = (arena){0};
}

void *memory_aligned(size_t bytes, const char *what)
{
    /* From 4 MiB on the buffer starts on a huge page, so that the advice below covers all of it. */
    const size_t line = 64, huge = 2u << 20;
    size_t align = bytes >= 2 * huge ? huge : line;
    void *memory = NULL;
    if (posix_memalign(&memory, align, bytes ? bytes : line) != 0) {
        berlu_fail_memory(bytes, what);
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (align == huge) /* advice only: a refusal costs speed, nothing else */
        (void)madvise(memory, bytes & ~(size_t)4095, MADV_HUGEPAGE);
#endif
    return memory;
}

double memory_free(void)
{
    char line[256];
    double kib = 0, available = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf", &kib) == 1)
            available = kib * 1024;
    if (file)
        fclose(file);
    return available;
}
