/* test_canaries.c - a host's handlers leave the memory around and in the products' buffers alone.
 * SPDX-License-Identifier: MIT
 *
 * The whole program, the matrix library included, allocates through here: 16 KiB of canaries lie
 * before and behind every block and are checked when it is freed. A timer interrupts products on
 * two threads some thousand times a second, with an ordinary handler whose frame goes wherever the
 * stack pointer is. A frame below a block's first byte kills canaries; one inside of a buffer gives
 * another product. test_signals.c asks where the stack pointer was, this one what was lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/status.h"
#include "cpu/gemm.h"
#include "support/sanitized.h"

#if SANITIZED || !defined(__GLIBC__)
#define OWN_ALLOCATOR 0 /* a sanitizer has its own allocator, with canaries of its own */
#else
#define OWN_ALLOCATOR 1
#endif

enum { ZONE = 16384, ENOUGH = 400 };

static atomic_int handled, damaged, checked;

#if OWN_ALLOCATOR
/* ---- the allocator --------------------------------------------------------------------------- */

#pragma GCC visibility push(default) /* the libraries call these too */
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *block);

typedef struct head { /* the last bytes of the front zone: a frame leaves them out (red zone), or the mark tells */
    uint64_t mark;
    size_t front, bytes;
} head;

static const uint64_t mark = 0xC0A1A5EDCA5A51E5u;

static void *take(size_t align, size_t bytes)
{
    size_t front = (ZONE + align - 1) / align * align;
    if (bytes > SIZE_MAX - 2 * front) {
        errno = ENOMEM;
        return NULL;
    }
    unsigned char *base = __libc_memalign(align < 64 ? 64 : align, front + bytes + ZONE);
    if (!base)
        return NULL;
    head h = {mark, front, bytes};
    memset(base, 0xA5, front);
    memset(base + front + bytes, 0xA5, ZONE);
    memcpy(base + front - sizeof h, &h, sizeof h);
    return base + front;
}

static int whole(const unsigned char *zone, size_t count)
{
    while (count && zone[count - 1] == 0xA5)
        count--;
    return count == 0;
}

static head head_of(const void *block)
{
    head h;
    memcpy(&h, (const unsigned char *)block - sizeof h, sizeof h);
    if (h.mark != mark) { /* nothing is known of the block any more */
        static const char line[] = "the head of a block was overwritten\n";
        fputs(line, stderr);
        _Exit(1);
    }
    return h;
}

void free(void *block)
{
    if (!block)
        return;
    head h = head_of(block);
    unsigned char *base = (unsigned char *)block - h.front;
    int fine = whole(base, h.front - sizeof h) && whole((unsigned char *)block + h.bytes, ZONE);
    atomic_fetch_add(fine ? &checked : &damaged, 1);
    __libc_free(base);
}

void *malloc(size_t bytes)
{
    return take(64, bytes);
}

void *calloc(size_t count, size_t bytes)
{
    void *block = bytes && count > SIZE_MAX / bytes ? NULL : take(64, count * bytes);
    if (block)
        memset(block, 0, count * bytes);
    return block;
}

void *realloc(void *block, size_t bytes)
{
    void *larger = take(64, bytes);
    if (larger && block) {
        head h = head_of(block);
        memcpy(larger, block, h.bytes < bytes ? h.bytes : bytes);
        free(block);
    }
    return larger;
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return take(align, bytes);
}

void *memalign(size_t align, size_t bytes);
void *memalign(size_t align, size_t bytes)
{
    return take(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    void *block = take(align, bytes);
    if (block)
        *out = block;
    return block ? 0 : ENOMEM;
}
#pragma GCC visibility pop
#endif

/* ---- the products ---------------------------------------------------------------------------- */

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&handled, 1);
}

/* Shapes of vit_micro and of vit_tiny_cifar, and one that the library copies into buffers. */
static const int64_t shapes[][3] = {{544, 64, 64}, {544, 256, 64}, {260, 192, 192}, {260, 768, 192}, {256, 256, 512}};

static uint64_t product_hash(size_t which, int transposed)
{
    int64_t m = shapes[which][0], n = shapes[which][1], k = shapes[which][2];
    float *a = malloc((size_t)(m * k) * sizeof *a), *b = malloc((size_t)(n * k) * sizeof *b),
          *c = malloc((size_t)(m * n) * sizeof *c);
    if (!a || !b || !c)
        abort();
    for (int64_t i = 0; i < m * k; i++)
        a[i] = (float)(i % 251) - 125;
    for (int64_t i = 0; i < n * k; i++)
        b[i] = (float)(i % 241) - 120;
    gemm(m, n, k, 1, (gemm_matrix){a, k, 0}, (gemm_matrix){b, transposed ? k : n, transposed}, 0, c, n);
    uint64_t hash = 14695981039346656037u;
    for (int64_t i = 0; i < m * n; i++) {
        uint32_t bits;
        memcpy(&bits, &c[i], sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }
    free(a);
    free(b);
    free(c);
    return hash;
}

static void handled_signals_change_no_product_and_no_byte_around_its_buffers(void **state)
{
    (void)state;
    if (!OWN_ALLOCATOR)
        skip();
    uint64_t expected[COUNT(shapes)][2];
    atomic_int wrong = 0;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int transposed = 0; transposed < 2; transposed++)
            expected[i][transposed] = product_hash(i, transposed);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigaction(SIGPROF, &action, &before);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 200}, {0, 200}}, NULL);
    for (int threads = 1; threads <= 2; threads++) {
        atomic_store(&handled, 0);
#pragma omp parallel num_threads(threads)
        while (atomic_load(&handled) < ENOUGH)
            for (size_t i = 0; i < COUNT(shapes); i++)
                for (int transposed = 0; transposed < 2; transposed++)
                    if (product_hash(i, transposed) != expected[i][transposed])
                        atomic_fetch_add(&wrong, 1);
    }
    setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
    sigaction(SIGPROF, &before, NULL);
    assert_true(atomic_load(&checked) > 100);
    assert_int_equal(atomic_load(&damaged), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handled_signals_change_no_product_and_no_byte_around_its_buffers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
