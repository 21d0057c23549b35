/* init.c - initial weights, as timm draws them but from our own random numbers.
 * SPDX-License-Identifier: MIT
 *
 * The value of an element depends on the seed, the parameter's name and the element's index,
 * nothing else: no order of drawing, no state, the same on any machine. By name and not by
 * position, because learned parameters of an activation shift all later positions: models
 * that differ only in the activation start from the same weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "models/fill.h"
#include "models/weights.h"
#include "simd/normal.h"

/* The cut of timm's trunc_normal_ is absolute: at a deviation of 0.02 it is a hundred sigma
 * away. */
static const double NORMAL_CUT = 2;

static uint32_t word_of(uint64_t seed, uint32_t parameter, size_t element, uint32_t draw)
{
    return philox_draw(seed, PURPOSE_INIT, parameter, element, draw).w[0];
}

static float normal_draw(double deviation, uint64_t seed, uint32_t parameter, size_t element)
{
    double value;
    uint32_t draw = 0;
    do
        value = deviation * normal_of_word(word_of(seed, parameter, element, draw++));
    while (fabs(value) > NORMAL_CUT);
    return (float)value;
}

void init_draw(float *out, size_t count, param_init init, uint64_t seed, uint32_t parameter)
{
    for (size_t i = 0; i < count; i++)
        switch (init.kind) {
        case INIT_CONSTANT:
            out[i] = (float)init.value;
            break;
        case INIT_NORMAL:
            out[i] = normal_draw(init.value, seed, parameter, i);
            break;
        case INIT_FAN_IN:
            out[i] = (float)((2 * philox_f64(word_of(seed, parameter, i, 0)) - 1) / sqrt(init.value));
            break;
        }
}

const char *init_code(char out[INIT_CODE], param_init init)
{
    if (init.kind == INIT_FAN_IN)
        snprintf(out, INIT_CODE, "uf%.0f", init.value);
    else if (init.kind == INIT_NORMAL && init.value == INIT_TN02.value)
        snprintf(out, INIT_CODE, "tn02");
    else if (init.kind == INIT_NORMAL && init.value == INIT_N1E6.value)
        snprintf(out, INIT_CODE, "n1e-6");
    else if (init.kind == INIT_NORMAL)
        snprintf(out, INIT_CODE, "n%.9g", init.value);
    else if (init.value == 0 || init.value == 1)
        snprintf(out, INIT_CODE, "%s", init.value == 0 ? "zero" : "one");
    else if (init.value == 1e-6)
        snprintf(out, INIT_CODE, "c1e-6");
    else
        snprintf(out, INIT_CODE, "c%.9g", init.value);
    return out;
}

/* --init-std and --init-std-fc1 replace the deviation 0.02 of weights that decay: linear layers and
 * convolutions, not tokens and positions. */
static param_init init_adjust(const tensor_info *p, const init_options *o)
{
    static const char fc1[] = ".fc1.weight";
    size_t length = strlen(p->name);
    param_init init = p->init;
    if (!o || !p->decay || init.kind != INIT_NORMAL)
        return init;
    if (o->std > 0)
        init.value = o->std;
    if (o->std_fc1 > 0 && length >= sizeof fc1 - 1 && strcmp(p->name + length - (sizeof fc1 - 1), fc1) == 0)
        init.value = o->std_fc1;
    return init;
}

berlu_status weights_init(engine *e, uint64_t seed, const init_options *options)
{
    const graph *g = engine_graph(e);
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *p = graph_tensor(g, graph_param(g, i));
        size_t count = (size_t)tensor_elements(p);
        float *values = memory_aligned(count * sizeof *values, p->name);
        if (!values)
            return BERLU_ERR_MEMORY;
        init_draw(values, count, init_adjust(p, options), seed, fill_hash(p->name));
        berlu_status status = engine_set(e, ARRAY_WEIGHT, i, values);
        free(values);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}
