/* yardstick.c - see yardstick.h. SPDX-License-Identifier: MIT
 *
 * Groups of four loads, then four stores, as the kernels do. n is cut to whole groups; the rest goes one by one. */
#include "bench/yardstick.h"

#include <string.h>

#include "base/cpu.h"
#include "base/threads.h"

static void copy_libc(float *y, const float *x, const float *dy, size_t n)
{
    (void)dy;
    memcpy(y, x, n * sizeof *y);
}

static void add_plain(float *y, const float *x, const float *dy, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] + dy[i];
}

#ifdef __x86_64__
#include <immintrin.h>

__attribute__((target("avx2"))) static void copy_avx2(float *y, const float *x, const float *dy, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256 a = _mm256_load_ps(x + i), b = _mm256_load_ps(x + i + 8);
        __m256 c = _mm256_load_ps(x + i + 16), d = _mm256_load_ps(x + i + 24);
        _mm256_store_ps(y + i, a);
        _mm256_store_ps(y + i + 8, b);
        _mm256_store_ps(y + i + 16, c);
        _mm256_store_ps(y + i + 24, d);
    }
    copy_libc(y + i, x + i, dy, n - i);
}

__attribute__((target("avx2"))) static void copy_avx2_stream(float *y, const float *x, const float *dy, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256 a = _mm256_load_ps(x + i), b = _mm256_load_ps(x + i + 8);
        __m256 c = _mm256_load_ps(x + i + 16), d = _mm256_load_ps(x + i + 24);
        _mm256_stream_ps(y + i, a);
        _mm256_stream_ps(y + i + 8, b);
        _mm256_stream_ps(y + i + 16, c);
        _mm256_stream_ps(y + i + 24, d);
    }
    _mm_sfence();
    copy_libc(y + i, x + i, dy, n - i);
}

__attribute__((target("avx512f"))) static void copy_avx512(float *y, const float *x, const float *dy, size_t n)
{
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m512 a = _mm512_load_ps(x + i), b = _mm512_load_ps(x + i + 16);
        __m512 c = _mm512_load_ps(x + i + 32), d = _mm512_load_ps(x + i + 48);
        _mm512_store_ps(y + i, a);
        _mm512_store_ps(y + i + 16, b);
        _mm512_store_ps(y + i + 32, c);
        _mm512_store_ps(y + i + 48, d);
    }
    copy_libc(y + i, x + i, dy, n - i);
}

__attribute__((target("avx512f"))) static void copy_avx512_stream(float *y, const float *x, const float *dy, size_t n)
{
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m512 a = _mm512_load_ps(x + i), b = _mm512_load_ps(x + i + 16);
        __m512 c = _mm512_load_ps(x + i + 32), d = _mm512_load_ps(x + i + 48);
        _mm512_stream_ps(y + i, a);
        _mm512_stream_ps(y + i + 16, b);
        _mm512_stream_ps(y + i + 32, c);
        _mm512_stream_ps(y + i + 48, d);
    }
    _mm_sfence();
    copy_libc(y + i, x + i, dy, n - i);
}

__attribute__((target("avx2"))) static void add_avx2(float *y, const float *x, const float *dy, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256 a = _mm256_add_ps(_mm256_load_ps(x + i), _mm256_load_ps(dy + i));
        __m256 b = _mm256_add_ps(_mm256_load_ps(x + i + 8), _mm256_load_ps(dy + i + 8));
        __m256 c = _mm256_add_ps(_mm256_load_ps(x + i + 16), _mm256_load_ps(dy + i + 16));
        __m256 d = _mm256_add_ps(_mm256_load_ps(x + i + 24), _mm256_load_ps(dy + i + 24));
        _mm256_store_ps(y + i, a);
        _mm256_store_ps(y + i + 8, b);
        _mm256_store_ps(y + i + 16, c);
        _mm256_store_ps(y + i + 24, d);
    }
    add_plain(y + i, x + i, dy + i, n - i);
}

