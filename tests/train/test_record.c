/* test_record.c - a resume checks the record of the run: settings, data, rows, sums, machine.
 * SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <math.h>
#include <omp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/safetensors.h"
#include "runs.h"
#include "support/command.h"
#include "train/checkpoint.h"
#include "train/eval_run.h"

/* ---- a file with one text replaced by another ------------------------------------------------ */

static char *bytes_of(const char *run, const char *name, size_t *size)
{
    char path[FOLDER_PATH], *bytes;
    assert_int_equal(file_read_all(&bytes, size, folder_path(path, run, name), 1u << 26), BERLU_OK);
    return bytes;
}

static void bytes_put(const char *run, const char *name, const char *bytes, size_t size)
{
    char path[FOLDER_PATH];
    assert_int_equal(file_write_atomic(folder_path(path, run, name), bytes, size), BERLU_OK);
}

/* Returns what was there before; free() it. */
static char *text_replace(const char *run, const char *name, const char *from, const char *to)
{
    size_t size;
    char *before = bytes_of(run, name, &size), *at = strstr(before, from);
    if (!at)
        fail_msg("%s does not hold '%s'", name, from);
    text t = {0};
    text_bytes(&t, before, (size_t)(at - before));
    text_string(&t, to);
    text_bytes(&t, at + strlen(from), size - (size_t)(at - before) - strlen(from));
    bytes_put(run, name, t.data, t.length);
    text_free(&t);
    return before;
}

/* A resume as the command does it: settings from run.json. */
typedef struct heard {
    int warnings;
    char last[1024];
} heard;

static void hear(void *context, berlu_log_level level, const char *line)
{
    heard *h = context;
    if (level != BERLU_LOG_WARNING)
        return;
    h->warnings++;
    snprintf(h->last, sizeof h->last, "%s", line);
}

static berlu_status resume_until(const char *run, int strict, heard *h, const char *epochs)
{
    train_settings asked, s;
    trainer *t = NULL;
    heard nobody = {0};
    berlu_log log = {.write = hear, .context = h ? h : &nobody};
    train_hooks hooks = {.log = &log};
    recipe_init(&asked);
    assert_int_equal(recipe_set(&asked, "run", run), BERLU_OK);
    assert_int_equal(recipe_set(&asked, "max_steps", "0"), BERLU_OK);
    assert_int_equal(recipe_set(&asked, "threads", "1"), BERLU_OK);
    assert_int_equal(recipe_set(&asked, "workers", "1"), BERLU_OK);
    if (epochs)
        assert_int_equal(recipe_set(&asked, "epochs", epochs), BERLU_OK);
    berlu_status status = trainer_resume_settings(&s, &asked);
    recipe_free(&asked);
    if (status != BERLU_OK)
        return status;
    status = trainer_open(&t, &s, &hooks);
    if (status == BERLU_OK)
        status = trainer_begin(t, &(train_start){.resume = 1, .strict = strict});
    if (status == BERLU_OK)
        status = trainer_run(t, NULL);
    trainer_close(t);
    recipe_free(&s);
    return status;
}

static berlu_status resume(const char *run, int strict, heard *h)
{
    return resume_until(run, strict, h, NULL);
}

static const char *half(char run[FOLDER_PATH], const char *name)
{
    run_whole(run_place(run, name), (const char *const[]){"max_steps=16", NULL});
    return run;
}

/* ---- settings -------------------------------------------------------------------------------- */

