/* test_memory.c - the command without memory: exit 1, one line, no partial output.
 * SPDX-License-Identifier: MIT
 *
 * main() of the command is linked in under another name, so that the failing allocator reaches all
 * of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "support/fail.h"

int berlu_main(int argc, char **argv);

static void capture_end(capture *c, char out[4096], char err[4096])
{
    capture_restore(c);
    rewind(c->out);
    rewind(c->err);
    out[fread(out, 1, 4095, c->out)] = 0;
    err[fread(err, 1, 4095, c->err)] = 0;
    fclose(c->out);
    fclose(c->err);
}

static void lack_of_memory_at_any_allocation_is_exit_1(void **state)
{
    (void)state;
    char *words[] = {"berlu", "doctor", "--json", "--threads", "1", NULL};
    for (int n = 1;; n++) {
        char out[4096], err[4096];
        capture c;
        capture_begin(&c);
        fail_after(FAIL_ALLOC, n);
        int code = berlu_main(5, words), hit = fail_hit();
        capture_end(&c, out, err);
        if (!hit) {
            assert_int_equal(code, 0);
            assert_int_equal(out[0], '{');
            assert_true(n > 3);
            break;
        }
        assert_int_equal(code, 1);
        assert_string_equal(out, "");
        assert_int_equal(strncmp(err, "berlu: doctor: ", 15), 0);
        assert_non_null(strstr(err, "no memory"));
        assert_int_equal(strchr(err, '\n') - err + 1, strlen(err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lack_of_memory_at_any_allocation_is_exit_1)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