__attribute__((target("avx2"))) static void add_avx2_stream(float *y, const float *x, const float *dy, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256 a = _mm256_add_ps(_mm256_load_ps(x + i), _mm256_load_ps(dy + i));
        __m256 b = _mm256_add_ps(_mm256_load_ps(x + i + 8), _mm256_load_ps(dy + i + 8));
        __m256 c = _mm256_add_ps(_mm256_load_ps(x + i + 16), _mm256_load_ps(dy + i + 16));
        __m256 d = _mm256_add_ps(_mm256_load_ps(x + i + 24), _mm256_load_ps(dy + i + 24));
        _mm256_stream_ps(y + i, a);
        _mm256_stream_ps(y + i + 8, b);
        _mm256_stream_ps(y + i + 16, c);
        _mm256_stream_ps(y + i + 24, d);
    }
    _mm_sfence();
    add_plain(y + i, x + i, dy + i, n - i);
}

__attribute__((target("avx512f"))) static void add_avx512(float *y, const float *x, const float *dy, size_t n)
{
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m512 a = _mm512_add_ps(_mm512_load_ps(x + i), _mm512_load_ps(dy + i));
        __m512 b = _mm512_add_ps(_mm512_load_ps(x + i + 16), _mm512_load_ps(dy + i + 16));
        __m512 c = _mm512_add_ps(_mm512_load_ps(x + i + 32), _mm512_load_ps(dy + i + 32));
        __m512 d = _mm512_add_ps(_mm512_load_ps(x + i + 48), _mm512_load_ps(dy + i + 48));
        _mm512_store_ps(y + i, a);
        _mm512_store_ps(y + i + 16, b);
        _mm512_store_ps(y + i + 32, c);
        _mm512_store_ps(y + i + 48, d);
    }
    add_plain(y + i, x + i, dy + i, n - i);
}

__attribute__((target("avx512f"))) static void add_avx512_stream(float *y, const float *x, const float *dy, size_t n)
{
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m512 a = _mm512_add_ps(_mm512_load_ps(x + i), _mm512_load_ps(dy + i));
        __m512 b = _mm512_add_ps(_mm512_load_ps(x + i + 16), _mm512_load_ps(dy + i + 16));
        __m512 c = _mm512_add_ps(_mm512_load_ps(x + i + 32), _mm512_load_ps(dy + i + 32));
        __m512 d = _mm512_add_ps(_mm512_load_ps(x + i + 48), _mm512_load_ps(dy + i + 48));
        _mm512_stream_ps(y + i, a);
        _mm512_stream_ps(y + i + 16, b);
        _mm512_stream_ps(y + i + 32, c);
        _mm512_stream_ps(y + i + 48, d);
    }
    _mm_sfence();
    add_plain(y + i, x + i, dy + i, n - i);
}
#endif

static const yardstick rows[] = {
    {"copy libc", YARDSTICK_COPY, copy_libc, CPU_SCALAR},
    {"add plain", YARDSTICK_ADD, add_plain, CPU_SCALAR},
#ifdef __x86_64__
    {"copy avx2", YARDSTICK_COPY, copy_avx2, CPU_AVX2},
    {"copy avx2 stream", YARDSTICK_COPY, copy_avx2_stream, CPU_AVX2},
    {"copy avx512", YARDSTICK_COPY, copy_avx512, CPU_AVX512},
    {"copy avx512 stream", YARDSTICK_COPY, copy_avx512_stream, CPU_AVX512},
    {"add avx2", YARDSTICK_ADD, add_avx2, CPU_AVX2},
    {"add avx2 stream", YARDSTICK_ADD, add_avx2_stream, CPU_AVX2},
    {"add avx512", YARDSTICK_ADD, add_avx512, CPU_AVX512},
    {"add avx512 stream", YARDSTICK_ADD, add_avx512_stream, CPU_AVX512},
#endif
};

const yardstick *yardstick_at(size_t index)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (cpu_has(rows[i].isa) && index-- == 0)
            return &rows[i];
    return NULL;
}

typedef struct share {
    const yardstick *stick;
    float *y;
    const float *x, *dy;
    size_t n, part;
} share;

static void share_run(void *context, size_t index)
{
    const share *s = context;
    size_t from = index * s->part, to = from + s->part < s->n ? from + s->part : s->n;
    if (from < to)
        s->stick->run(s->y + from, s->x + from, s->dy + from, to - from);
}

void yardstick_run(const yardstick *stick, int threads, float *y, const float *x, const float *dy, size_t n)
{
    size_t parts = threads > 1 ? (size_t)threads : 1;
    share s = {stick, y, x, dy, n, (n / parts + 64) / 64 * 64};
    threads_for((int)parts, parts, share_run, &s);
}
