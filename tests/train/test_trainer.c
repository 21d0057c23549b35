/* test_trainer.c - runs: the same bytes however they were interrupted, every option does what it says, and what goes
 * wrong leaves the last good state. SPDX-License-Identifier: MIT
 *
 * The network is vit_micro on 16 x 16 pictures with patches of 8: five tokens, milliseconds a step. */
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "io/csv.h"
#include "io/safetensors.h"
#include "support/fail.h"
#include "support/folder.h"
#include "train/eval_run.h"
#include "train/run_folder.h"
#include "train/trainer.h"

static const char *const tiny[] = {
    "model=vit_micro", "image_size=16", "patch=8",  "data=synthetic", "synthetic_images=64", "act=berlu", "batch=8",
    "eval_batch=8",    "epochs=3",      "lr=0.003", "workers=1",      "threads=1",           NULL};

/* What a test says wins over `tiny`; "key=" alone leaves that key out. */
static void settings_make(train_settings *s, const char *run, const char *const *extra)
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

/* Stops a run after so many calls of the progress hook in the phase that is asked for. */
typedef struct stopper {
    volatile sig_atomic_t stop;
    const char *phase;
    uint64_t at;
} stopper;

static void stopper_tick(void *context, const train_progress *p)
{
    stopper *s = context;
    if (s->phase && strcmp(p->phase, s->phase) == 0 && p->update >= s->at)
        s->stop = 1;
}

static berlu_status run_with(const train_settings *s, int resume, stopper *stop, train_result *result)
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

