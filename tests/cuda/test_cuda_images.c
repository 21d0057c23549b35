/* test_cuda_images.c - the kernel that makes batches from draws, emulated, against the loader.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda/cuda.h"
#include "cuda/stub.h"
#include "data/draws_check.h"

static void batches_from_draws_equal_the_loaders(void **state)
{
    (void)state;
    stub_reset();
    draws_check(cuda_backend(), NULL, 1); /* what is emulated cannot be captured */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches_from_draws_equal_the_loaders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
