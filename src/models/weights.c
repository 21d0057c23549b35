/* weights.c - reads and writes the parameters of an engine by name. SPDX-License-Identifier: MIT
 *
 * Reading has two halves: match() finds the tensor of every parameter and refuses the file unless
 * every name, shape and type fits and no tensor remains; only then values are set. Read
 * weights_load_path(). */
#include "models/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <berlu/act.h>

#include "models/fill.h"

static const tensor_info *parameter_at(const graph *g, int i)
{
    return graph_tensor(g, graph_param(g, i));
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Equal once trailing ones are dropped: (N, K, 1, 1) is (N, K), and [1] is a scalar. */
static int shapes_match(const tensor_info *p, const st_tensor *t)
{
    int rank = p->rank, other = t->rank;
    while (rank > 0 && p->size[rank - 1] == 1)
        rank--;
    while (other > 0 && t->shape[other - 1] == 1)
        other--;
    if (rank != other)
        return 0;
    for (int i = 0; i < rank; i++)
        if ((uint64_t)p->size[i] != t->shape[i])
            return 0;
    return 1;
}

/* torch calls the alpha of its PReLU `act.weight`; here it is `act.alpha`. */
static const st_tensor *find_prelu(const graph *g, const char *name, const safetensors *file)
{
    for (int i = 0; i < graph_site_count(g); i++) {
        const graph_site *site = graph_site_at(g, i);
        size_t length = strlen(site->name);
        if (strcmp(berlu_act_name(site->act), "prelu") != 0 || strncmp(name, site->name, length) != 0 ||
            strcmp(name + length, ".alpha") != 0)
            continue;
        char torch_name[ST_NAME_MAX + 1];
        snprintf(torch_name, sizeof torch_name, "%s.weight", site->name);
        return safetensors_find(file, torch_name);
    }
    return NULL;
}

/* The prefixes that DataParallel, torch.compile and Lightning add to every name. NULL: not the
 * reason. */
static const char *prefix_of(const char *name, const safetensors *file)
{
    static const char *const prefixes[] = {"module.", "_orig_mod.", "model.", "state_dict."};
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        char longer[ST_NAME_MAX + 1];
        int length = snprintf(longer, sizeof longer, "%s%s", prefixes[i], name);
        if (length > 0 && (size_t)length < sizeof longer && safetensors_find(file, longer))
            return prefixes[i];
    }
    return NULL;
}

static berlu_status match_one(const st_tensor **out, const graph *g, const tensor_info *p, const safetensors *file)
{
    const char *path = safetensors_path(file);
    char want[ST_SHAPE_TEXT], have[ST_SHAPE_TEXT];
    uint64_t size[TENSOR_RANK];
    for (int i = 0; i < p->rank; i++)
        size[i] = (uint64_t)p->size[i];
    st_shape_text(want, size, p->rank);
    const st_tensor *t = safetensors_find(file, p->name);
    if (!t)
        t = find_prelu(g, p->name, file);
    const char *prefix = t ? NULL : prefix_of(p->name, file);
    if (prefix)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: tensor '%s' is missing, but there is '%s%s': the network was wrapped when it was saved; "
                          "remove '%s' in front of the names",
                          path, p->name, prefix, p->name, prefix);
    if (!t)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s' %s is missing", path, p->name, want);
    if (!shapes_match(p, t))
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s' is %s, the model wants %s", path, t->name,
                          st_shape_text(have, t->shape, t->rank), want);
    if (t->dtype != ST_F32 && t->dtype != ST_F64 && t->dtype != ST_F16 && t->dtype != ST_BF16)
        return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s' holds %s, weights are F32, F16, BF16 or F64", path, t->name,
                          st_dtype_name(t->dtype));
    *out = t;
    return BERLU_OK;
}

/* The last layer of every family, as timm names it. */
static int is_head(const char *name)
{
    static const char *const heads[] = {"head.weight",      "head.bias",      "head.fc.weight",
                                        "head_dist.weight", "head_dist.bias", "head.fc.bias"};
    for (size_t i = 0; i < COUNT(heads); i++)
        if (strcmp(name, heads[i]) == 0)
            return 1;
    return 0;
}

/* The same layer but for the number of its outputs. */
static int other_classes(const tensor_info *p, const st_tensor *t)
{
    if (p->rank != t->rank || (uint64_t)p->size[0] == t->shape[0])
        return 0;
    for (int i = 1; i < p->rank; i++)
        if ((uint64_t)p->size[i] != t->shape[i])
            return 0;
    return 1;
}

/* A parameter that the file need not have, or has for another task. */
static int left_alone(const graph *g, const tensor_info *p, const safetensors *file, weights_begun *begun)
{
    const st_tensor *t = safetensors_find(file, p->name);
    if (p->activation && !t && !find_prelu(g, p->name, file)) {
        begun->own_acts++;
        return 1;
    }
    if (!is_head(p->name) || (t && !other_classes(p, t)) || (!t && prefix_of(p->name, file)))
        return 0;
    begun->new_head = 1;
    begun->classes = t ? t->shape[0] : 0;
    return 1;
}

/* A tensor of the file that the network may do without. */
static int passed_over(const graph *g, const st_tensor *t, weights_begun *begun)
{
    for (int i = 0; i < graph_site_count(g); i++) {
        const char *site = graph_site_at(g, i)->name;
        size_t length = strlen(site);
        if (strncmp(t->name, site, length) == 0 && t->name[length] == '.') {
            begun->unused_acts++;
            return 1;
        }
    }
    return is_head(t->name) && begun->new_head; /* as for a parameter of that name */
}