static void a_changed_digit_of_run_json_is_named(void **state)
{
    (void)state;
    static const char *const changes[][3] = {
        {"\"lr\": 0.003", "\"lr\": 0.002", "lr (0.002, not 0.003)"},
        {"\"seed\": 0", "\"seed\": 1", "seed (1, not 0)"},
        {"\"epochs\": 3", "\"epochs\": 5", "epochs (5, not 3)"},
        {"\"batch\": 8", "\"batch\": 4", "batch (4, not 8)"},
        {"\"weight_decay\": 0.05", "\"weight_decay\": 0.06", "weight_decay (0.06, not 0.05)"},
        {"\"mean\": \"0.5,0.5,0.5\"", "\"mean\": \"0.1,0.1,0.1\"", "mean (0.1,0.1,0.1, not 0.5,0.5,0.5)"},
        {"alpha=0.01,eps=0.01", "alpha=0.01,eps=0.02", "act (berlu:alpha=0.01,eps=0.02"},
        {"\"synthetic_images\": 64", "\"synthetic_images\": 65", "synthetic_images (65, not 64)"},
    };
    char run[FOLDER_PATH], whole[FOLDER_PATH];
    half(run, "digit");
    for (size_t i = 0; i < COUNT(changes); i++) {
        char *before = text_replace(run, "run.json", changes[i][0], changes[i][1]);
        assert_int_equal(resume(run, 0, NULL), BERLU_ERR_INPUT);
        if (!strstr(berlu_last_error(), changes[i][2]))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), changes[i][2]);
        assert_non_null(strstr(berlu_last_error(), "put run.json"));
        bytes_put(run, "run.json", before, strlen(before));
        free(before);
    }
    assert_int_equal(resume(run, 0, NULL), BERLU_OK);
    run_whole(run_place(whole, "digit-whole"), NULL);
    runs_equal(whole, run);
}

static void a_changed_digit_is_noticed_before_the_first_checkpoint_too(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    half(run, "digit-early");
    assert_int_equal(folder_remove(folder_path(path, run, "checkpoints")), BERLU_OK);
    free(text_replace(run, "run.json", "\"lr\": 0.003", "\"lr\": 0.002"));
    assert_int_equal(resume(run, 0, NULL), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "settings in run.json are not those"));
}

static void eval_notices_a_changed_run_json(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    score s;
    eval_request request = {.run = half(run, "eval-changed"), .which = "last", .batch = 5};
    free(text_replace(run, "run.json", "\"mean\": \"0.5,0.5,0.5\"", "\"mean\": \"0.1,0.1,0.1\""));
    assert_int_equal(eval_run(&request, &s), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "mean (0.1,0.1,0.1, not 0.5,0.5,0.5)"));
}

static void a_later_format_is_refused_by_its_number(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    half(run, "later");
    char *before = text_replace(run, "run.json", "\"format\": 1", "\"format\": 7");
    assert_int_equal(resume(run, 0, NULL), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "has format 7, and this version"));
    bytes_put(run, "run.json", before, strlen(before));
    free(before);
}

static char *hash_of(const char *const *extra)
{
    static char out[128];
    char run[FOLDER_PATH];
    train_settings s;
    trainer *t;
    tiny_settings(&s, run_place(run, "hash"), extra);
    assert_int_equal(trainer_open(&t, &s, NULL), BERLU_OK);
    snprintf(out, sizeof out, "%s", trainer_settings_hash(t));
    trainer_close(t);
    recipe_free(&s);
    return out;
}

/* The key of a study's run depends on settings that change results, however they are given. */
static void the_hash_is_of_what_changes_a_number(void **state)
{
    (void)state;
    static const char *const same[][3] = {{"image_size=16", "classes=10", NULL},
                                          {"act=berlu:alpha=0.01", NULL},
                                          {"threads=2", "workers=2", NULL},
                                          {"checkpoint_every=3", NULL},
                                          {"max_steps=5", NULL},
                                          {"init_std=0.02", NULL},
                                          {"eval_crop=center", "crop_pct=1", NULL},
                                          {"normalize=own", NULL},
                                          {"mean=0.5,0.5,0.5", "std=0.26,0.26,0.26", NULL}};
    static const char *const other[][3] = {{"seed=1", NULL},
                                           {"lr=0.0031", NULL},
                                           {"act=gelu", NULL},
                                           {"init_std=0.03", NULL},
                                           {"train_images=60", NULL},
                                           {"test_images=10", NULL},
                                           {"eval_every=2", NULL},
                                           {"keep=both", NULL},
                                           {"synthetic_images=65", NULL},
                                           {"recompute_attention=1", NULL},
                                           {"mean=0.5,0.5,0.6", "std=0.26,0.26,0.26", NULL}};
    char base[128];
    snprintf(base, sizeof base, "%s", hash_of(NULL));
    assert_int_equal(strlen(base), 64);
    for (size_t i = 0; i < COUNT(same); i++)
        if (strcmp(base, hash_of(same[i])) != 0)
            fail_msg("%s changes the hash", same[i][0]);
    for (size_t i = 0; i < COUNT(other); i++)
        if (strcmp(base, hash_of(other[i])) == 0)
            fail_msg("%s does not change the hash", other[i][0]);
}