static train_result run_whole(const char *run, const char *const *extra)
{
    train_settings s;
    train_result r;
    settings_make(&s, run, extra);
    if (run_with(&s, 0, NULL, &r) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    recipe_free(&s);
    return r;
}

static void files_equal(const char *a, const char *b, const char *name)
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

static void runs_equal(const char *a, const char *b)
{
    files_equal(a, b, "checkpoints/last/model.safetensors");
    files_equal(a, b, "checkpoints/last/state.safetensors");
    files_equal(a, b, "metrics.csv");
}

/* A fresh place for a run: the folder itself must not be there yet. */
static const char *run_place(char out[FOLDER_PATH], const char *name)
{
    char base[FOLDER_PATH];
    folder_fresh(base, name);
    return folder_path(out, base, "run");
}

static csv_table metrics_of(const char *run)
{
    char path[FOLDER_PATH];
    csv_table t;
    assert_int_equal(csv_read(&t, folder_path(path, run, "metrics.csv")), BERLU_OK);
    return t;
}

static double metric(const char *run, size_t row, const char *column)
{
    csv_table t = metrics_of(run);
    assert_true(csv_column(&t, column) >= 0);
    double value = csv_number(&t, row, csv_column(&t, column));
    csv_free(&t);
    return value;
}

/* ---- interruption -------------------------------------------------------------------------------------------------- */

static const char *const everything[] = {
    "ema=0.9",       "drop_path=0.2",      "augment=crop-flip",       "mixup=0.8", "cutmix=1", "accumulate=3",
    "smoothing=0.1", "checkpoint_every=2", "act_constraint=alpha:0:", NULL};

/* Runs until stopped, again and again, each time a little further. */
static void stopped_often_equals_uninterrupted(const char *const *extra, const char *phase, const char *name)
{
    char whole[FOLDER_PATH], cut[FOLDER_PATH];
    train_settings s;
    train_result r;
    char place[64];
    snprintf(place, sizeof place, "%s-whole", name);
    run_whole(run_place(whole, place), extra);
    snprintf(place, sizeof place, "%s-cut", name);
    settings_make(&s, run_place(cut, place), extra);
    int stops = 0;
    for (uint64_t at = 1;; at += 2) {
        stopper stop = {.phase = phase, .at = at};
        berlu_status status = run_with(&s, 1, &stop, &r);
        if (status == BERLU_OK)
            break;
        if (status != BERLU_ERR_STOPPED)
            fail_msg("%s", berlu_last_error());
        stops++;
        assert_true(stops < 50);
    }
    assert_true(stops >= 2);
    runs_equal(whole, cut);
    if (s.ema > 0)
        files_equal(whole, cut, "checkpoints/last/ema.safetensors");
    recipe_free(&s);
}

static void a_run_stopped_between_updates_gives_the_same_bytes(void **state)
{
    (void)state;
    stopped_often_equals_uninterrupted(NULL, "train", "plain");
}

static void a_run_with_everything_switched_on_resumes_to_the_same_bytes(void **state)
{
    (void)state;
    stopped_often_equals_uninterrupted(everything, "train", "everything");
}

static void a_run_stopped_during_an_evaluation_gives_the_same_bytes(void **state)
{
    (void)state;
    stopped_often_equals_uninterrupted(NULL, "test", "evaluation");
}

/* The histograms are taken at the epoch's last update, and a resume does not repeat it. */
static void a_stop_during_an_evaluation_keeps_the_histograms(void **state)
{
    (void)state;
    char run[FOLDER_PATH], events[FOLDER_PATH];
    train_settings s;
    trainer *t;
    stopper stop = {.phase = "test", .at = 1};
    train_hooks hooks = {.stop = &stop.stop, .progress = stopper_tick, .context = &stop};
    settings_make(&s, run_place(run, "histograms"), NULL);
    assert_int_equal(trainer_open(&t, &s, &hooks), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    assert_int_equal(trainer_run(t, NULL), BERLU_ERR_STOPPED);
    trainer_close(t);
    glob_t found;
    file_map map;
    assert_int_equal(glob(folder_path(events, run, "events.out.tfevents.*"), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(file_map_open(&map, found.gl_pathv[0]), BERLU_OK);
    static const char tag[] = "pre_activation/blocks.0.mlp.act";
    assert_non_null(memmem(map.data, map.size, tag, sizeof tag - 1));
    file_map_close(&map);
    globfree(&found);
    recipe_free(&s);
}

static void a_limit_of_updates_cuts_an_epoch_and_a_resume_makes_it_whole(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], cut[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(whole, "limit-whole"), NULL);
    settings_make(&s, run_place(cut, "limit-cut"), NULL);
    for (int64_t limit = 5; limit <= 25; limit += 5) {
        s.max_steps = limit;
        assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
        csv_table t = metrics_of(cut); /* the cut epoch has its row too */
        assert_int_equal(t.rows, limit >= 24 ? 3 : limit / 8 + 1);
        csv_free(&t);
        assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK); /* again: nothing changes */
        t = metrics_of(cut);
        assert_int_equal(t.rows, limit >= 24 ? 3 : limit / 8 + 1);
        csv_free(&t);
    }
    runs_equal(whole, cut);
    recipe_free(&s);
}

static void a_run_without_a_checkpoint_resumes_from_the_beginning(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], cut[FOLDER_PATH], path[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(whole, "begin-whole"), NULL);
    settings_make(&s, run_place(cut, "begin-cut"), NULL);
    run_folder folder;
    assert_int_equal(run_create(&folder, cut, &s, NULL, NULL), BERLU_OK); /* died right after run.json */
    run_close(&folder);
    assert_int_equal(file_write_atomic(folder_path(path, cut, "metrics.csv"), "half a li", 9), BERLU_OK);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    runs_equal(whole, cut);
    recipe_free(&s);
}

/* Death between a checkpoint's rename and the renewal of `last`: the resume finds a complete run and mends the link. */
static void a_link_that_lags_behind_is_mended(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH], target[64] = "";
    train_settings s;
    run_whole(run_place(run, "link"), NULL);
    folder_path(path, run, "checkpoints/last");
    assert_int_equal(link_replace("step-00000016", path), BERLU_OK);
    settings_make(&s, run, NULL);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_string_equal(target, "step-00000024");
    recipe_free(&s);
}

