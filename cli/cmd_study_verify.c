/* cmd_study_verify.c - `berlu study verify`: repeats finished runs and compares the results.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/threads.h"
#include "commit.h"
#include "output.h"
#include "signals.h"
#include "study/known.h"
#include "study/scheduler.h"
#include "study/verify.h"
#include "study_open.h"
#include "study_screen.h"

enum { SAMPLE = 1000 };

static const option_row verify_rows[] = {
    STUDY_ROWS,
    KNOWN_ROW,
    {"sample", OPTION_INT, "N", .standard = "3", .least = 1, .most = SAMPLE,
     .help = "how many finished runs, by chance"},
    {"sample-seed", OPTION_INT, "N", .least = 0, .help = "of that chance (default: the clock)"},
    {"comparable", OPTION_FLAG,
     .help = "only runs that this version and commit made, on a GPU with recorded algorithms"},
    {"jobs", OPTION_INT, "N", .standard = "1", .least = 1, .most = STUDY_JOBS, .help = "runs at a time"},
    {"quiet", OPTION_FLAG, .help = "no progress"},
    {0}};

static berlu_status runs_repeat(const study_opened *x, const options *o, study_entries *again)
{
    char program[STUDY_PATH], place[STUDY_PATH];
    text notes = {0};
    store *index = NULL;
    study_screen shown = {.terminal = isatty(STDERR_FILENO), .quiet = options_flag(o, "quiet")};
    snprintf(place, sizeof place, "%.4000s/verify", x->folder);
    study_schedule how = {.program = program,
                          .folder = place,
                          .yaml = x->yaml,
                          .jobs = (int)options_int(o, "jobs"),
                          .threads = options_threads(o),
                          .retries = 2,
                          .stop = signals_stop(),
                          .tick = study_show,
                          .context = &shown};
    if (!how.threads && how.jobs > 1)
        how.threads = threads_default() / how.jobs > 0 ? threads_default() / how.jobs : 1;
    berlu_status status = program_path(program);
    if (status == BERLU_OK)
        status = store_open(&index, place, &notes);
    if (status == BERLU_OK)
        status = study_schedule_run(&how, &x->s, again, index);
    berlu_status closed = store_close(index);
    text_free(&notes);
    return status == BERLU_OK ? closed : status;
}

static const char *same_word(const char *then, const char *now)
{
    return !*then || !*now ? "unknown" : strcmp(then, now) == 0 ? "equal" : "different";
}

static void row_json(output *out, const study_opened *x, const verify_row *r)
{
    const study_entry *e = &x->runs.items[r->run];
    output_object(out, NULL);
    output_string(out, "run", e->key);
    output_string(out, "cell", x->s.cells[e->cell].label);
    output_int(out, "seed", e->seed);
    output_string(out, "verdict", verify_verdict_names[r->verdict]);
    output_string(out, "weights", same_word(r->then.weights, r->now.weights));
    output_string(out, "metrics", same_word(r->then.metrics, r->now.metrics));
    output_string(out, "correct", same_word(r->then.correct, r->now.correct));
    output_string(out, "not_comparable", r->why.data ? r->why.data : "");
    output_real(out, "then", r->metric_then);
    output_real(out, "now", r->metric_now);
    output_real(out, "low", r->range.low);
    output_real(out, "high", r->range.high);
    output_end(out);
}

static void row_print(const study_opened *x, const verify_row *r)
{
    const study_entry *e = &x->runs.items[r->run];
    printf("%s %-28s seed %-3lld %-10s weights %s, metrics.csv %s, correct.bin %s; %s %.4f then, %.4f now\n", e->key,
           x->s.cells[e->cell].label, (long long)e->seed, verify_verdict_names[r->verdict],
           same_word(r->then.weights, r->now.weights), same_word(r->then.metrics, r->now.metrics),
           same_word(r->then.correct, r->now.correct), x->s.metric, r->metric_then, r->metric_now);
    if (r->why.length && r->verdict != VERIFY_EQUAL)
        printf("  not comparable bit for bit: %s; prediction interval of the cell %.4f to %.4f\n", r->why.data,
               r->range.low, r->range.high);
}

/* The runs that could be drawn, and the part of them whose bits can be held to this program. */
typedef struct candidates {
    unsigned char *marked; /* one byte per entry */
    size_t finished, comparable;
} candidates;