/* ---- rows and sums --------------------------------------------------------------------------- */

static void a_changed_row_of_metrics_is_noticed(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    size_t size;
    half(run, "row");
    char *bytes = bytes_of(run, "metrics.csv", &size), *row = strchr(bytes, '\n') + 1;
    for (size_t at = (size_t)(row - bytes); at < size; at += 307) {
        bytes[at] ^= 1;
        bytes_put(run, "metrics.csv", bytes, size);
        assert_int_equal(resume(run, 0, NULL), BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), "metrics.csv: its rows are not those"));
        bytes[at] ^= 1;
    }
    bytes_put(run, "metrics.csv", bytes, size);
    free(bytes);
    assert_int_equal(resume(run, 0, NULL), BERLU_OK);
}

/* A resume that is refused leaves run.json and the lock file as they were, also one that would have
 * prolonged the run. */
static void a_refused_resume_writes_nothing_but_the_log(void **state)
{
    (void)state;
    static const char *const kept[] = {"run.json", "lock", "metrics.csv", "timing.csv"};
    char run[FOLDER_PATH], *before[COUNT(kept)];
    size_t size[COUNT(kept)], after;
    half(run, "refused");
    char *bytes = bytes_of(run, "metrics.csv", &after);
    bytes_put(run, "metrics.csv", bytes, after - 7);
    free(bytes);
    for (size_t i = 0; i < COUNT(kept); i++)
        before[i] = bytes_of(run, kept[i], &size[i]);
    assert_int_equal(resume_until(run, 0, NULL, "9"), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "metrics.csv: is shorter than its checkpoint says"));
    for (size_t i = 0; i < COUNT(kept); i++) {
        char *now = bytes_of(run, kept[i], &after);
        if (after != size[i] || memcmp(now, before[i], after) != 0)
            fail_msg("%s was changed", kept[i]);
        free(now);
        free(before[i]);
    }
}

/* Losing the checksums must not disable the check. */
static void a_checkpoint_without_its_checksums_is_passed_over(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH], whole[FOLDER_PATH];
    score found;
    heard h = {0};
    eval_request request = {.run = half(run, "no-sums"), .which = "16", .batch = 5};
    assert_int_equal(unlink(folder_path(path, run, "checkpoints/step-00000016/checksums")), 0);
    assert_int_equal(eval_run(&request, &found), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "put the file back, or remove the folder"));
    assert_int_equal(resume(run, 0, &h), BERLU_OK);
    assert_int_equal(h.warnings, 1);
    assert_non_null(strstr(h.last, "step-00000016 is broken and passed over"));
    run_whole(run_place(whole, "no-sums-whole"), NULL);
    runs_equal(whole, run);
}

/* ---- best ------------------------------------------------------------------------------------ */

static unsigned best_of(const char *run)
{
    char path[FOLDER_PATH], target[64] = "";
    if (readlink(folder_path(path, run, "checkpoints/best"), target, sizeof target - 1) <= 0)
        return 0;
    return (unsigned)atoi(target + 5);
}

