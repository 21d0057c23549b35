/* test_arena.c - alignment, zeros, overflow and lack of memory. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "support/fail.h"

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    arena a = {0};
    unsigned char *last = NULL;
    size_t last_bytes = 0, asked = 0;
    for (size_t i = 0; i < 2000; i++) {
        size_t align = (size_t)1 << i % 13, bytes = i * 7 % 301;
        unsigned char *piece = arena_alloc(&a, bytes, align);
        assert_non_null(piece);
        assert_int_equal((uintptr_t)piece % align, 0);
        for (size_t b = 0; b < bytes; b++)
            assert_int_equal(piece[b], 0);
        memset(piece, 0xff, bytes); /* the next piece would see it if they overlapped */
        assert_true(!last || piece >= last + last_bytes || piece + bytes <= last);
        last = piece;
        last_bytes = bytes;
        asked += bytes;
    }
    assert_int_equal(a.used, asked);
    assert_true(a.total >= asked);
    arena_free(&a);
    assert_null(a.blocks);
    assert_int_equal(a.total, 0);
}

static void a_piece_larger_than_any_block_is_given(void **state)
{
    (void)state;
    arena a = {0};
    char *small = arena_alloc(&a, 1, 1), *large = arena_alloc(&a, 50u << 20, 4096);
    assert_non_null(small);
    assert_non_null(large);
    large[0] = large[(50u << 20) - 1] = 1;
    arena_free(&a);
}

static void sizes_that_overflow_are_refused_with_a_sentence(void **state)
{
    (void)state;
    arena a = {0};
    assert_null(arena_array(&a, SIZE_MAX / 8, 16, 8));
    assert_non_null(strstr(berlu_last_error(), "do not fit"));
    assert_null(arena_alloc(&a, SIZE_MAX - 8, 16));
    assert_null(arena_alloc(&a, SIZE_MAX / 2 + 1, 16));
    for (size_t less = 0; less < 100; less++) /* the block's header does not make the sum wrap either */
        assert_null(arena_alloc(&a, SIZE_MAX - less, 1));
    assert_null(memory_aligned(SIZE_MAX - 3, "a test"));
    assert_non_null(strstr(berlu_last_error(), "a test: no memory"));
    assert_null(a.blocks);
}

static void texts_are_copied_and_printed(void **state)
{
    (void)state;
    arena a = {0};
    char source[] = "blocks.0";
    char *copy = arena_strdup(&a, source);
    source[0] = 'X';
    assert_string_equal(copy, "blocks.0");
    assert_string_equal(arena_printf(&a, "%s.mlp.%d", copy, 7), "blocks.0.mlp.7");
    arena_free(&a);
}

static int fill(arena *a)
{
    for (int i = 0; i < 100; i++)
        if (!ARENA_ARRAY(a, double, 1000))
            return 0;
    return arena_strdup(a, "done") && arena_printf(a, "%d", 1);
}

static void every_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    int n, done;
    arena a = {0};
    for (n = 1; fail_after(FAIL_ALLOC, n), done = fill(&a), fail_hit(); n++) {
        assert_false(done);
        assert_non_null(strstr(berlu_last_error(), "no memory"));
        arena_free(&a);
    }
    assert_true(done && n > 3);
    arena_free(&a);
}

static void large_buffers_are_aligned_and_may_fail(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 63, 64, 1000, 4u << 20, (4u << 20) + 1};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        unsigned char *memory = memory_aligned(sizes[i], "a test");
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memset(memory, 1, sizes[i]);
        free(memory);
        fail_after(FAIL_ALLOC, 1);
        assert_null(memory_aligned(sizes[i], "a test"));
        assert_true(fail_hit());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(a_piece_larger_than_any_block_is_given),
        cmocka_unit_test(sizes_that_overflow_are_refused_with_a_sentence),
        cmocka_unit_test(texts_are_copied_and_printed),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(large_buffers_are_aligned_and_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
