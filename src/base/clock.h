/* clock.h - monotonic and wall-clock time. SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);         /* monotonic */
double clock_seconds(void);      /* the same, in seconds */
double clock_wall_seconds(void); /* since 1970, for stamps in files only */

#endif