static void a_damaged_best_is_noticed_on_resume(void **state)
{
    (void)state;
    char run[FOLDER_PATH], whole[FOLDER_PATH], path[FOLDER_PATH], name[64];
    size_t size;
    heard h = {0};
    static const char *const extra[] = {"max_steps=24", "epochs=4", NULL};
    run_whole(run_place(run, "best"), extra);
    unsigned best = best_of(run);
    assert_true(best > 0 && best < 24); /* the tiny run's best epoch is not its last */
    snprintf(name, sizeof name, "checkpoints/step-%08u/model.safetensors", best);
    char *bytes = bytes_of(run, name, &size);
    bytes[size - 5] ^= 8;
    bytes_put(run, name, bytes, size);
    free(bytes);
    assert_int_equal(resume(run, 0, &h), BERLU_OK);
    assert_int_equal(h.warnings, 1);
    assert_non_null(strstr(h.last, "the best checkpoint"));
    assert_true(best_of(run) != best);
    snprintf(name, sizeof name, "checkpoints/damaged-step-%08u", best);
    assert_true(folder_exists(folder_path(path, run, name)));
    run_whole(run_place(whole, "best-whole"), (const char *const[]){"epochs=4", NULL});
    runs_equal(whole, run);
}

/* --max-steps may end a run within an epoch. Its evaluation is the best one if it is, for the result, the link and
 * --which best; a longer run knows nothing of it. */
static void an_end_within_an_epoch_may_be_the_best(void **state)
{
    (void)state;
    char run[FOLDER_PATH], whole[FOLDER_PATH];
    score found;
    train_result first = run_whole(run_place(run, "best-cut"), (const char *const[]){"max_steps=4", NULL});
    assert_true(first.updates == 4 && first.best_step == 4);
    assert_true(first.best_top1 == first.last.test_top1);
    assert_int_equal(best_of(run), 4);
    eval_request request = {.run = run, .which = "best", .batch = 5};
    assert_int_equal(eval_run(&request, &found), BERLU_OK);
    assert_true(score_top1(&found) == first.best_top1);
    assert_int_equal(resume(run, 0, NULL), BERLU_OK);
    train_result all = run_whole(run_place(whole, "best-uncut"), NULL);
    runs_equal(whole, run);
    assert_int_equal(best_of(run), all.best_step);
    assert_int_equal(best_of(whole), all.best_step);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void another_machine_is_a_warning_and_with_strict_an_error(void **state)
{
    (void)state;
    static const char *const changes[][2] = {{"\"instructions\": \"", "instruction set ("},
                                             {"\"products\": \"", "matrix library ("},
                                             {"\"berlu\": \"", "berlu ("},
                                             {"\"device\": \"cpu", "device (cpu"}};
    char run[FOLDER_PATH];
    half(run, "machine");
    assert_int_equal(resume(run, 1, NULL), BERLU_OK); /* the same one: nothing to say */
    for (size_t i = 0; i < COUNT(changes); i++) {
        heard h = {0};
        char other[64];
        snprintf(other, sizeof other, "%sx", changes[i][0]);
        size_t size;
        char *before = bytes_of(run, "run.json", &size), *at = strstr(before, changes[i][0]);
        if (i == 3) /* the engine's, not the setting's, which comes first */
            at = strstr(at + 1, changes[i][0]);
        assert_non_null(at);
        text t = {0};
        text_bytes(&t, before, (size_t)(at - before));
        text_string(&t, other);
        text_string(&t, at + strlen(changes[i][0]));
        bytes_put(run, "run.json", t.data, t.length);
        text_free(&t);
        assert_int_equal(resume(run, 1, NULL), BERLU_ERR_ARG);
        assert_non_null(strstr(berlu_last_error(), changes[i][1]));
        assert_int_equal(resume(run, 0, &h), BERLU_OK);
        assert_int_equal(h.warnings, 1);
        assert_non_null(strstr(h.last, changes[i][1]));
        char *log = bytes_of(run, "log.txt", &size);
        assert_non_null(strstr(log, changes[i][1]));
        free(log);
        bytes_put(run, "run.json", before, strlen(before));
        free(before);
    }
}

/* ---- numbers that are not finite ------------------------------------------------------------- */

static void only_checkpoints_of_finite_numbers_are_written(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    const char *const extra[] = {"lr=1e38", "clip=1", "warmup=0", "weight_decay=10", "checkpoint_every=1", NULL};
    train_settings s;
    tiny_settings(&s, run_place(run, "overflow"), extra);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_NUMERIC);
    assert_non_null(strstr(berlu_last_error(), "after the update the weight "));
    assert_non_null(strstr(berlu_last_error(), "there is no checkpoint yet"));
    assert_non_null(strstr(berlu_last_error(), "needs a new run"));
    assert_false(folder_exists(folder_path(path, run, "checkpoints/step-00000001")));
    recipe_free(&s);
}

