/* trainer_fault.c - messages of a run that cannot continue. SPDX-License-Identifier: MIT
 *
 * report_not_finite() names the tensor that first held a value that is not finite, in the order of
 * the computation, and the checkpoint that is left; report_state_finite() keeps such values out of
 * checkpoints; report_not_saved() explains a failed write. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/finite.h"
#include "train/trainer_internal.h"

static int finite_all(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

/* The first parameter with an element that is not finite; `backwards` searches gradients in the
 * order in which the backward computes them. */
static const char *bad_parameter(trainer *t, engine_array array, int backwards)
{
    const graph *g = engine_graph(t->train);
    int count = graph_param_count(g);
    for (int i = 0; i < count; i++) {
        int p = backwards ? count - 1 - i : i;
        const tensor_info *info = graph_tensor(g, graph_param(g, p));
        size_t elements = (size_t)tensor_elements(info);
        const float *values = engine_host(t->train, array, p);
        float *copy = values ? NULL : malloc(elements * sizeof *copy);
        if (copy && engine_get(t->train, array, p, copy) == BERLU_OK)
            values = copy;
        int bad = values && !finite_all(values, elements);
        free(copy);
        if (bad)
            return info->name;
    }
    return NULL;
}

static const char *bad_site(trainer *t)
{
    const graph *g = engine_graph(t->train);
    for (int i = 0; i < graph_site_count(g); i++) {
        int64_t rows = engine_site_rows(t->train, i), channels = graph_site_at(g, i)->channels;
        float *values = malloc((size_t)(rows * channels) * sizeof *values);
        int bad = values && engine_site_read(t->train, i, 0, rows, values) == BERLU_OK &&
                  !finite_all(values, (size_t)(rows * channels));
        free(values);
        if (bad)
            return graph_site_at(g, i)->name;
    }
    return NULL;
}

/* Whether the newest checkpoint was removed from outside. */
static int checkpoint_gone(const trainer *t)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoints/step-%08llu", (unsigned long long)t->saved_updates);
    return t->saved_updates != UINT64_MAX && !folder_exists_in(&t->run.folder, name);
}

static const char *kept_text(char out[64], const trainer *t)
{
    if (checkpoint_gone(t))
        strcpy(out, "its checkpoints were removed too");
    else if (t->saved_updates == UINT64_MAX)
        strcpy(out, "there is no checkpoint yet");
    else
        snprintf(out, 64, "the checkpoint of step %llu is kept", (unsigned long long)t->saved_updates);
    return out;
}

/* Prevents checkpoints that no run could resume from: weights, moments and averages can overflow in
 * the very update that follows a finite loss. */
berlu_status report_state_finite(const trainer *t, engine *e, uint64_t updates)
{
    static const struct {
        engine_array array;
        const char *what;
    } arrays[] = {{ARRAY_WEIGHT, "the weight "},
                  {ARRAY_MOMENT1, "the first moment of "},
                  {ARRAY_MOMENT2, "the second moment of "},
                  {ARRAY_EMA, "the average of "}};
    for (size_t i = 0; i < COUNT(arrays); i++) {
        char kept[64];
        not_finite found = {0};
        berlu_status status = engine_has(e, arrays[i].array) ? finite_look(e, arrays[i].array, &found) : BERLU_OK;
        if (status != BERLU_OK)
            return report_not_saved(t, status);
        if (found.name)
            return berlu_fail(
                BERLU_ERR_NUMERIC,
                "step %llu: after the update %s%s is not finite (%s; a lower --lr or --clip 1 needs a new run)",
                (unsigned long long)updates, arrays[i].what, found.name, kept_text(kept, t));
    }
    return BERLU_OK;
}

berlu_status report_not_saved(const trainer *t, berlu_status status)
{
    char message[1024], kept[64];
    snprintf(message, sizeof message, "%s", berlu_last_error());
    return berlu_fail(status, "%s (%s%s)", message, kept_text(kept, t),
                      checkpoint_gone(t) ? "" : "; mend it and continue with --resume");
}

/* Names the first bad tensor in the order of the computation: images, weights, activations, logits;
 * for a norm, the gradients. */
berlu_status report_not_finite(trainer *t, const char *what)
{
    (void)trainer_save_finish(t); /* the message names the newest checkpoint */
    size_t side = (size_t)t->model->config.image_size, images = (size_t)t->settings.batch * 3 * side * side;
    const char *kind = "the logits", *name = "";
    const char *gradient = strcmp(what, "loss") == 0 ? NULL : bad_parameter(t, ARRAY_GRADIENT, 1);
    const char *weight = gradient ? NULL : bad_parameter(t, ARRAY_WEIGHT, 0);
    const char *input = gradient || weight ? NULL : bad_site(t);
    if (t->images && !finite_all(t->images, images))
        kind = "the images";
    else if (gradient)
        kind = "the gradient of ", name = gradient;
    else if (weight)
        kind = "the weight ", name = weight;
    else if (input)
        kind = "what enters ", name = input;
    char kept[64];
    return berlu_fail(BERLU_ERR_NUMERIC,
                      "step %llu: the %s is not finite; first bad: %s%s (%s; a lower --lr or --clip 1 needs a new run)",
                      (unsigned long long)t->state.updates + 1, what, kind, name, kept_text(kept, t));
}
