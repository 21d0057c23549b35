/* test_golden_runs.c - run folders that earlier versions left are read, resumed and evaluated by
 * this one. SPDX-License-Identifier: MIT
 *
 * tests/golden/runs holds one folder per format, made by tools/golden_runs.sh and never made
 * again. Bits of a resume are promised on one machine only, so what is compared are the rows
 * that were there and what the folder says of itself. */
#include <math.h>
#include <omp.h>
#include <unistd.h>

#include "runs.h"
#include "train/checkpoint.h"
#include "train/eval_run.h"

typedef struct golden {
    const char *name;
    int format;
    uint64_t step, updates; /* of its newest checkpoint; of the whole run */
    size_t rows;            /* whole epochs in its metrics.csv that the checkpoint counts */
} golden;
static const golden all[] = {{"0.1.0/linear", 0, 8, 15, 1}, {"0.1.0/tnt", 0, 2, 15, 0}, {"1/linear", 1, 8, 15, 1}};

static const char *golden_copy(char run[FOLDER_PATH], const golden *g)
{
    char from[FOLDER_PATH], name[64];
    const char *source = getenv("BERLU_SOURCE_DIR");
    snprintf(from, sizeof from, "%s/tests/golden/runs/%s", source ? source : ".", g->name);
    snprintf(name, sizeof name, "golden-%d-%s", g->format, strrchr(g->name, '/') + 1);
    run_place(run, name);
    tree_copy(from, run);
    return run;
}

typedef struct heard {
    int of_format, of_machine, other;
} heard;

static void hear(void *context, berlu_log_level level, const char *line)
{
    heard *h = context;
    if (level != BERLU_LOG_WARNING)
        return;
    if (strstr(line, "is of berlu 0.1.0, which kept no record"))
        h->of_format++;
    else if (strstr(line, "was begun with something else")) /* this machine is not the one that made it */
        h->of_machine++;
    else
        h->other++;
}

static void resume(const char *run, heard *h, train_result *result)
{
    train_settings asked, s;
    trainer *t;
    berlu_log log = {.write = hear, .context = h};
    train_hooks hooks = {.log = &log};
    recipe_init(&asked);
    assert_int_equal(recipe_set(&asked, "run", run), BERLU_OK);
    assert_int_equal(recipe_set(&asked, "max_steps", "0"), BERLU_OK);
    assert_int_equal(trainer_resume_settings(&s, &asked), BERLU_OK);
    assert_int_equal(trainer_open(&t, &s, &hooks), BERLU_OK);
    if (trainer_start(t, 1) != BERLU_OK || trainer_run(t, result) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    trainer_close(t);
    recipe_free(&asked);
    recipe_free(&s);
}

/* The first `lines` lines of a file. */
static char *head_of(const char *run, const char *name, size_t lines)
{
    char path[FOLDER_PATH], *bytes, *at;
    assert_int_equal(file_read_all(&bytes, NULL, folder_path(path, run, name), 1 << 20), BERLU_OK);
    for (at = bytes; lines > 0; lines--)
        at = strchr(at, '\n') + 1;
    *at = 0;
    return bytes;
}

static void runs_of_earlier_formats_resume_and_keep_their_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        char run[FOLDER_PATH], newest[CHECKPOINT_PATH];
        heard h = {0}, again = {0};
        train_result r;
        checkpoint_facts facts;
        char *before = head_of(golden_copy(run, &all[i]), "metrics.csv", 1 + all[i].rows);
        resume(run, &h, &r);
        assert_true(h.of_format == (all[i].format == 0) && h.of_machine <= 1 && h.other == 0);
        assert_int_equal(r.updates, all[i].updates);
        char *after = head_of(run, "metrics.csv", 1 + all[i].rows);
        assert_string_equal(before, after);
        csv_table table = metrics_of(run);
        assert_int_equal(table.rows, 3);
        csv_free(&table);
        assert_int_equal(checkpoint_newest(run, 0, newest, NULL), BERLU_OK); /* from here on the present format */
        assert_int_equal(checkpoint_facts_read(&facts, newest), BERLU_OK);
        assert_int_equal(facts.format, CHECKPOINT_FORMAT);
        text_free(&facts.settings);
        resume(run, &again, &r);
        assert_int_equal(again.of_format, 0);
        free(before);
        free(after);
    }
}

/* Another matrix library rounds differently: in a sum of some thousand products of f32 not
 * beyond 1e-4 of the loss. */
static void checkpoints_of_earlier_formats_evaluate_to_what_they_recorded(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        char run[FOLDER_PATH];
        score s;
        eval_request request = {.run = golden_copy(run, &all[i]), .which = "last", .batch = 8};
        assert_int_equal(eval_run(&request, &s), BERLU_OK);
        csv_table t = metrics_of(run);
        double loss = csv_number(&t, t.rows - 1, csv_column(&t, "test_loss"));
        assert_true(fabs(score_loss(&s) - loss) < 1e-4 * loss);
        csv_free(&t);
    }
}

static void the_settings_of_format_0_are_read_as_they_were_meant(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    run_facts facts;
    assert_int_equal(run_settings(&s, &facts, golden_copy(run, &all[1])), BERLU_OK);
    assert_int_equal(facts.format, 0);
    assert_true(s.optimizer == RECIPE_SGD && s.lr == 0.1 && s.momentum == 0 && s.image_size == 16 && s.eval_every == 1);
    assert_string_equal(s.act[0], "berlu");
    recipe_free(&s);
}

int main(void)
{
    omp_set_num_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_earlier_formats_resume_and_keep_their_rows),
        cmocka_unit_test(checkpoints_of_earlier_formats_evaluate_to_what_they_recorded),
        cmocka_unit_test(the_settings_of_format_0_are_read_as_they_were_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