static void eval_of_weights_that_are_not_finite_fails(void **state)
{
    (void)state;
    char run[FOLDER_PATH], weights[FOLDER_PATH], broken[FOLDER_PATH];
    half(run, "nan");
    safetensors *file;
    assert_int_equal(safetensors_open(&file, folder_path(weights, run, "checkpoints/last/model.safetensors")),
                     BERLU_OK);
    size_t count = safetensors_count(file);
    st_tensor *tensors = calloc(count, sizeof *tensors);
    float *bad = NULL;
    for (size_t i = 0; i < count; i++) {
        tensors[i] = *safetensors_at(file, i);
        if (strcmp(tensors[i].name, "blocks.1.mlp.fc1.bias") == 0) {
            bad = malloc(tensors[i].bytes);
            assert_int_equal(st_read_f32(safetensors_at(file, i), bad), BERLU_OK);
            bad[3] = NAN;
            tensors[i].data = bad;
        }
    }
    assert_non_null(bad);
    st_text act = {CHECKPOINT_ACTIVATION, "berlu"};
    assert_int_equal(safetensors_write(folder_path(broken, run, "nan.safetensors"), tensors, count, &act, 1), BERLU_OK);
    safetensors_close(file);
    free(tensors);
    free(bad);
    command_result r;
    command_run(&r, "eval", "vit_micro", "--weights", broken, "--data", "synthetic", "--image-size", "16", "--patch",
                "8", NULL);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "1 of 256 numbers of blocks.1.mlp.fc1.bias are not finite"));
    assert_string_equal(r.out, "");
    command_free(&r);
}

/* ---- run.json as a record -------------------------------------------------------------------- */

static void run_json_repeats_the_run(void **state)
{
    (void)state;
    static const char *const kinds[][6] = {
        {"epochs=2", NULL},
        {"optimizer=sgd", "lr=0.1", "nesterov=1", "epochs=2", "batch=16", NULL},
        {"recipe=convnext", "mixup=0.8", "epochs=2", "lr=0.001", "warmup=1", NULL},
        {"model=tnt_micro", "patch=", "image_size=", "epochs=1", "act=relu", NULL},
        {"model=linear", "patch=", "act=", "holdout=10", "epochs=1", NULL},
        {"max_steps=5", "epochs=", NULL},
        {"overfit_batch=1", "epochs=", "max_steps=6", NULL},
    };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char first[FOLDER_PATH], second[FOLDER_PATH], record[FOLDER_PATH];
        command_result r;
        run_whole(run_place(first, "recorded"), kinds[i]);
        run_place(second, "repeated");
        command_run(&r, "train", "--config", folder_path(record, first, "run.json"), "--run", second, "--quiet",
                    "--threads", "1", "--workers", "1", NULL);
        if (r.code != 0)
            fail_msg("%s: exit %d: %s", kinds[i][0], r.code, r.err);
        command_free(&r);
        runs_equal(first, second);
        files_equal(first, second, "correct.bin");
    }
}

/* No zero that means a default, no setting without effect; settings that change no result are under
 * hardware. */