static void threads_and_workers_change_no_byte(void **state)
{
    (void)state;
    char one[FOLDER_PATH], two[FOLDER_PATH];
    const char *const extra[] = {"threads=2", "workers=3", "augment=crop-flip", NULL};
    const char *const plain[] = {"threads=1", "workers=1", "augment=crop-flip", NULL};
    run_whole(run_place(one, "threads-1"), plain);
    run_whole(run_place(two, "threads-2"), extra);
    runs_equal(one, two);
}

/* ---- what the options do --------------------------------------------------------------------------------------------- */

static void accumulating_equals_one_large_batch(void **state)
{
    (void)state;
    char one[FOLDER_PATH], two[FOLDER_PATH];
    const char *const large[] = {"batch=16", "epochs=2", NULL}, *const small[] = {"batch=8", "accumulate=2", "epochs=2",
                                                                                  NULL};
    run_whole(run_place(one, "large"), large);
    run_whole(run_place(two, "small"), small);
    for (size_t e = 0; e < 2; e++) {
        double a = metric(one, e, "train_loss"), b = metric(two, e, "train_loss");
        assert_true(fabs(a - b) < 1e-4 * a);
        a = metric(one, e, "grad_norm"), b = metric(two, e, "grad_norm");
        assert_true(fabs(a - b) < 1e-3 * a);
    }
}

static void learning_lowers_the_loss(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"epochs=8", NULL};
    run_whole(run_place(run, "learns"), extra);
    assert_true(metric(run, 7, "train_loss") < 0.8 * metric(run, 0, "train_loss"));
    assert_true(metric(run, 7, "train_top1") > metric(run, 0, "train_top1"));
}

static void sgd_learns_too(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"epochs=8", "optimizer=sgd", "lr=0.1", "nesterov=1", NULL};
    run_whole(run_place(run, "sgd"), extra);
    assert_true(metric(run, 7, "train_loss") < 0.95 * metric(run, 0, "train_loss"));
}

static void frozen_activation_parameters_stay_where_they_are(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"act_freeze=1", "epochs=1", NULL};
    run_whole(run_place(run, "frozen"), extra);
    assert_true(metric(run, 0, "alpha.blocks.0.mlp.act") == (double)0.01f);
    run_whole(run_place(run, "not-frozen"), (const char *const[]){"epochs=1", NULL});
    assert_true(metric(run, 0, "alpha.blocks.0.mlp.act") != (double)0.01f);
}

static void constraints_hold_and_the_lipschitz_constant_follows(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    /* a large rate drives alpha about; the interval holds it, and L = max(1, |alpha|) */
    const char *const extra[] = {"act_constraint=alpha:0.25:0.5", "act_lr=100", "epochs=2", NULL};
    run_whole(run_place(run, "bounded"), extra);
    for (size_t e = 0; e < 2; e++)
        for (int b = 0; b < 4; b++) {
            char name[64];
            snprintf(name, sizeof name, "alpha.blocks.%d.mlp.act", b);
            double alpha = metric(run, e, name);
            assert_true(alpha >= 0.25 && alpha <= 0.5);
        }
    assert_true(metric(run, 1, "lipschitz") == 1);
    const char *const wide[] = {"act=berlu:alpha=-3", "act_constraint=alpha::-2", "epochs=1", NULL};
    run_whole(run_place(run, "expansive"), wide);
    double most = 0;
    for (int b = 0; b < 4; b++) {
        char name[64];
        snprintf(name, sizeof name, "alpha.blocks.%d.mlp.act", b);
        most = fmax(most, fabs(metric(run, 0, name)));
    }
    assert_true(fabs(metric(run, 0, "lipschitz") - most) < 1e-6 && most > 2);
}

