/* runs.c - see runs.h. SPDX-License-Identifier: MIT */
#include "runs.h"

#include <dirent.h>
#include <unistd.h>

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

void tree_copy(const char *from, const char *to)
{
    assert_int_equal(folder_make(to), BERLU_OK);
    DIR *dir = opendir(from);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char source[FOLDER_PATH], target[FOLDER_PATH], *bytes, link[64] = "";
        size_t size;
        if (entry->d_name[0] == '.')
            continue;
        folder_path(source, from, entry->d_name);
        folder_path(target, to, entry->d_name);
        if (readlink(source, link, sizeof link - 1) > 0) {
            assert_int_equal(symlink(link, target), 0);
        } else if (folder_exists(source)) {
            tree_copy(source, target);
        } else {
            assert_int_equal(file_read_all(&bytes, &size, source, 1u << 24), BERLU_OK);
            assert_int_equal(file_write_atomic(target, bytes, size), BERLU_OK);
            free(bytes);
        }
    }
    closedir(dir);
}

void files_equal(const char *a, const char *b, const char *name)
{
    char pa[FOLDER_PATH], pb[FOLDER_PATH];
    unsigned char *bytes_a, *bytes_b;
    size_t size_a, size_b;
    folder_path(pa, a, name);
    folder_path(pb, b, name);
    assert_int_equal(file_in_all(&bytes_a, &size_a, pa), BERLU_OK);
    assert_int_equal(file_in_all(&bytes_b, &size_b, pb), BERLU_OK);
    if (size_a != size_b || memcmp(bytes_a, bytes_b, size_a) != 0)
        fail_msg("%s differs between %s and %s", name, a, b);
    free(bytes_a);
    free(bytes_b);
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
