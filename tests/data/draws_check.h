/* draws_check.h - batches that a device makes from draws against those of the loader, bit for bit.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_DATA_DRAWS_CHECK_H
#define TESTS_DATA_DRAWS_CHECK_H

#include "engine/backend.h"

/* Every augmentation that a device can do, on this backend; an assertion of cmocka fails where a
 * number differs. With `profile` every call is launched by itself. */
void draws_check(const backend *b, device *opened, int profile);

#endif
