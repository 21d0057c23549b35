/* cmd_study_status.c - `berlu study status|list`: the state of a study's runs.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "output.h"
#include "study/scheduler.h"
#include "study_open.h"
#include "study_screen.h"

static const option_row status_rows[] = {
    STUDY_ROWS,
    KNOWN_ROW,
    {"watch", OPTION_FLAG, .help = "go on showing until nothing runs and nothing waits"},
    NO_COMPUTE_ROWS,
    {0}};

/* Rereads the folders; finished runs do not change. */
static berlu_status runs_look(study_opened *x, study_view *v)
{
    *v = (study_view){.study = &x->s, .runs = &x->runs, .left = NAN};
    for (size_t i = 0; i < x->runs.count; i++) {
        study_entry *r = &x->runs.items[i];
        if (r->state != STUDY_DONE)
            TRY(study_entry_look(r));
        v->counts[r->state]++;
    }
    return BERLU_OK;
}

/* The time left, at the speed since the watch began. */
static double time_left(const study_view *v, size_t done_before, double began)
{
    size_t done = v->counts[STUDY_DONE] - done_before;
    size_t left = v->counts[STUDY_WAITING] + v->counts[STUDY_RUNNING] + v->counts[STUDY_CUT];
    return done ? (clock_seconds() - began) / (double)done * (double)left : NAN;
}

static berlu_status study_watch(study_opened *x)
{
    study_screen shown = {.terminal = isatty(STDERR_FILENO)};
    study_view v;
    double began = clock_seconds();
    TRY(runs_look(x, &v));
    size_t before = v.counts[STUDY_DONE];
    for (;;) {
        v.left = time_left(&v, before, began);
        study_show(&shown, &v);
        if (!v.counts[STUDY_WAITING] && !v.counts[STUDY_RUNNING] && !v.counts[STUDY_CUT])
            return BERLU_OK;
        sleep(2);
        TRY(runs_look(x, &v));
    }
}

static berlu_status status_study(options *o)
{
    study_opened x;
    berlu_status status = study_open(&x, o);
    if (status != BERLU_OK)
        return status;
    if (x.s.kind == STUDY_COST) {
        status = study_cost_answer(o, &x, 0);
        study_opened_free(&x);
        return status;
    }
    TRY_DONE(study_runs_find(&x, o));
    if (options_flag(o, "watch"))
        TRY_DONE(study_watch(&x));
    status = study_answer(o, &x, 0, 0);
done:
    for (size_t i = 0; !options_json(o) && i < x.runs.count; i++) {
        const study_entry *r = &x.runs.items[i];
        if (r->state == STUDY_RUNNING || r->state == STUDY_CUT || r->state == STUDY_FAILED)
            printf("  %-8s %-28s seed %-3lld step %llu  %s\n", study_state_names[r->state], x.s.cells[r->cell].label,
                   (long long)r->seed, (unsigned long long)r->record.step, r->known ? "(no folder here)" : r->path);
    }
    study_opened_free(&x);
    return status;
}

const command cmd_study_status = {
    "study status", "how far a study is",
    "Reads the run folders; works while the study runs, from anywhere. --watch redraws what runs, how "
    "much is done and the means so far.\n\n"
    "    berlu study status studies/quick.yaml",
    status_rows, status_study};

static const option_row list_rows[] = {
    STUDY_ROWS,
    KNOWN_ROW,
    {"commands", OPTION_FLAG, .help = "a command per run that is not done, for xargs or GNU parallel"},
    {"part", OPTION_STRING, "I/K", .help = "runs I, I + K, I + 2K, ... of the list alone, I from 0"},
    {0}};

static void word_print(const char *word)
{
    int plain = *word != 0;
    for (const char *c = word; *c; c++)
        plain = plain && (strchr("-_./:=,+@%", *c) || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                          (*c >= 'A' && *c <= 'Z'));
    if (plain) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (const char *c = word; *c; c++)
        fputs(*c == '\'' ? "'\\''" : (char[]){*c, 0}, stdout);
    putchar('\'');
}