static void the_figures_of_a_site_add_up(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"act=relu", "epochs=1", NULL};
    run_whole(run_place(run, "figures"), extra);
    double left = metric(run, 0, "left.blocks.1.mlp.act"), right = metric(run, 0, "right.blocks.1.mlp.act");
    assert_true(left > 0.1 && right > 0.1);
    assert_true(fabs(left + right + metric(run, 0, "inside.blocks.1.mlp.act") - 1) < 1e-12);
    assert_true(metric(run, 0, "dead.blocks.1.mlp.act") >= 0 && metric(run, 0, "dead.blocks.1.mlp.act") < 1);
    assert_true(metric(run, 0, "grad.blocks.1.mlp.act") > 0 && metric(run, 0, "var.blocks.1.mlp.act") > 0);
    assert_true(metric(run, 0, "y_mean.blocks.1.mlp.act") > metric(run, 0, "mean.blocks.1.mlp.act"));
    assert_true(isnan(metric(run, 0, "alpha.blocks.1.mlp.act")));
}

static void one_batch_can_be_learned_by_heart(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"overfit_batch=1", "epochs=", NULL};
    train_settings s;
    settings_make(&s, run_place(run, "overfit"), extra);
    train_result r;
    assert_int_equal(run_with(&s, 0, NULL, &r), BERLU_OK);
    assert_int_equal(r.updates, 200);
    assert_true(r.last.test_loss < 0.01);
    assert_true(r.last.train_top1 == 100);
    recipe_free(&s);
}

static void a_student_learns_from_a_teachers_run(void **state)
{
    (void)state;
    char teacher[FOLDER_PATH], run[FOLDER_PATH], line[FOLDER_PATH + 16];
    run_whole(run_place(teacher, "teacher"), NULL);
    snprintf(line, sizeof line, "teacher=%s", teacher);
    const char *const kinds[] = {"distill=hard", "distill=soft"};
    for (size_t k = 0; k < 2; k++) {
        const char *const extra[] = {"model=deit_micro", line, kinds[k], "epochs=2", NULL};
        run_whole(run_place(run, kinds[k]), extra);
        assert_true(metric(run, 1, "train_loss") < metric(run, 0, "train_loss"));
    }
    train_settings s; /* a model with one head cannot be distilled */
    const char *const wrong[] = {line, "distill=hard", NULL};
    settings_make(&s, run_place(run, "one-head"), wrong);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_false(run_exists(run));
    recipe_free(&s);
}

static void eval_gives_the_figures_of_the_last_row(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    run_whole(run_place(run, "eval"), NULL);
    score s;
    eval_request request = {.run = run, .which = "last", .batch = 5};
    assert_int_equal(eval_run(&request, &s), BERLU_OK);
    assert_true(score_top1(&s) == metric(run, 2, "test_top1"));
    assert_true(fabs(score_loss(&s) - metric(run, 2, "test_loss")) < 1e-6);
    request.which = "best";
    assert_int_equal(eval_run(&request, &s), BERLU_OK);
    request.which = "17";
    assert_int_equal(eval_run(&request, &s), BERLU_ERR_INPUT);
    request.which = "24abc";
    assert_int_equal(eval_run(&request, &s), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "24abc"));
}

/* ---- what goes wrong ------------------------------------------------------------------------------------------------- */

static void a_loss_that_is_not_finite_names_the_first_bad_tensor(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    const char *const extra[] = {"lr=1e30", "clip=0", "warmup=0", "checkpoint_every=1", NULL};
    train_settings s;
    settings_make(&s, run_place(run, "infinite"), extra);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_NUMERIC);
    assert_non_null(strstr(berlu_last_error(), "is not finite; first bad: "));
    assert_non_null(strstr(berlu_last_error(), "the checkpoint of step 1 is kept"));
    assert_true(folder_exists(folder_path(path, run, "checkpoints/step-00000001")));
    recipe_free(&s);
}

