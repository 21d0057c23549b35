/* machine.h - a stubbed machine for each test of the CUDA backend's host side, and its device.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_CUDA_MACHINE_H
#define TESTS_CUDA_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/cuda.h"
#include "cuda/stub.h"
#include "support/folder.h"

/* Healthy, with one GPU, and with an empty cache folder of the given name. */
static inline void machine_fresh(const char *name)
{
    char folder[FOLDER_PATH];
    setenv("XDG_CACHE_HOME", folder_fresh(folder, name), 1);
    stub_reset();
    assert_int_equal(stub.allocations, 0);
}

static inline device *open_with(device_options o)
{
    device *d = NULL;
    if (cuda_backend()->open(&d, cuda_backend(), &o) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    return d;
}

static inline void nothing_is_left(void)
{
    assert_int_equal(stub.allocations, 0);
}

#endif