/* The tensor of every parameter; with `begun` NULL where one is left as it is. */
static berlu_status match(const st_tensor **found, const graph *g, const safetensors *file, char *used,
                          weights_begun *begun)
{
    int count = graph_param_count(g);
    for (int i = 0; i < count; i++) {
        if (begun && left_alone(g, parameter_at(g, i), file, begun))
            continue;
        berlu_status status = match_one(&found[i], g, parameter_at(g, i), file);
        if (status != BERLU_OK)
            return status;
        used[found[i] - safetensors_at(file, 0)] = 1;
    }
    for (size_t i = 0; i < safetensors_count(file); i++)
        if (!used[i] && !(begun && passed_over(g, safetensors_at(file, i), begun)))
            return berlu_fail(BERLU_ERR_INPUT, "%s: tensor '%s' belongs to no parameter of the model",
                              safetensors_path(file), safetensors_at(file, i)->name);
    return BERLU_OK;
}

/* A buffer for the largest parameter. */
static berlu_status buffer_make(float **out, const graph *g)
{
    int64_t most = 1;
    for (int i = 0; i < graph_param_count(g); i++) {
        int64_t count = tensor_elements(parameter_at(g, i));
        most = count > most ? count : most;
    }
    *out = memory_aligned((size_t)most * sizeof **out, "one parameter");
    return *out ? BERLU_OK : BERLU_ERR_MEMORY;
}

/* Values of all found tensors are read before the first is set. */
static berlu_status values_take(engine *e, const st_tensor *const *found, int count, const char *path)
{
    size_t all = 0, at = 0;
    for (int i = 0; i < count; i++)
        all += found[i] ? found[i]->count : 0;
    float *values = memory_aligned((all + 1) * sizeof *values, path);
    if (!values)
        return BERLU_ERR_MEMORY;
    berlu_status status = BERLU_OK;
    for (int i = 0; i < count; i++)
        if (found[i]) {
            TRY_DONE(st_read_f32(found[i], values + at));
            at += found[i]->count;
        }
    at = 0;
    for (int i = 0; i < count; i++)
        if (found[i]) {
            TRY_DONE(engine_set(e, ARRAY_WEIGHT, i, values + at));
            at += found[i]->count;
        }
done:
    free(values);
    return status;
}

static berlu_status take(engine *e, const safetensors *file, weights_begun *begun)
{
    const graph *g = engine_graph(e);
    int count = graph_param_count(g);
    const st_tensor **found = calloc((size_t)count + 1, sizeof *found);
    char *used = calloc(safetensors_count(file) + 1, 1);
    berlu_status status;
    if (!found || !used)
        TRY_DONE(berlu_fail_memory((size_t)count * sizeof *found, safetensors_path(file)));
    TRY_DONE(match(found, g, file, used, begun));
    for (int i = 0; begun && i < count; i++)
        begun->taken += found[i] != NULL;
    if (begun && begun->taken == 0)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: nothing of it fits this network and these classes",
                            safetensors_path(file)));
    status = values_take(e, found, count, safetensors_path(file));
done:
    free(used);
    free(found);
    return status;
}

berlu_status weights_begin(engine *e, const safetensors *file, weights_begun *out)
{
    *out = (weights_begun){0};
    return take(e, file, out);
}

berlu_status weights_load_path(engine *e, const char *path)
{
    safetensors *file = NULL;
    berlu_status status = safetensors_open(&file, path);
    if (status == BERLU_OK)
        status = take(e, file, NULL);
    safetensors_close(file);
    return status;
}

berlu_status weights_fill(engine *e)
{
    const graph *g = engine_graph(e);
    float *values = NULL;
    berlu_status status;
    TRY_DONE(buffer_make(&values, g));
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *p = parameter_at(g, i);
        fill_parameter(values, p->name, p->rank, p->size);
        TRY_DONE(engine_set(e, ARRAY_WEIGHT, i, values));
    }
done:
    free(values);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* One array of the engine as tensors of a file. Host memory is used in place; from a device a copy
 * is made, which `copies` owns. */
static berlu_status tensors_collect(st_tensor *tensors, float **copies, engine *e, engine_array array)
{
    const graph *g = engine_graph(e);
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *p = parameter_at(g, i);
        tensors[i] = (st_tensor){.name = p->name, .dtype = ST_F32, .rank = p->rank};
        for (int d = 0; d < p->rank; d++)
            tensors[i].shape[d] = (uint64_t)p->size[d];
        tensors[i].data = engine_host(e, array, i);
        if (tensors[i].data)
            continue;
        tensors[i].data = copies[i] = memory_aligned((size_t)tensor_elements(p) * sizeof(float), p->name);
        TRY(copies[i] ? engine_get(e, array, i, copies[i]) : BERLU_ERR_MEMORY);
    }
    return BERLU_OK;
}

berlu_status weights_save_in(engine *e, engine_array array, const folder_handle *in, const char *path,
                             const st_text *metadata, size_t texts)
{
    size_t count = (size_t)graph_param_count(engine_graph(e));
    st_tensor *tensors = calloc(count + 1, sizeof *tensors);
    float **copies = calloc(count + 1, sizeof *copies);
    st_text *all = calloc(texts + 1, sizeof *all);
    berlu_status status;
    if (!tensors || !copies || !all)
        TRY_DONE(berlu_fail_memory(count * sizeof *tensors, path));
    TRY_DONE(tensors_collect(tensors, copies, e, array));
    all[0] = (st_text){"format", "pt"};
    if (texts)
        memcpy(all + 1, metadata, texts * sizeof *all);
    status = safetensors_write_in(in, path, tensors, count, all, texts + 1);
done:
    for (size_t i = 0; copies && i < count; i++)
        free(copies[i]);
    free(all);
    free(copies);
    free(tensors);
    return status;
}