static void a_folder_that_vanishes_stops_the_run(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    trainer *t;
    settings_make(&s, run_place(run, "vanished"), NULL);
    assert_int_equal(trainer_open(&t, &s, NULL), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    assert_int_equal(folder_remove(run), BERLU_OK);
    assert_int_equal(trainer_run(t, NULL), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), run));
    trainer_close(t);
    recipe_free(&s);
}

/* The disk is full from the n-th write on: the run stops with an error, and once there is room it ends as it should. */
static void a_full_disk_stops_the_run_and_nothing_is_lost(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], run[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(whole, "roomy"), NULL);
    settings_make(&s, run_place(run, "full"), NULL);
    int failures = 0;
    for (int n = 1;; n += 7) {
        fail_from(FAIL_WRITE | FAIL_MKDIR, n);
        berlu_status status = run_with(&s, 1, NULL, NULL);
        int hit = fail_hit();
        if (status == BERLU_OK)
            break;
        assert_true(hit);
        assert_int_equal(status, BERLU_ERR_IO);
        failures++;
    }
    assert_true(failures >= 3);
    runs_equal(whole, run);
    recipe_free(&s);
}

static void bad_input_is_refused_before_anything_is_written(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"batch=65", "larger than the 64 training images"},
                                         {"holdout=64", "leaves nothing of 64"},
                                         {"model=vit_nano", "vit_nano"},
                                         {"act=rellu", "rellu"},
                                         {"classes=7", "7 classes"},
                                         {"data=/no/such/place", "/no/such/place"},
                                         {"device=cuda", "device"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char run[FOLDER_PATH];
        train_settings s;
        const char *const extra[] = {bad[i][0], strncmp(bad[i][0], "data", 4) ? NULL : "synthetic_images=", NULL};
        settings_make(&s, run_place(run, "bad"), extra);
        berlu_status status = run_with(&s, 0, NULL, NULL);
        assert_true(status == BERLU_ERR_ARG || status == BERLU_ERR_INPUT || status == BERLU_ERR_UNSUPPORTED);
        if (!strstr(berlu_last_error(), bad[i][1]))
            fail_msg("'%s' does not say '%s'", berlu_last_error(), bad[i][1]);
        assert_false(folder_exists(run));
        recipe_free(&s);
    }
}

static void an_existing_run_or_a_full_folder_is_not_touched(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(run, "existing"), (const char *const[]){"epochs=1", NULL});
    settings_make(&s, run, (const char *const[]){"epochs=1", NULL});
    struct stat before, after;
    assert_int_equal(stat(folder_path(path, run, "metrics.csv"), &before), 0);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "--resume"));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    recipe_free(&s);
    char other[FOLDER_PATH];
    folder_fresh(other, "not-a-run");
    assert_int_equal(file_write_atomic(folder_path(path, other, "thesis.txt"), "x", 1), BERLU_OK);
    settings_make(&s, other, NULL);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "not empty"));
    recipe_free(&s);
}

static void a_resume_with_other_settings_names_them(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings asked, merged;
    run_whole(run_place(run, "settings"), (const char *const[]){"epochs=1", NULL});
    recipe_init(&asked);
    recipe_set(&asked, "run", run);
    recipe_set(&asked, "lr", "0.5");
    recipe_set(&asked, "threads", "1");
    assert_int_equal(trainer_resume_settings(&merged, &asked), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "lr (0.003, not 0.5)"));
    recipe_free(&asked);
    recipe_init(&asked);
    recipe_set(&asked, "run", run);
    recipe_set(&asked, "threads", "1");
    assert_int_equal(trainer_resume_settings(&merged, &asked), BERLU_OK);
    assert_true(merged.threads == 1 && merged.lr == 0.003 && merged.image_size == 16);
    recipe_free(&asked);
    recipe_free(&merged);
}

