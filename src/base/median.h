/* median.h - the median of measurements. SPDX-License-Identifier: MIT */
#ifndef BASE_MEDIAN_H
#define BASE_MEDIAN_H

#include <stddef.h>
#include <stdlib.h>

static inline int median_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the values; of an even count it is the mean of the middle two. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, median_order);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#endif
