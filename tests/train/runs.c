/* runs.c - see runs.h. SPDX-License-Identifier: MIT */
#include "runs.h"

static const char *const tiny[] = {
    "model=vit_micro", "image_size=16", "patch=8",  "data=synthetic", "synthetic_images=64", "act=berlu", "batch=8",
    "eval_batch=8",    "epochs=3",      "lr=0.003", "workers=1",      "threads=1",           NULL};

void tiny_settings(train_settings *s, const char *run, const char *const *extra)
{
    char key[64];
    unsigned char left_out[RECIPE_KEYS_MAX] = {0};
    recipe_init(s);
    assert_int_equal(recipe_set(s, "run", run), BERLU_OK);
    const char *const *lists[] = {extra, tiny};
    for (size_t l = 0; l < COUNT(lists); l++)
        for (const char *const *item = lists[l]; item && *item; item++) {
            const char *is = strchr(*item, '=');
            snprintf(key, sizeof key, "%.*s", (int)(is - *item), *item);
            size_t row = (size_t)(recipe_find(key) - train_settings_table);
            left_out[row] |= !is[1];
            if (left_out[row] || (l == 1 && recipe_given(s, key)))
                continue;
            if (recipe_set(s, key, is + 1) != BERLU_OK)
                fail_msg("%s", berlu_last_error());
        }
    if (recipe_resolve(s) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

void stopper_tick(void *context, const train_progress *p)
{
    stopper *s = context;
    if (s->phase && strcmp(p->phase, s->phase) == 0 && p->update >= s->at)
        s->stop = 1;
}

berlu_status run_with(const train_settings *s, int resume, stopper *stop, train_result *result)
{
    trainer *t = NULL;
    train_hooks hooks = {.stop = stop ? &stop->stop : NULL, .progress = stop ? stopper_tick : NULL, .context = stop};
    berlu_status status = trainer_open(&t, s, &hooks);
    if (status == BERLU_OK)
        status = trainer_start(t, resume);
    if (status == BERLU_OK)
        status = trainer_run(t, result);
    trainer_close(t);
    return status;
}

train_result run_whole(const char *run, const char *const *extra)
{
    train_settings s;
    train_result r;
    tiny_settings(&s, run, extra);
    if (run_with(&s, 0, NULL, &r) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    recipe_free(&s);
    return r;
}

void files_equal(const char *a, const char *b, const char *name)
{
    char pa[FOLDER_PATH], pb[FOLDER_PATH];
    file_map ma, mb;
    folder_path(pa, a, name);
    folder_path(pb, b, name);
    assert_int_equal(file_map_open(&ma, pa), BERLU_OK);
    assert_int_equal(file_map_open(&mb, pb), BERLU_OK);
    if (ma.size != mb.size || memcmp(ma.data, mb.data, ma.size) != 0)
        fail_msg("%s differs between %s and %s", name, a, b);
    file_map_close(&ma);
    file_map_close(&mb);
}

void runs_equal(const char *a, const char *b)
{
    files_equal(a, b, "checkpoints/last/model.safetensors");
    files_equal(a, b, "checkpoints/last/state.safetensors");
    files_equal(a, b, "metrics.csv");
    files_equal(a, b, "start.csv");
}

const char *run_place(char out[FOLDER_PATH], const char *name)
{
    char base[FOLDER_PATH];
    folder_fresh(base, name);
    return folder_path(out, base, "run");
}

csv_table metrics_of(const char *run)
{
    char path[FOLDER_PATH];
    csv_table t;
    assert_int_equal(csv_read(&t, folder_path(path, run, "metrics.csv")), BERLU_OK);
    return t;
}

double metric(const char *run, size_t row, const char *column)
{
    csv_table t = metrics_of(run);
    assert_true(csv_column(&t, column) >= 0);
    double value = csv_number(&t, row, csv_column(&t, column));
    csv_free(&t);
    return value;
}