static void summary_print(const candidates *of, const verify_row *rows, size_t count)
{
    size_t comparable = 0, equal = 0;
    for (size_t i = 0; i < count; i++) {
        comparable += rows[i].verdict == VERIFY_EQUAL || rows[i].verdict == VERIFY_DIFFERENT;
        equal += rows[i].verdict == VERIFY_EQUAL;
    }
    printf("%zu of %zu runs comparable bit for bit, %zu equal; candidates for that: %zu of %zu finished runs (made by "
           "%s%s%s)\n",
           comparable, count, equal, of->comparable, of->finished, berlu_version(), *BERLU_COMMIT ? ", " : "",
           BERLU_COMMIT);
}

static berlu_status rows_answer(const options *o, const study_opened *x, const candidates *of, const verify_row *rows,
                                size_t count)
{
    if (options_json(o)) {
        output out;
        output_start(&out);
        output_string(&out, "study", x->s.name);
        output_array(&out, "rows");
        for (size_t i = 0; i < count; i++)
            row_json(&out, x, &rows[i]);
        output_end(&out);
        output_int(&out, "finished", (int64_t)of->finished);
        output_int(&out, "comparable", (int64_t)of->comparable);
        return output_print(&out);
    }
    for (size_t i = 0; i < count; i++)
        row_print(x, &rows[i]);
    summary_print(of, rows, count);
    return BERLU_OK;
}

/* The study's index and those of --known, ended by NULL. */
static berlu_status stores_open(store ***out, const study_opened *x, const options *o)
{
    char path[STUDY_PATH + 16];
    size_t known = options_count(o, "known"), count = 0;
    *out = calloc(known + 2, sizeof **out);
    if (!*out)
        return berlu_fail_memory(known * sizeof **out, "stores");
    snprintf(path, sizeof path, "%s/study.db", x->folder);
    if (file_exists(path))
        TRY(store_open_read(&(*out)[count++], path));
    for (size_t i = 0; i < known; i++)
        TRY(study_known_open(&(*out)[count++], options_strings(o, "known")[i]));
    return BERLU_OK;
}

static void stores_close(store **stores)
{
    for (size_t i = 0; stores && stores[i]; i++)
        store_close(stores[i]);
    free(stores);
}

static berlu_status rows_make(verify_row *rows, const study_opened *x, const options *o, const study_entries *again,
                              const size_t *picked)
{
    store **stores;
    berlu_status status = stores_open(&stores, x, o);
    for (size_t i = 0; i < again->count && status == BERLU_OK; i++)
        status = verify_compare(&rows[i], &x->s, &x->runs, picked[i], &again->items[i], stores);
    stores_close(stores);
    return status;
}

/* Marks the runs to draw from; refuses, before anything is trained, where there are none. Free
 * marked, also after an error. */
static berlu_status candidates_find(candidates *out, const study_opened *x, const options *o)
{
    store **stores;
    int only_comparable = options_flag(o, "comparable");
    *out = (candidates){.marked = malloc(x->runs.count + 1)};
    if (!out->marked)
        return berlu_fail_memory(x->runs.count, "runs");
    out->finished = verify_finished(out->marked, &x->runs);
    if (!out->finished)
        return berlu_fail(BERLU_ERR_INPUT, "%s: no run is finished yet", x->folder);
    berlu_status status = stores_open(&stores, x, o);
    if (status == BERLU_OK)
        status = verify_comparable(out->marked, &out->comparable, &x->s, &x->runs, stores, BERLU_COMMIT);
    stores_close(stores);
    if (status == BERLU_OK && only_comparable && !out->comparable)
        status = berlu_fail(BERLU_ERR_INPUT,
                            "%s: of %zu finished runs none was made by this program (%s, commit %s) with its "
                            "algorithms recorded; without --comparable metrics are tested where bits cannot be",
                            x->folder, out->finished, berlu_version(), *BERLU_COMMIT ? BERLU_COMMIT : "unknown");
    if (!only_comparable)
        verify_finished(out->marked, &x->runs);
    return status;
}

