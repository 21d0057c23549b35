/* study_plan.c - see study_plan.h. SPDX-License-Identifier: MIT */
#include "study_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "output.h"
#include "study/algorithms.h"
#include "study/estimate.h"
#include "study/lacks.h"
#include "study/scheduler.h"

int study_jobs_default(const study_opened *x)
{
    enum { SMALL = 2000000 };
    study_estimate e;
    for (size_t c = 0; c < x->s.cell_count; c++)
        if (study_algorithms_wanted(&x->s.cells[c]))
            return 1;
    if (study_estimate_make(&e, &x->s) != BERLU_OK || e.parameters >= SMALL)
        return 1;
    int cores = threads_default();
    return cores < 1 ? 1 : cores < STUDY_JOBS ? cores : STUDY_JOBS;
}

int study_threads(const options *o, int jobs)
{
    int own = options_threads(o), cores = threads_default();
    if (own || jobs <= 1 || options_count(o, "devices"))
        return own;
    return cores > jobs ? cores / jobs : 1;
}

static void pair_print(const study *s, const study_pair *p)
{
    static const char *const bounds[] = {"", "within +-", "below ", "above "};
    const stats_expected *x = &s->contrasts[p->contrast].expected;
    printf("contrast %-22s %s - %s", p->name, s->cells[p->a].label, s->cells[p->b].label);
    if (p->minus_a != STUDY_NO_CELL)
        printf(" - (%s - %s)", s->cells[p->minus_a].label, s->cells[p->minus_b].label);
    if (x->what)
        printf(": %s%g", bounds[x->what], x->limit);
    printf("\n");
}

void study_plan_print(const study_opened *x)
{
    for (size_t c = 0; c < x->s.cell_count; c++) {
        printf("%-32s", x->s.cells[c].label);
        for (size_t i = 0; i < x->runs.count; i++)
            if (x->runs.items[i].cell == c)
                printf(" %lld:%s", (long long)x->runs.items[i].seed, study_state_names[x->runs.items[i].state]);
        for (size_t i = 0; !x->runs.count && i < x->s.run_count; i++) /* no keys: the data is not here */
            if (x->s.runs[i].cell == c)
                printf(" %lld", (long long)x->s.runs[i].seed);
        printf("\n");
    }
    for (size_t i = 0; i < x->s.pair_count; i++)
        pair_print(&x->s, &x->s.pairs[i]);
    if (*x->s.hypothesis)
        printf("hypothesis: %s (holds only if all %zu do)\n", x->s.hypothesis, x->s.pair_count);
}

static void needs_print(const study_estimate *e, const study_time *t, int jobs)
{
    printf("needs: up to %.2f million parameters", (double)e->parameters / 1e6);
    if (e->bytes)
        printf(", %.0f MiB a run", (double)e->bytes / (1024.0 * 1024.0));
    if (t->seconds > 0)
        printf(", %s %.0f s a run, %.1f min in all at %d jobs (%s)", t->measured ? "about" : "up to", t->seconds_run,
               t->seconds / jobs / 60, jobs, t->measured ? "from two seconds of training" : "from finished runs");
    if (t->unknown)
        printf(", the time of %zu runs is not known", t->unknown);
    printf("\n");
}

static berlu_status plan_json(const study_opened *x, const study_estimate *e, const study_time *t, int jobs)
{
    size_t counts[STUDY_STATES] = {0};
    output out;
    study_counts(&x->runs, counts);
    output_start(&out);
    output_string(&out, "study", x->s.name);
    output_int(&out, "runs", (int64_t)(x->runs.count ? x->runs.count : x->s.run_count));
    for (int i = 0; i < STUDY_STATES; i++)
        output_int(&out, study_state_names[i], (int64_t)counts[i]);
    output_real(&out, "seconds", 0);
    output_int(&out, "slots", jobs);
    output_int(&out, "parameters", e->parameters);
    output_int(&out, "bytes_per_run", (int64_t)e->bytes);
    output_real(&out, "expected_seconds", t->seconds / jobs);
    output_int(&out, "runs_without_estimate", (int64_t)t->unknown);
    return output_print(&out);
}

/* Prints what this machine lacks, a line each. */
static berlu_status notes_print(const options *o, study_opened *x)
{
    text problems = {0};
    char message[1024] = "";
    berlu_status found = study_runs_find(x, o);
    if (found != BERLU_OK)
        snprintf(message, sizeof message, "%s\n", berlu_last_error());
    berlu_status status = study_lacks(&x->s, options_string(o, "file"), found != BERLU_OK, &problems);
    const char *lines = problems.length ? problems.data : message;
    for (const char *at = lines; status == BERLU_OK && *at; at += strcspn(at, "\n") + 1)
        fprintf(stderr, "note: %.*s\n", (int)strcspn(at, "\n"), at);
    text_free(&problems);
    return status;
}

berlu_status study_plan(const options *o, study_opened *x)
{
    study_estimate needs = {0};
    study_time time = {0};
    TRY(notes_print(o, x));
    int devices = (int)(options_count(o, "devices") * (size_t)options_int(o, "per-device"));
    int jobs = options_given(o, "jobs") ? (int)options_int(o, "jobs") : devices ? devices : study_jobs_default(x);
    TRY(study_estimate_make(&needs, &x->s));
    TRY(study_time_make(&time, &x->s, &x->runs, study_threads(o, jobs), 2));
    if (options_json(o))
        return plan_json(x, &needs, &time, jobs);
    study_plan_print(x);
    needs_print(&needs, &time, jobs);
    if (x->runs.count)
        return study_answer(o, x, 0, 0);
    printf("%s: %zu runs; which of them are done is not known here (%s)\n", x->s.name, x->s.run_count, x->folder);
    return BERLU_OK;
}
