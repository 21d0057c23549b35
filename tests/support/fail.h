/* fail.h - makes the n-th allocation or file call fail, for tests. SPDX-License-Identifier: MIT
 *
 * A test program registered with berlu_test(... WRAP) has its malloc, open, write ... routed
 * through fail.c by the linker. Ask for a failure, run the code, ask whether it was reached; once
 * it was not, every call has had its turn:
 *
 *     for (int n = 1; fail_after(FAIL_ALLOC, n), status = thing_make(&thing), fail_hit(); n++) {
 *         assert_int_equal(status, BERLU_ERR_MEMORY);        // it noticed,
 *         assert_null(thing);                                // and left nothing behind (leaks: run under SAN=address)
 *     }
 *     assert_int_equal(status, BERLU_OK);                    // n was past the last call: nothing failed
 *
 * fail_hit() also switches the failing off, so assertions and clean-up in the loop's body run
 * undisturbed. Only calls made by the objects linked into the program are routed: what libc or
 * another library does inside (strdup, fopen) is not, which is why the library calls open() and
 * write() itself where a failure matters. fail_sqlite() and fail_json() route those two. An arena
 * asks the system once for many small pieces, so that failing malloc() leaves most of the checks
 * behind them untried: FAIL_ARENA fails the pieces themselves. Counting is per process and atomic,
 * so code under test may use threads. */
#ifndef TESTS_SUPPORT_FAIL_H
#define TESTS_SUPPORT_FAIL_H

enum {
    FAIL_ALLOC = 1,      /* malloc calloc realloc aligned_alloc posix_memalign strdup strndup: NULL, ENOMEM */
    FAIL_OPEN = 2,       /* open, openat: EACCES */
    FAIL_READ = 4,       /* read, pread, readdir: EIO */
    FAIL_WRITE = 8,      /* write: ENOSPC */
    FAIL_SHORT = 16,     /* write: half of the bytes, then the next write fails with ENOSPC */
    FAIL_SYNC = 32,      /* fsync: EIO */
    FAIL_RENAME = 64,    /* rename, symlink and their -at forms: EACCES */
    FAIL_CLOSE = 128,    /* close: closes, then EIO */
    FAIL_MKDIR = 256,    /* mkdir, mkdirat: ENOSPC */
    FAIL_TRUNCATE = 512, /* ftruncate: EIO */
    FAIL_MANY = 1024,    /* open, openat: EMFILE */
    FAIL_ARENA = 2048,   /* arena_alloc, arena_array, arena_strdup, arena_printf: NULL, as if each needed a new block */
    FAIL_FILE = FAIL_OPEN | FAIL_WRITE | FAIL_SYNC | FAIL_RENAME | FAIL_CLOSE | FAIL_MKDIR | FAIL_TRUNCATE,
};

void fail_after(int kinds, int n); /* the n-th call of these kinds from now on fails, once; n = 0: none */
int fail_hit(void);                /* whether it happened; switches off */
int fail_calls(void);              /* how many calls of the kinds were seen since fail_after() */

/* Let SQLite or jansson allocate through the wrapped calls; once per program, before it is used. */
void fail_sqlite(void);
void fail_json(void);

/* `watch` is called before every fsync (with its descriptor; the call itself is then not passed on
 * to the system) and every rename (with -1), until it is NULL again. crash.h is made of it. */
void fail_watch(void (*watch)(int fd));

/* Everything of these kinds fails from the n-th call on, until fail_hit(): a disk that stays
 * full. */
void fail_from(int kinds, int n);

#endif
