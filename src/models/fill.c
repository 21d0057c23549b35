/* fill.c - see fill.h. SPDX-License-Identifier: MIT
 *
 * A value: hash the name (FNV-1a), add the element times the golden ratio, mix with the finaliser
 * of MurmurHash3, take the upper 24 bits as v in [-1, 1). Then scale v by the kind of the
 * parameter, in double, and round once to f32. */
#include "models/fill.h"

#include <math.h>
#include <string.h>

#include "base/status.h"

const int fill_labels[2] = {3, 7};

uint32_t fill_hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

double fill_unit(uint32_t hash, uint32_t element)
{
    uint32_t x = hash + element * 0x9E3779B9u;
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    x ^= x >> 16;
    return (double)(x >> 8) * 0x1p-23 - 1.0;
}

static int begins(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

static int ends(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Tokens, positions and the first convolution: small, so that the first norm sees a small variance
 * and its eps matters. */
static int is_first(const char *name)
{
    static const char *const whole[] = {"cls_token", "dist_token", "pos_embed", "patch_pos", "pixel_pos"};
    static const char *const start[] = {"patch_embed.proj.", "pixel_embed.proj.", "stem.0."};
    for (size_t i = 0; i < COUNT(whole); i++)
        if (strcmp(name, whole[i]) == 0)
            return 1;
    for (size_t i = 0; i < COUNT(start); i++)
        if (begins(name, start[i]))
            return 1;
    return 0;
}

void fill_parameter(float *out, const char *name, int rank, const int64_t *size)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= size[i];
    double offset = 0, scale;
    if (is_first(name))
        scale = 0.02;
    else if (ends(name, ".bias"))
        scale = 0.2;
    else if (ends(name, "gamma"))
        scale = 0.5;
    else if (rank == 1)
        offset = 1, scale = 0.3;
    else /* preserves the variance: fan-in is the number of terms of one output */
        scale = sqrt(3.0 / ((double)count / (double)size[0]));
    uint32_t hash = fill_hash(name);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)(offset + scale * fill_unit(hash, (uint32_t)i));
}

void fill_input(float *out, size_t count)
{
    uint32_t hash = fill_hash("input");
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(1.75 * fill_unit(hash, (uint32_t)i));
}
