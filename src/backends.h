/* backends.h - backends by name. SPDX-License-Identifier: MIT */
#ifndef BACKENDS_H
#define BACKENDS_H

#include "engine/backend.h"

/* "cpu" or "cuda". BERLU_ERR_DEVICE where this build lacks it. */
berlu_status backend_find(const backend **out, const char *name);

#endif
