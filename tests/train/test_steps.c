/* test_steps.c - the record of single steps: the first weights, the order of images, every loss.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "models/weights.h"
#include "runs.h"
#include "train/trainer_internal.h"

/* A run of the tiny network with its steps recorded; the trainer is given back open, and borrows
 * the texts of `s`. */
static trainer *recorded(train_settings *s, char run[FOLDER_PATH], const char *name, const char *const *extra)
{
    trainer *t;
    tiny_settings(s, run_place(run, name), extra);
    if (trainer_open(&t, s, NULL) != BERLU_OK || trainer_begin(t, &(train_start){.record_steps = 1}) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    return t;
}

static csv_table steps_of(const char *run)
{
    csv_table out;
    char path[FOLDER_PATH + 16];
    snprintf(path, sizeof path, "%s/steps.csv", run);
    assert_int_equal(csv_read(&out, path), BERLU_OK);
    return out;
}

static void a_row_per_batch_whose_losses_are_those_of_the_metrics(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s = {0};
    trainer *t = recorded(&s, run, "rows", (const char *const[]){"accumulate=2", NULL});
    uint64_t batches = t->epoch_batches, epochs = (uint64_t)t->settings.epochs, updates = t->updates;
    if (trainer_run(t, NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    csv_table steps = steps_of(run);
    assert_int_equal(steps.rows, batches * epochs);
    for (uint64_t epoch = 0; epoch < epochs; epoch++) {
        double loss = 0, norm = 0;
        size_t norms = 0;
        for (size_t i = 0; i < batches; i++) {
            size_t row = epoch * batches + i;
            double value = csv_number(&steps, row, csv_column(&steps, "grad_norm"));
            assert_true(csv_number(&steps, row, csv_column(&steps, "epoch")) == (double)(epoch + 1));
            loss += csv_number(&steps, row, csv_column(&steps, "loss"));
            if (!isnan(value))
                norm += value, norms++;
        }
        assert_true(fabs(loss / (double)batches - metric(run, epoch, "train_loss")) < 1e-12);
        assert_true(fabs(norm / (double)norms - metric(run, epoch, "grad_norm")) < 1e-12);
    }
    assert_true(csv_number(&steps, steps.rows - 1, csv_column(&steps, "step")) == (double)updates);
    csv_free(&steps);
    trainer_close(t);
    recipe_free(&s);
}

/* The images of each row are those that the loader gave, whoever made the batches. */
static void the_images_of_a_row_are_those_of_the_batch(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const loader_batch *b;
    train_settings s = {0};
    trainer *t = recorded(&s, run, "images", NULL);
    if (trainer_run(t, NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    csv_table steps = steps_of(run);
    size_t row = 0;
    for (uint32_t epoch = 0; epoch < (uint32_t)t->settings.epochs; epoch++) {
        assert_int_equal(loader_start(t->batches, epoch, 0), BERLU_OK);
        while (loader_next(t->batches, &b) == BERLU_OK && b) {
            const char *at = csv_cell(&steps, row++, csv_column(&steps, "images"));
            char *end = (char *)at;
            for (size_t i = 0; i < b->count; i++)
                assert_int_equal(strtoull(end, &end, 10), b->indices[i]);
            assert_int_equal(*end, 0);
        }
    }
    assert_int_equal(row, steps.rows);
    csv_free(&steps);
    trainer_close(t);
    recipe_free(&s);
}

static void the_first_weights_are_those_of_the_seed(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH + 32];
    safetensors *file;
    train_settings s = {0};
    trainer *t = recorded(&s, run, "first", (const char *const[]){"seed=3", NULL});
    const graph *g = engine_graph(t->train);
    if (trainer_run(t, NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_int_equal(weights_init(t->train, 3, NULL), BERLU_OK);
    snprintf(path, sizeof path, "%s/initial.safetensors", run);
    assert_int_equal(safetensors_open(&file, path), BERLU_OK);
    assert_string_equal(safetensors_metadata(file, "model"), "vit_micro");
    for (int i = 0; i < graph_param_count(g); i++) {
        const st_tensor *stored = safetensors_find(file, graph_tensor(g, graph_param(g, i))->name);
        float *values = malloc(stored->bytes + 1);
        assert_int_equal(st_read_f32(stored, values), BERLU_OK);
        assert_memory_equal(values, engine_host(t->train, ARRAY_WEIGHT, i), stored->bytes);
        free(values);
    }
    safetensors_close(file);
    trainer_close(t);
    recipe_free(&s);
}

/* A recorded run and one that is not have the same bytes, metadata included. */
static void a_record_changes_no_byte_of_the_run(void **state)
{
    (void)state;
    char run[FOLDER_PATH], other[FOLDER_PATH];
    train_settings s = {0};
    trainer *t = recorded(&s, run, "with", NULL);
    assert_int_equal(trainer_run(t, NULL), BERLU_OK);
    trainer_close(t);
    recipe_free(&s);
    run_whole(run_place(other, "without"), NULL);
    runs_equal(run, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_per_batch_whose_losses_are_those_of_the_metrics),
        cmocka_unit_test(the_images_of_a_row_are_those_of_the_batch),
        cmocka_unit_test(the_first_weights_are_those_of_the_seed),
        cmocka_unit_test(a_record_changes_no_byte_of_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