/* "I/K"; without it all runs, which is 0/1. */
static berlu_status part_parse(size_t *first, size_t *step, const char *word)
{
    char *end = NULL;
    *first = 0, *step = 1;
    if (!word)
        return BERLU_OK;
    long long i = strtoll(word, &end, 10), k = end != word && *end == '/' ? strtoll(end + 1, &end, 10) : 0;
    if (*end || k < 1 || i < 0 || i >= k)
        return berlu_fail(BERLU_ERR_ARG, "--part %s: I/K is expected, I from 0 to K - 1", word);
    *first = (size_t)i, *step = (size_t)k;
    return BERLU_OK;
}

typedef struct listing {
    const options *o;
    const study_opened *x;
    const char *program;
    output *out;  /* of --json; NULL: lines */
    size_t later; /* runs whose command has to wait for that of their teacher */
} listing;

static void run_list(const listing *l, const study_entry *r)
{
    const char *state = study_state_names[r->state], *label = l->x->s.cells[r->cell].label;
    if (!l->out) {
        printf("%s %-8s seed %-3lld %s\n", r->key, state, (long long)r->seed, label);
        return;
    }
    output_object(l->out, NULL);
    output_string(l->out, "key", r->key);
    output_string(l->out, "state", state);
    output_int(l->out, "seed", r->seed);
    output_string(l->out, "cell", label);
    output_end(l->out);
}

static berlu_status command_list(const listing *l, const study_entry *r)
{
    arena memory = {0};
    const study_schedule how = {.program = l->program, .threads = options_threads(l->o)};
    char **words = study_command(&memory, &l->x->s, r, &how);
    if (words && l->out)
        output_array(l->out, NULL);
    for (size_t k = 0; words && words[k]; k++) {
        if (l->out) {
            output_string(l->out, NULL, words[k]);
        } else {
            word_print(words[k]);
            putchar(words[k + 1] ? ' ' : '\n');
        }
    }
    if (words && l->out)
        output_end(l->out);
    arena_free(&memory);
    return words ? BERLU_OK : BERLU_ERR_MEMORY;
}

static berlu_status entry_list(listing *l, size_t i)
{
    const study_entry *r = &l->x->runs.items[i];
    if (!options_flag(l->o, "commands")) {
        run_list(l, r);
        return BERLU_OK;
    }
    if (r->same_as != i || r->state == STUDY_DONE || r->state == STUDY_FAILED)
        return BERLU_OK;
    if (study_entry_ready(&l->x->runs, r))
        return command_list(l, r);
    l->later++;
    return BERLU_OK;
}

static berlu_status list_study(options *o)
{
    study_opened x;
    output out = {0};
    char program[STUDY_PATH];
    size_t first, step;
    TRY(part_parse(&first, &step, options_string(o, "part")));
    TRY(study_open_runs(&x, o));
    listing l = {.o = o, .x = &x, .program = program, .out = options_json(o) ? &out : NULL};
    if (l.out) {
        output_start(&out);
        output_string(&out, "study", x.s.name);
        output_array(&out, options_flag(o, "commands") ? "commands" : "runs");
    }
    berlu_status status = program_path(program);
    for (size_t i = first; i < x.runs.count && status == BERLU_OK; i += step)
        status = entry_list(&l, i);
    if (status == BERLU_OK && l.out) {
        output_end(&out);
        output_int(&out, "later", (int64_t)l.later);
        status = output_print(&out);
    } else {
        text_free(&out.json);
    }
    if (l.later && !l.out)
        fprintf(stderr, "note: %zu runs wait for their teacher; list them again when it is done\n", l.later);
    study_opened_free(&x);
    return status;
}

const command cmd_study_list = {"study list", "the runs of a study, or their commands",
                                "    berlu study list studies/quick.yaml --commands | xargs -P 2 -I{} sh -c '{}'",
                                list_rows, list_study};