static void two_processes_cannot_train_in_one_run(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    trainer *one, *two;
    settings_make(&s, run_place(run, "locked"), NULL);
    assert_int_equal(trainer_open(&one, &s, NULL), BERLU_OK);
    assert_int_equal(trainer_open(&two, &s, NULL), BERLU_OK);
    assert_int_equal(trainer_start(one, 0), BERLU_OK);
    assert_int_equal(trainer_start(two, 0), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "another process"));
    assert_int_equal(trainer_start(two, 1), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "another process"));
    trainer_close(two);
    trainer_close(one);
    recipe_free(&s);
}

/* The lock comes before run.json: who comes second into an empty folder writes nothing. */
static void of_two_that_start_at_once_one_is_refused(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    run_folder folder;
    folder_fresh(run, "at-once");
    int first = open(run, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(first, LOCK_EX), 0);
    settings_make(&s, run, NULL);
    assert_int_equal(run_create(&folder, run, &s, NULL, NULL), BERLU_ERR_ARG);
    assert_false(run_exists(run));
    close(first);
    assert_int_equal(run_create(&folder, run, &s, NULL, NULL), BERLU_OK);
    run_close(&folder);
    recipe_free(&s);
}

static void a_run_that_is_complete_tells_what_it_came_to(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    train_result first = run_whole(run_place(run, "complete"), NULL), again;
    settings_make(&s, run, NULL);
    assert_int_equal(run_with(&s, 1, NULL, &again), BERLU_OK);
    assert_true(again.last.epoch == 3 && again.last.step == 24);
    assert_true(again.last.test_top1 == first.last.test_top1 && again.last.test_loss == first.last.test_loss);
    assert_true(again.last.lr == first.last.lr && again.last.train_loss == first.last.train_loss);
    assert_true(isnan(again.last.ema_top1));
    recipe_free(&s);
}

int main(void)
{
    omp_set_num_threads(1); /* products of this size do not gain, and tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_stopped_between_updates_gives_the_same_bytes),
        cmocka_unit_test(a_run_with_everything_switched_on_resumes_to_the_same_bytes),
        cmocka_unit_test(a_run_stopped_during_an_evaluation_gives_the_same_bytes),
        cmocka_unit_test(a_stop_during_an_evaluation_keeps_the_histograms),
        cmocka_unit_test(a_limit_of_updates_cuts_an_epoch_and_a_resume_makes_it_whole),
        cmocka_unit_test(a_run_without_a_checkpoint_resumes_from_the_beginning),
        cmocka_unit_test(a_link_that_lags_behind_is_mended),
        cmocka_unit_test(threads_and_workers_change_no_byte),
        cmocka_unit_test(accumulating_equals_one_large_batch),
        cmocka_unit_test(learning_lowers_the_loss),
        cmocka_unit_test(sgd_learns_too),
        cmocka_unit_test(frozen_activation_parameters_stay_where_they_are),
        cmocka_unit_test(constraints_hold_and_the_lipschitz_constant_follows),
        cmocka_unit_test(of_two_that_start_at_once_one_is_refused),
        cmocka_unit_test(a_run_that_is_complete_tells_what_it_came_to),
        cmocka_unit_test(the_figures_of_a_site_add_up),
        cmocka_unit_test(one_batch_can_be_learned_by_heart),
        cmocka_unit_test(a_student_learns_from_a_teachers_run),
        cmocka_unit_test(eval_gives_the_figures_of_the_last_row),
        cmocka_unit_test(a_loss_that_is_not_finite_names_the_first_bad_tensor),
        cmocka_unit_test(a_folder_that_vanishes_stops_the_run),
        cmocka_unit_test(a_full_disk_stops_the_run_and_nothing_is_lost),
        cmocka_unit_test(bad_input_is_refused_before_anything_is_written),
        cmocka_unit_test(an_existing_run_or_a_full_folder_is_not_touched),
        cmocka_unit_test(a_resume_with_other_settings_names_them),
        cmocka_unit_test(two_processes_cannot_train_in_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