/* An error where a run came out otherwise, or could not be trained again, which says nothing of
 * it. */
static berlu_status rows_judge(const verify_row *rows, const study_entries *again)
{
    size_t bad = 0, cut = 0;
    const study_entry *first = NULL;
    for (size_t i = 0; i < again->count; i++) {
        const study_entry *e = &again->items[i];
        int is_cut = e->state != STUDY_DONE && e->state != STUDY_FAILED;
        first = is_cut && !first ? e : first;
        cut += (size_t)is_cut;
        bad += !is_cut && !verify_passes(rows[i].verdict);
    }
    if (cut)
        return berlu_fail(BERLU_ERR_IO,
                          "%zu of %zu runs could not be trained again (%s/message.txt says why), %zu did not come out "
                          "as before",
                          cut, again->count, first->path, bad);
    return bad ? berlu_fail(BERLU_ERR_NUMERIC, "%zu of %zu runs did not come out as before", bad, again->count)
               : BERLU_OK;
}

static berlu_status picked_verify(const options *o, const study_opened *x, const candidates *of, const size_t *picked,
                                  size_t count)
{
    study_entries again = {0};
    verify_row *rows = calloc(count, sizeof *rows);
    berlu_status status = rows ? verify_prepare(&again, &x->runs, picked, count, x->folder)
                               : berlu_fail_memory(count * sizeof *rows, "rows");
    if (status == BERLU_OK)
        status = runs_repeat(x, o, &again);
    if (status == BERLU_OK)
        status = rows_make(rows, x, o, &again, picked);
    if (status == BERLU_OK)
        status = rows_answer(o, x, of, rows, count);
    if (status == BERLU_OK)
        status = rows_judge(rows, &again);
    for (size_t i = 0; rows && i < count; i++)
        text_free(&rows[i].why);
    free(rows);
    study_entries_free(&again);
    return status;
}

static berlu_status sample_verify(const options *o, const study_opened *x)
{
    size_t picked[SAMPLE];
    candidates of;
    uint64_t seed = options_given(o, "sample-seed") ? (uint64_t)options_int(o, "sample-seed")
                                                    : (uint64_t)(clock_wall_seconds() * 1e6);
    berlu_status status = candidates_find(&of, x, o);
    if (status == BERLU_OK) {
        size_t count = verify_pick(picked, (size_t)options_int(o, "sample"), &x->runs, of.marked, seed);
        status = picked_verify(o, x, &of, picked, count);
    }
    free(of.marked);
    return status;
}

static berlu_status verify_study(options *o)
{
    study_opened x;
    char path[STUDY_PATH + 16];
    berlu_status status = study_open_runs(&x, o);
    if (status != BERLU_OK)
        return status;
    snprintf(path, sizeof path, "%s/study.db", x.folder);
    if (file_exists(path)) /* results whose folders are elsewhere */
        status = study_known_take(&x.runs, path);
    if (status == BERLU_OK)
        status = sample_verify(o, &x);
    study_opened_free(&x);
    return status;
}

const command cmd_study_verify = {
    "study verify", "train finished runs again and compare",
    "Repeats some finished runs in DIR/verify, with their recorded product algorithms, and compares the SHA-256 of "
    "weights, metrics.csv and correct.bin. On another GPU, library or program bits may differ: that is said, and the "
    "metric must lie inside the cell's 95 % prediction interval. --comparable draws only from runs that this program "
    "made. Exit 1 when a run came out otherwise.\n\n"
    "    berlu study verify studies/quick.yaml --sample 3",
    verify_rows, verify_study};
