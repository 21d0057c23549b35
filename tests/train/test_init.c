/* test_init.c - runs that begin with a file's weights, and runs that are made longer.
 * SPDX-License-Identifier: MIT
 *
 * A learning rate of 1e-30 leaves every trained weight as it is, to the bit: so what a run began
 * with can be read from what it saved. */
#include <jansson.h>

#include "io/safetensors.h"
#include "runs.h"
#include "support/fail.h"
#include "train/eval_run.h"

#define STILL "lr=1e-30", "schedule=constant", "warmup=0", "weight_decay=0", "epochs=1"

static const char *line_of(char out[FOLDER_PATH + 16], const char *key, const char *value)
{
    snprintf(out, FOLDER_PATH + 16, "%s=%s", key, value);
    return out;
}

static const char *weights_of(char out[FOLDER_PATH], const char *run)
{
    return folder_path(out, run, "checkpoints/last/model.safetensors");
}

/* The tensors of both files that are not of the head must be the same bytes; returns how many
 * are. */
static int bodies_equal(const char *one, const char *two)
{
    char path[FOLDER_PATH];
    safetensors *a, *b;
    int count = 0;
    assert_int_equal(safetensors_open(&a, weights_of(path, one)), BERLU_OK);
    assert_int_equal(safetensors_open(&b, weights_of(path, two)), BERLU_OK);
    for (size_t i = 0; i < safetensors_count(a); i++) {
        const st_tensor *x = safetensors_at(a, i), *y = safetensors_find(b, x->name);
        if (strncmp(x->name, "head.", 5) == 0 || !y)
            continue;
        assert_int_equal(x->count, y->count);
        float *left = malloc(x->count * sizeof *left), *right = malloc(x->count * sizeof *right);
        assert_true(left && right && st_read_f32(x, left) == BERLU_OK && st_read_f32(y, right) == BERLU_OK);
        if (memcmp(left, right, x->count * sizeof *left) != 0)
            fail_msg("%s differs", x->name);
        free(left);
        free(right);
        count++;
    }
    safetensors_close(a);
    safetensors_close(b);
    return count;
}

static void a_run_begins_with_the_weights_of_a_run_or_a_file(void **state)
{
    (void)state;
    char first[FOLDER_PATH], next[FOLDER_PATH], path[FOLDER_PATH], line[FOLDER_PATH + 16];
    run_whole(run_place(first, "init-first"), NULL);
    run_whole(run_place(next, "init-run"), (const char *const[]){STILL, line_of(line, "init", first), "seed=7", NULL});
    files_equal(first, next, "checkpoints/last/model.safetensors");
    run_whole(run_place(next, "init-file"),
              (const char *const[]){STILL, line_of(line, "init", weights_of(path, first)), "seed=7", NULL});
    files_equal(first, next, "checkpoints/last/model.safetensors");
}

