/* estimate.c - see estimate.h. SPDX-License-Identifier: MIT */
#include "study/estimate.h"

#include <math.h>
#include <string.h>

#include "train/network.h"

enum { CLASSES = 10 }; /* where neither settings nor data say */

static int64_t parameters_of(const model *m)
{
    int64_t count = 0;
    for (int i = 0; i < graph_param_count(m->graph); i++)
        count += tensor_elements(graph_tensor(m->graph, graph_param(m->graph, i)));
    return count;
}

static berlu_status cell_estimate(study_estimate *out, const study *s, size_t cell)
{
    train_settings settings;
    model *m = NULL;
    engine_memory memory;
    berlu_status status = study_run_settings(s, &(study_run){.cell = cell}, &settings);
    if (status != BERLU_OK)
        return status;
    status = network_create(&m, &settings, settings.classes > 0 ? (size_t)settings.classes : CLASSES);
    if (status == BERLU_OK) {
        int64_t parameters = parameters_of(m);
        engine_options o = {.mode = ENGINE_TRAIN,
                            .batch = (int)settings.batch,
                            .keep = (engine_keep)settings.keep,
                            .threads = (int)settings.threads,
                            .loss = LOSS_CROSS_ENTROPY};
        out->parameters = parameters > out->parameters ? parameters : out->parameters;
        if (network_device(&o, &settings) == BERLU_OK && engine_plan_memory(&memory, m->graph, &o) == BERLU_OK)
            out->bytes = memory.total > out->bytes ? memory.total : out->bytes;
    }
    model_free(m);
    recipe_free(&settings);
    return status == BERLU_ERR_MEMORY ? status : BERLU_OK;
}

/* Whether two cells differ at most in how they learn: their networks are of one size, but for
 * learned activations. */
static int same_size(const study_cell *a, const study_cell *b)
{
    size_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a->settings.count && study_setting_is_learning(a->settings.items[i].key))
            i++;
        while (k < b->settings.count && study_setting_is_learning(b->settings.items[k].key))
            k++;
        if (i == a->settings.count || k == b->settings.count)
            return i == a->settings.count && k == b->settings.count;
        const study_setting *x = &a->settings.items[i], *y = &b->settings.items[k];
        if (strcmp(x->key, y->key) != 0 || x->count != 1 || y->count != 1 || strcmp(x->values[0], y->values[0]) != 0)
            return 0;
    }
}

berlu_status study_estimate_make(study_estimate *out, const study *s, const study_entries *runs)
{
    double sum = 0;
    size_t count = 0;
    *out = (study_estimate){0};
    berlu_status status = BERLU_OK;
    for (size_t c = 0; c < s->cell_count && status == BERLU_OK; c++)
        if (!c || !same_size(&s->cells[c - 1], &s->cells[c]))
            status = cell_estimate(out, s, c);
    for (size_t i = 0; i < runs->count; i++)
        if (runs->items[i].state == STUDY_DONE && runs->items[i].seconds > 0)
            sum += runs->items[i].seconds, count++;
    out->seconds = count ? sum / (double)count : NAN;
    return status;
}
