/* test_cuda_library.c - cuBLASLt as it is opened: usable, or a sentence that says why not.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/cuda_api.h"

static void the_library_opens_or_names_what_is_wrong(void **state)
{
    (void)state;
    lt_library *lt = NULL;
    if (lt_open(&lt) == BERLU_OK) {
        char version[32];
        lt_version(lt, version);
        assert_non_null(strchr(version, '.'));
    } else if (!strstr(berlu_last_error(), "cuBLASLt is missing") &&
               !strstr(berlu_last_error(), "starting: CUBLAS_STATUS_")) /* no library; one, but no GPU */
        fail_msg("%s", berlu_last_error());
    lt_close(lt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_library_opens_or_names_what_is_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
