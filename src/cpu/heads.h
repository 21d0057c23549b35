/* heads.h - the geometry of an attention call, shared by all CPU kernels.
 * SPDX-License-Identifier: MIT */
#ifndef CPU_HEADS_H
#define CPU_HEADS_H

#include <math.h>

#include "engine/backend.h"

typedef struct heads {
    int64_t groups, tokens, heads, width, dim; /* dim = heads * width */
    int64_t stride_k, stride_v;                /* between tokens, of q and k, and of v */
    double scale;
} heads;

/* `x` and `v` say which inputs hold q, k (and v where input v is missing). */
static inline heads heads_make(const op_call *c, int x, int v)
{
    const tensor_info *info = c->in[x].info;
    int apart = c->in[v].info != NULL;
    heads h = {.tokens = info->size[info->rank - 2], .heads = c->attr->heads, .stride_k = c->in[x].channels};
    h.groups = c->in[x].rows / h.tokens;
    h.dim = h.stride_k / (apart ? 2 : 3);
    h.width = h.dim / h.heads;
    h.stride_v = apart ? h.dim : h.stride_k;
    h.scale = 1 / sqrt((double)h.width);
    return h;
}

#endif
