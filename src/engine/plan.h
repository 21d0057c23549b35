/* plan.h - a range of memory for every tensor. SPDX-License-Identifier: MIT */
#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

#include "engine/backend.h"

/* The block of memory that holds a tensor. */
typedef enum plan_area {
    AREA_NONE,     /* not read */
    AREA_ARENA,    /* between forward and backward */
    AREA_WEIGHT,   /* parameters */
    AREA_GRADIENT, /* their gradients, in the order the backward finishes them */
    AREA_FEED,     /* image, labels, targets, teacher */
    AREA_SHADOW,   /* copies of weights in the branch's dtype */
    AREA_COUNT
} plan_area;

typedef struct plan_place {
    plan_area area;
    uint64_t offset, bytes;
    int first, last; /* lifetime, in nodes (arena only) */
    tensor root;     /* the tensor whose memory it shares; itself for most */
} plan_place;

typedef struct plan {
    plan_place *places; /* one per tensor */
    int count;
    int boundary; /* first node of the backward; the number of nodes if there is none */
    uint64_t bytes[AREA_COUNT];
    uint64_t kept; /* arena bytes alive at the boundary */
} plan;

berlu_status plan_make(plan *out, const graph *g, const backend *backend, const device *device, int batch);
void plan_free(plan *p);

#endif