static const char *described(text *out, const char *const *extra)
{
    char run[FOLDER_PATH];
    train_settings s;
    trainer *t;
    tiny_settings(&s, run_place(run, "init-described"), extra);
    if (trainer_open(&t, &s, NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    trainer_describe(t, out);
    trainer_close(t);
    recipe_free(&s);
    return out->data;
}

static void another_number_of_classes_gives_a_new_head_and_says_so(void **state)
{
    (void)state;
    char first[FOLDER_PATH], next[FOLDER_PATH], line[FOLDER_PATH + 16];
    text words = {0};
    run_whole(run_place(first, "classes-ten"), NULL);
    const char *const extra[] = {STILL, line_of(line, "init", first), "classes=100", "synthetic_images=128", NULL};
    run_whole(run_place(next, "classes-hundred"), extra);
    assert_true(bodies_equal(first, next) > 40);
    assert_non_null(strstr(described(&words, extra), "a new head (100 classes, the file has 10)"));
    text_free(&words);
}

static void another_activation_keeps_its_own_parameters(void **state)
{
    (void)state;
    char first[FOLDER_PATH], next[FOLDER_PATH], line[FOLDER_PATH + 16];
    text words = {0};
    run_whole(run_place(first, "act-gelu"), (const char *const[]){"act=gelu", NULL});
    const char *const extra[] = {STILL, line_of(line, "init", first), "act=berlu:alpha=0.25", NULL};
    run_whole(run_place(next, "act-berlu"), extra);
    assert_true(bodies_equal(first, next) > 40);
    assert_true(metric(next, 0, "alpha.blocks.0.mlp.act") == 0.25);
    described(&words, extra);
    assert_non_null(strstr(words.data, "4 activation parameters at their start, trained with gelu"));
    text_free(&words);
    const char *const back[] = {STILL, line_of(line, "init", next), "act=gelu", NULL};
    assert_non_null(strstr(described(&words, back), "4 of the file's activation parameters unused"));
    text_free(&words);
}

static void another_network_is_refused_by_name(void **state)
{
    (void)state;
    char first[FOLDER_PATH], next[FOLDER_PATH], line[FOLDER_PATH + 16];
    train_settings s;
    trainer *t = NULL;
    run_whole(run_place(first, "net-small"), NULL);
    tiny_settings(&s, run_place(next, "net-large"),
                  (const char *const[]){line_of(line, "init", first), "image_size=32", NULL});
    assert_int_equal(trainer_open(&t, &s, NULL), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "pos_embed"));
    recipe_free(&s);
    tiny_settings(&s, run_place(next, "net-std"),
                  (const char *const[]){line_of(line, "init", first), "init_std=0.1", NULL});
    assert_int_equal(trainer_open(&t, &s, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "init_std: has no effect because init gives these weights"));
    recipe_free(&s);
    tiny_settings(&s, run_place(next, "net-none"), (const char *const[]){"init=/nowhere/w.safetensors", NULL});
    assert_int_not_equal(trainer_open(&t, &s, NULL), BERLU_OK);
    recipe_free(&s);
}

static void canonical(text *out, const char *const *extra)
{
    train_settings s;
    train_data data = {0};
    tiny_settings(&s, "unused", extra);
    if (train_canonical(out, &s, &data, NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    train_data_close(&data);
    recipe_free(&s);
}

static void the_content_of_the_file_counts_and_not_its_path(void **state)
{
    (void)state;
    char first[FOLDER_PATH], other[FOLDER_PATH], copy[FOLDER_PATH], path[FOLDER_PATH], line[FOLDER_PATH + 16];
    text a = {0}, b = {0}, c = {0}, none = {0};
    char *bytes;
    size_t size;
    run_whole(run_place(first, "hash-first"), NULL);
    run_whole(run_place(other, "hash-other"), (const char *const[]){"seed=1", NULL});
    assert_int_equal(file_read_all(&bytes, &size, weights_of(path, first), 1 << 24), BERLU_OK);
    folder_fresh(copy, "hash-copy");
    strcat(copy, "/moved.safetensors");
    assert_int_equal(file_write_atomic(copy, bytes, size), BERLU_OK);
    free(bytes);
    canonical(&none, NULL);
    canonical(&a, (const char *const[]){line_of(line, "init", first), NULL});
    canonical(&b, (const char *const[]){line_of(line, "init", copy), NULL});
    canonical(&c, (const char *const[]){line_of(line, "init", other), NULL});
    assert_string_equal(a.data, b.data);
    assert_string_not_equal(a.data, c.data);
    assert_non_null(strstr(a.data, "init_sha256="));
    assert_null(strstr(none.data, "init=")); /* keys of earlier runs stay as they were */
    assert_null(strstr(none.data, "init_sha256"));
    text_free(&a), text_free(&b), text_free(&c), text_free(&none);
}

static void a_run_with_a_checkpoint_needs_its_file_no_more(void **state)
{
    (void)state;
    char first[FOLDER_PATH], next[FOLDER_PATH], base[FOLDER_PATH], copy[FOLDER_PATH], line[FOLDER_PATH + 16];
    char path[FOLDER_PATH];
    char *bytes;
    size_t size;
    train_settings s, saved;
    stopper stop = {.phase = "train", .at = 9};
    run_whole(run_place(first, "gone-first"), NULL);
    assert_int_equal(file_read_all(&bytes, &size, weights_of(path, first), 1 << 24), BERLU_OK);
    folder_fresh(base, "gone-copy");
    folder_path(copy, base, "w.safetensors");
    assert_int_equal(file_write_atomic(copy, bytes, size), BERLU_OK);
    free(bytes);
    const char *const extra[] = {line_of(line, "init", copy), NULL};
    tiny_settings(&s, run_place(next, "gone-next"), extra);
    assert_int_equal(run_with(&s, 0, &stop, NULL), BERLU_ERR_STOPPED);
    assert_int_equal(remove(copy), 0);
    assert_int_equal(trainer_resume_settings(&saved, &s), BERLU_OK);
    if (run_with(&saved, 1, NULL, NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    saved.run = "gone-elsewhere"; /* without a checkpoint it is missed */
    assert_int_equal(run_with(&saved, 0, NULL, NULL), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "w.safetensors"));
    recipe_free(&saved);
    recipe_free(&s);
}

/* ---- longer runs ----------------------------------------------------------------------------- */

static berlu_status resume_with(const char *run, const char *epochs, stopper *stop)
{
    train_settings asked, s;
    recipe_init(&asked);
    assert_int_equal(recipe_set(&asked, "run", run), BERLU_OK);
    if (epochs)
        assert_int_equal(recipe_set(&asked, "epochs", epochs), BERLU_OK);
    berlu_status status = trainer_resume_settings(&s, &asked);
    recipe_free(&asked);
    if (status != BERLU_OK)
        return status;
    status = run_with(&s, 1, stop, NULL);
    recipe_free(&s);
    return status;
}

static json_t *record_of(const char *run)
{
    char path[FOLDER_PATH];
    json_t *root = json_load_file(folder_path(path, run, "run.json"), 0, NULL);
    assert_non_null(root);
    return root;
}

static void a_constant_rate_makes_a_prolonged_run_equal_to_a_longer_one(void **state)
{
    (void)state;
    char one[FOLDER_PATH], two[FOLDER_PATH];
    run_whole(run_place(one, "long"), (const char *const[]){"schedule=constant", "warmup=0", "epochs=4", NULL});
    run_whole(run_place(two, "prolonged"), (const char *const[]){"schedule=constant", "warmup=0", "epochs=2", NULL});
    if (resume_with(two, "4", NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    runs_equal(one, two);
}

static void a_prolonged_run_keeps_its_old_record_under_history(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    run_whole(run_place(run, "history"), (const char *const[]){"epochs=2", NULL});
    json_t *before = record_of(run);
    assert_int_equal(resume_with(run, "3", NULL), BERLU_OK);
    assert_int_equal(resume_with(run, "5", NULL), BERLU_OK);
    json_t *after = record_of(run), *history = json_object_get(after, "history");
    assert_int_equal(json_array_size(history), 2);
    assert_true(json_equal(json_array_get(history, 0), before));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(after, "settings"), "epochs")), 5);
    assert_string_not_equal(json_string_value(json_object_get(after, "settings_hash")),
                            json_string_value(json_object_get(before, "settings_hash")));
    assert_null(json_object_get(json_array_get(history, 1), "history"));
    csv_table rows = metrics_of(run);
    assert_int_equal(rows.rows, 5);
    csv_free(&rows);
    assert_int_equal(resume_with(run, "4", NULL), BERLU_ERR_ARG); /* shorter it cannot be */
    assert_non_null(strstr(berlu_last_error(), "epochs"));
    json_decref(before);
    json_decref(after);
}

/* The new record is written before the first checkpoint of the new settings: the old one must do,
 * also for an evaluation meanwhile. */
static void a_prolonged_run_that_stops_at_once_can_be_evaluated_and_resumed(void **state)
{
    (void)state;
    char run[FOLDER_PATH], whole[FOLDER_PATH];
    stopper stop = {.stop = 1};
    score found;
    run_whole(run_place(whole, "prolonged-whole"), (const char *const[]){"epochs=2", NULL});
    assert_int_equal(resume_with(whole, "4", NULL), BERLU_OK);
    run_whole(run_place(run, "prolonged-stopped"), (const char *const[]){"epochs=2", NULL});
    assert_int_equal(resume_with(run, "4", &stop), BERLU_ERR_STOPPED);
    if (eval_run(&(eval_request){.run = run, .which = "last", .batch = 4}, &found) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    if (resume_with(run, NULL, NULL) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    runs_equal(whole, run);
}

static void changed_settings_are_not_prolonged(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    run_whole(run_place(run, "changed"), (const char *const[]){"epochs=1", NULL});
    json_t *root = record_of(run);
    json_object_set_new(json_object_get(root, "settings"), "seed", json_integer(5));
    assert_int_equal(json_dump_file(root, folder_path(path, run, "run.json"), 0), 0);
    json_decref(root);
    assert_int_equal(resume_with(run, "2", NULL), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "prolonged"));
}

static void memory_that_fails_leaves_the_run_as_it_was(void **state)
{
    (void)state;
    char run[FOLDER_PATH], line[FOLDER_PATH + 16], first[FOLDER_PATH];
    run_whole(run_place(first, "memory-first"), (const char *const[]){"epochs=1", NULL});
    train_settings s, asked;
    tiny_settings(
        &s, run_place(run, "memory"),
        (const char *const[]){line_of(line, "init", first), "classes=100", "synthetic_images=128", "epochs=1", NULL});
    int hit = 1;
    for (int n = 1; hit; n += 1 + n / 4) { /* ever fewer: each try opens a whole trainer */
        trainer *t = NULL;
        fail_after(FAIL_ALLOC, n);
        berlu_status status = trainer_open(&t, &s, NULL);
        hit = fail_hit();
        assert_true(hit || status == BERLU_OK);
        trainer_close(t);
    }
    recipe_free(&s);
    recipe_init(&asked);
    assert_int_equal(recipe_set(&asked, "run", first), BERLU_OK);
    assert_int_equal(recipe_set(&asked, "epochs", "2"), BERLU_OK);
    assert_int_equal(trainer_resume_settings(&s, &asked), BERLU_OK);
    hit = 1;
    for (int n = 1; hit; n++) {
        trainer *t = NULL;
        assert_int_equal(trainer_open(&t, &s, NULL), BERLU_OK);
        fail_after(FAIL_ALLOC | FAIL_WRITE | FAIL_RENAME, n);
        berlu_status status = trainer_start(t, 1);
        hit = fail_hit();
        assert_true(hit || status == BERLU_OK);
        trainer_close(t);
        json_decref(record_of(first)); /* it is there, and whole */
    }
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    recipe_free(&s);
    recipe_free(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_begins_with_the_weights_of_a_run_or_a_file),
        cmocka_unit_test(another_number_of_classes_gives_a_new_head_and_says_so),
        cmocka_unit_test(another_activation_keeps_its_own_parameters),
        cmocka_unit_test(another_network_is_refused_by_name),
        cmocka_unit_test(the_content_of_the_file_counts_and_not_its_path),
        cmocka_unit_test(a_run_with_a_checkpoint_needs_its_file_no_more),
        cmocka_unit_test(a_constant_rate_makes_a_prolonged_run_equal_to_a_longer_one),
        cmocka_unit_test(a_prolonged_run_keeps_its_old_record_under_history),
        cmocka_unit_test(a_prolonged_run_that_stops_at_once_can_be_evaluated_and_resumed),
        cmocka_unit_test(changed_settings_are_not_prolonged),
        cmocka_unit_test(memory_that_fails_leaves_the_run_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
