/* trainer_describe.c - a summary of the run in ten lines. SPDX-License-Identifier: MIT
 *
 * Shown before training and by --dry-run: network, data, recipe, memory, what the user gave. Values
 * are formatted as in run.json. */

#include "train/trainer_internal.h"

static void line_add(text *out, const char *name)
{
    text_add(out, "%-10s ", name);
}

/* Appends one setting by its key, formatted as in run.json. */
static void value_add(const trainer *t, const char *before, const char *key, text *out)
{
    const setting *row = recipe_find(key);
    if (t->leave_out[row - train_settings_table])
        return;
    text_string(out, before);
    recipe_values(&t->settings, row, out);
}

static void network_lines(const trainer *t, text *out)
{
    const graph *g = t->model->graph;
    int64_t numbers = 0;
    for (int p = 0; p < graph_param_count(g); p++)
        numbers += tensor_elements(graph_tensor(g, graph_param(g, p)));
    line_add(out, "model");
    text_add(out, "%s, %d x %d pixels", t->settings.model, t->model->config.image_size, t->model->config.image_size);
    value_add(t, ", patch ", "patch", out);
    value_add(t, ", stem ", "stem", out);
    text_add(out, ": %lld parameters in %d tensors, %.1f M multiply-adds an image\n", (long long)numbers,
             graph_param_count(g), graph_macs(g) / 1e6);
    line_add(out, "activation");
    text_add(out, "%s%s at %d sites\n", t->settings.acts ? t->settings.act[0] : "none",
             t->settings.acts > 1 ? ", ..." : "", graph_site_count(g));
}

static void data_lines(const trainer *t, text *out)
{
    const data_info *info = data_describe(t->data);
    line_add(out, "data");
    text_add(out, "%s (%s): %zu training and %zu test images, %zu classes\n", t->settings.data, info->kind,
             t->train_images, loader_images(t->test), info->classes);
    line_add(out, "images");
    text_add(out, "mean %s, deviation %s", t->settings.mean, t->settings.std);
    value_add(t, ", augment ", "augment", out);
    text_string(out, t->set ? ", on the device" : "");
    text_string(out, "\n");
}

static void recipe_lines(const trainer *t, text *out)
{
    static const char *const first[][2] = {{"", "optimizer"},
                                           {", lr ", "lr"},
                                           {", weight decay ", "weight_decay"},
                                           {", clip ", "clip"},
                                           {", ema ", "ema"}};
    static const char *const second[][2] = {{"", "schedule"},
                                            {", epochs ", "epochs"},
                                            {", warm-up ", "warmup"},
                                            {", recipe ", "recipe"},
                                            {", seed ", "seed"}};
    line_add(out, "optimizer");
    for (size_t i = 0; i < COUNT(first); i++)
        value_add(t, first[i][0], first[i][1], out);
    text_string(out, "\n");
    line_add(out, "schedule");
    for (size_t i = 0; i < COUNT(second); i++)
        value_add(t, second[i][0], second[i][1], out);
    text_string(out, "\n");
}

static void given_line(const trainer *t, text *out)
{
    int count = 0;
    line_add(out, "given");
    for (size_t i = 0; i < train_settings_count; i++) {
        const setting *row = &train_settings_table[i];
        if (t->settings.given[i] == GIVEN && row->role != SETTING_FREE)
            text_add(out, "%s%s", count++ ? " " : "", row->key);
    }
    text_string(out, count ? "\n" : "nothing\n");
}

void trainer_describe(const trainer *t, text *out)
{
    engine_memory train = engine_memory_use(t->train), eval = engine_memory_use(t->eval);
    network_lines(t, out);
    data_lines(t, out);
    recipe_lines(t, out);
    line_add(out, "steps");
    text_add(out, "%lld images each", (long long)(t->settings.batch * t->settings.accumulate));
    text_add(out, ", %llu updates an epoch, %llu in all\n", (unsigned long long)t->epoch_updates,
             (unsigned long long)t->updates);
    if (*t->init_note)
        line_add(out, "init"), text_add(out, "%s\n", t->init_note);
    given_line(t, out);
    line_add(out, "memory");
    text_add(out, "%.1f MiB planned (%.1f MiB kept from forward to backward)\n",
             (double)(train.total + eval.total - eval.parameters) / 0x1p20, (double)train.kept / 0x1p20);
    line_add(out, "run");
    text_add(out, "%s, settings %.12s\n", t->settings.run && *t->settings.run ? t->settings.run : "(none)",
             t->settings_hash);
}

void trainer_settings_print(const trainer *t, text *out)
{
    recipe_print(&t->settings, t->leave_out, out);
}