static void run_json_holds_resolved_settings_only(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    json_error_t error;
    run_whole(run_place(run, "resolved"), (const char *const[]){"epochs=1", NULL});
    json_t *root = json_load_file(folder_path(path, run, "run.json"), 0, &error);
    assert_non_null(root);
    json_t *s = json_object_get(root, "settings");
    static const char *const absent[] = {"run",        "threads",   "workers",      "momentum",  "teacher",   "stem",
                                         "stride",     "normalize", "step_every",   "mix_prob",  "max_steps", "holdout",
                                         "val_labels", "labels",    "train_images", "min_lr_no", "max_bad"};
    for (size_t i = 0; i < COUNT(absent); i++)
        if (json_object_get(s, absent[i]))
            fail_msg("settings hold %s", absent[i]);
    assert_int_equal(json_integer_value(json_object_get(s, "image_size")), 16);
    assert_int_equal(json_integer_value(json_object_get(s, "classes")), 10);
    assert_true(json_real_value(json_object_get(s, "init_std")) == 0.02);
    assert_string_equal(json_string_value(json_array_get(json_object_get(s, "act"), 0)),
                        "berlu:alpha=0.01,eps=0.01,degree=2,learn=alpha");
    json_t *data = json_object_get(root, "data"), *hardware = json_object_get(root, "hardware");
    assert_int_equal(strlen(json_string_value(json_object_get(data, "hash"))), 64);
    assert_int_equal(json_integer_value(json_object_get(data, "train_images")), 64);
    assert_int_equal(json_integer_value(json_object_get(hardware, "threads")), 1);
    assert_string_equal(json_string_value(json_object_get(hardware, "run")), run);
    assert_non_null(json_object_get(root, "host"));
    assert_non_null(json_object_get(root, "started"));
    json_decref(root);
}

static void the_table_at_the_start_has_ten_lines(void **state)
{
    (void)state;
    command_result r;
    int lines = 0;
    command_run(&r, "train", "--model", "vit_micro", "--patch", "8", "--data", "synthetic", "--act", "berlu", "--batch",
                "128", "--lr", "1e-3", "--dry-run", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "\ntime "));
    for (const char *at = r.err; (at = strchr(at, '\n')); at++)
        lines += at[1] != '\n' && at[1] != 0;
    assert_int_equal(lines + 1, 10 + 1); /* and what a dry run adds: the time */
    command_free(&r);
    command_run(&r, "train", "--model", "vit_micro", "--patch", "8", "--data", "synthetic", "--act", "berlu", "--batch",
                "128", "--dry-run", "--verbose", NULL);
    assert_non_null(strstr(r.err, "adam_eps"));
    command_free(&r);
}

int main(void)
{
    omp_set_num_threads(1); /* products of this size do not gain, and tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changed_digit_of_run_json_is_named),
        cmocka_unit_test(a_changed_digit_is_noticed_before_the_first_checkpoint_too),
        cmocka_unit_test(eval_notices_a_changed_run_json),
        cmocka_unit_test(a_later_format_is_refused_by_its_number),
        cmocka_unit_test(the_hash_is_of_what_changes_a_number),
        cmocka_unit_test(a_changed_row_of_metrics_is_noticed),
        cmocka_unit_test(a_refused_resume_writes_nothing_but_the_log),
        cmocka_unit_test(a_checkpoint_without_its_checksums_is_passed_over),
        cmocka_unit_test(a_damaged_best_is_noticed_on_resume),
        cmocka_unit_test(an_end_within_an_epoch_may_be_the_best),
        cmocka_unit_test(another_machine_is_a_warning_and_with_strict_an_error),
        cmocka_unit_test(only_checkpoints_of_finite_numbers_are_written),
        cmocka_unit_test(eval_of_weights_that_are_not_finite_fails),
        cmocka_unit_test(run_json_repeats_the_run),
        cmocka_unit_test(run_json_holds_resolved_settings_only),
        cmocka_unit_test(the_table_at_the_start_has_ten_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
