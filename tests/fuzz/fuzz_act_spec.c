/* fuzz_act_spec.c - any bytes as the text of an activation, "berlu:alpha=0.01,eps=0.1".
 * SPDX-License-Identifier: MIT
 *
 * What was accepted must evaluate, and its own text must give the same function again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <berlu/act.h>

static void check(const berlu_act *act)
{
    const float x[5] = {-3.0f, -0.0f, 0.0f, 0.3f, 7.0f};
    float y[5], again[5];
    berlu_act *copy;
    if (berlu_act_forward(act, BERLU_F32, y, x, 5) != BERLU_OK ||
        berlu_act_make(&copy, berlu_act_spec(act)) != BERLU_OK)
        abort();
    if (berlu_act_forward(copy, BERLU_F32, again, x, 5) != BERLU_OK || memcmp(y, again, sizeof y) != 0)
        abort();
    berlu_act_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *spec = malloc(size + 1);
    berlu_act *act;
    if (!spec)
        return 0;
    memcpy(spec, bytes, size);
    spec[size] = 0;
    if (berlu_act_make(&act, spec) == BERLU_OK) {
        check(act);
        berlu_act_free(act);
    }
    free(spec);
    return 0;
}
