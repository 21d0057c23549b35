/* arena.h - memory that is allocated piece by piece and freed as a whole.
 * SPDX-License-Identifier: MIT
 *
 * For objects of one lifetime: the nodes of a graph, the strings of a settings file. Allocations
 * come from blocks that double in size; nothing is freed before arena_free(). An arena belongs to
 * one thread at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/status.h"

typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *blocks; /* newest first */
    size_t used, total;  /* bytes handed out; bytes held, blocks included */
} arena;                 /* {0} is an empty arena */

/* Returns `bytes` zeroed bytes aligned to `align` (a power of two up to 4096), or NULL with the
 * error message set. */
void *arena_alloc(arena *a, size_t bytes, size_t align);
char *arena_strdup(arena *a, const char *text);
char *arena_printf(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_free(arena *a); /* {0} again; may be reused */

#define ARENA_NEW(a, type)          ((type *)arena_alloc((a), sizeof(type), _Alignof(type)))
#define ARENA_ARRAY(a, type, count) ((type *)arena_array((a), (count), sizeof(type), _Alignof(type)))
void *arena_array(arena *a, size_t count, size_t size, size_t align); /* checks count * size for overflow */

/* Large buffers outside any arena: aligned to 64 bytes (huge-page advice from 4 MiB on), not
 * zeroed. Freed with free(). */
void *memory_aligned(size_t bytes, const char *what);

/* Bytes of memory that the machine has left; 0 where that is not known. The system grants more, and
 * later kills who uses it. */
double memory_free(void);

/* *out = a * b, or false when that does not fit. */
static inline int size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

#endif
