/* scheduler.c - see scheduler.h. SPDX-License-Identifier: MIT
 *
 * One loop: fill free slots, wait for output with poll(), read lines, reap; no thread and no signal
 * handler is needed. Processes and their pipes are in worker.c. */
#include "study/scheduler.h"

#include <assert.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "study/algorithms.h"
#include "study/worker.h"

typedef struct scheduler {
    const study_schedule *how;
    const study *s;
    study_entries *runs;
    store *index;
    study_worker workers[STUDY_JOBS];
    worker_pipes pipes[STUDY_JOBS];
    int *attempts;             /* per run: processes without progress */
    int *measured;             /* per run: its landscape was started; once is enough */
    uint64_t *steps_known;     /* per run: the step of the newest checkpoint when a process began */
    double began, run_seconds; /* of finished runs, to estimate the rest */
    size_t run_count;
    double epoch_seconds; /* the longest epoch of processes that have ended */
    int stopping;
    int landscapes; /* of finished runs are measured */
} scheduler;

/* ---- workers --------------------------------------------------------------------------------- */

static void message_path(char path[STUDY_PATH + 16], const study_entry *r)
{
    snprintf(path, STUDY_PATH + 16, "%s/message.txt", r->path);
}

static berlu_status worker_start(scheduler *x, int at, size_t run)
{
    arena memory = {0};
    study_entry *r = &x->runs->items[run];
    int trains = r->state != STUDY_DONE;
    x->workers[at] =
        (study_worker){.run = run, .landscape = !trains, .loss = NAN, .top1 = NAN, .began = clock_seconds()};
    char **words = trains ? worker_train(&memory, x->how, x->s, r) : worker_landscape(&memory, x->how, x->s, r);
    berlu_status status = words ? worker_spawn(&x->workers[at], &x->pipes[at], words) : BERLU_ERR_MEMORY;
    arena_free(&memory);
    if (status != BERLU_OK || !trains) {
        x->measured[run] = !trains;
        return status;
    }
    x->steps_known[run] = r->record.step;
    r->state = STUDY_RUNNING;
    char message[STUDY_PATH + 16]; /* of an earlier process */
    message_path(message, r);
    (void)remove(message);
    return store_put_run(x->index, r, NULL);
}

static void workers_signal(scheduler *x, int signal)
{
    for (int i = 0; i < x->how->jobs; i++)
        if (x->workers[i].process)
            kill((pid_t)x->workers[i].process, signal);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static int is_selected(const scheduler *x, size_t i)
{
    const study_entry *r = &x->runs->items[i];
    const char *only = x->how->only;
    return r->same_as == i && (!only || r->cell == x->s->teacher_cell || strstr(x->s->cells[r->cell].label, only));
}

static int wants_training(const scheduler *x, size_t i)
{
    const study_entry *r = &x->runs->items[i];
    return is_selected(x, i) && (r->state == STUDY_WAITING || r->state == STUDY_CUT) &&
           x->attempts[i] <= x->how->retries && study_entry_ready(x->runs, r);
}

static int wants_landscape(const scheduler *x, size_t i)
{
    const study_entry *r = &x->runs->items[i];
    return x->landscapes && is_selected(x, i) && r->state == STUDY_DONE && !r->known && r->weights && !r->landscape &&
           !x->measured[i];
}

/* Landscapes first: with --slim the weights they need still occupy the disk. */
static int next_run(const scheduler *x)
{
    for (size_t i = 0; i < x->runs->count; i++)
        if (wants_landscape(x, i))
            return (int)i;
    for (size_t i = 0; i < x->runs->count; i++)
        if (wants_training(x, i))
            return (int)i;
    return -1;
}

/* ---- the end of a worker --------------------------------------------------------------------- */

/* Deletes checkpoints that are no longer needed. The index has the hash of the weights by then. A
 * teacher's are needed by its students; those of a failed landscape may be measured again. */
static void slim(const scheduler *x, const study_entry *r)
{
    char path[STUDY_PATH + 16];
    if (!x->how->slim || r->state != STUDY_DONE || r->cell == x->s->teacher_cell || (x->landscapes && !r->landscape))
        return;
    snprintf(path, sizeof path, "%s/checkpoints", r->path);
    (void)folder_remove(path); /* a reader may hold a file of it open: then it stays, which does no harm */
}

/* Writes the reason why a run failed or was given up into its folder, for an index rebuilt from
 * folders. */
static void message_save(const study_entry *r, const char *message)
{
    char path[STUDY_PATH + 16];
    message_path(path, r);
    if (*message && folder_exists(r->path))
        (void)file_write_atomic(path, message, strlen(message));
}

/* What a training process left behind: the state is that of the folder, whatever the exit code. A
 * run that makes no progress is given up: bad input (2) at once, since it would be so again. It
 * stays waiting or cut, for a full disk or a missing device is no result of its function. */
static void training_settle(scheduler *x, study_entry *r, const study_worker *w, int code)
{
    int *attempts = &x->attempts[w->run];
    if (r->state == STUDY_CUT || r->state == STUDY_WAITING) {
        int bad_input = WIFEXITED(code) && WEXITSTATUS(code) == 2;
        *attempts = bad_input                                                ? x->how->retries + 1
                    : r->record.step > x->steps_known[w->run] || x->stopping ? 0
                                                                             : *attempts + 1;
        r->given_up = *attempts > x->how->retries;
    }
    if (r->state == STUDY_FAILED || r->given_up)
        message_save(r, w->error);
}

static berlu_status training_end(scheduler *x, study_worker *w, study_entry *r, int code)
{
    x->epoch_seconds = fmax(x->epoch_seconds, w->epoch_seconds);
    if (r->state == STUDY_DONE) {
        x->run_seconds += clock_seconds() - w->began;
        if (x->how->folder)
            study_algorithms_keep(x->how->folder, r);
        x->run_count++;
    }
    training_settle(x, r, w, code);
    TRY(store_put_run(x->index, r, r->state == STUDY_DONE ? NULL : w->error));
    return store_event(x->index, r->key, study_state_names[r->state]);
}

static berlu_status landscape_end(scheduler *x, const study_worker *w, const study_entry *r)
{
    char what[sizeof w->error + 32];
    snprintf(what, sizeof what, r->landscape ? "landscape" : "landscape failed: %s", w->error);
    if (r->landscape)
        TRY(store_put_run(x->index, r, NULL));
    return store_event(x->index, r->key, what);
}

static berlu_status worker_end(scheduler *x, int at)
{
    study_worker *w = &x->workers[at];
    study_entry *r = &x->runs->items[w->run];
    int code = worker_reap(w, &x->pipes[at]);
    TRY(study_entry_look(r));
    TRY(w->landscape ? landscape_end(x, w, r) : training_end(x, w, r, code));
    slim(x, r);
    for (size_t i = 0; i < x->runs->count; i++) /* cells that share the run */
        if (x->runs->items[i].same_as == w->run && i != w->run)
            TRY(study_entry_look(&x->runs->items[i]));
    return BERLU_OK;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int workers_busy(const scheduler *x)
{
    int busy = 0;
    for (int i = 0; i < x->how->jobs; i++)
        busy += x->workers[i].process != 0;
    return busy;
}

static void view_show(const scheduler *x)
{
    study_view v = {.study = x->s,
                    .runs = x->runs,
                    .workers = x->workers,
                    .slots = x->how->jobs,
                    .seconds = clock_seconds() - x->began,
                    .left = NAN};
    size_t left = 0;
    for (size_t i = 0; i < x->runs->count; i++) {
        v.counts[x->runs->items[i].state]++;
        left += x->runs->items[i].same_as == i &&
                (x->runs->items[i].state == STUDY_WAITING || x->runs->items[i].state == STUDY_CUT);
    }
    if (x->run_count)
        v.left = x->run_seconds / (double)x->run_count * ((double)left + 0.5 * workers_busy(x)) /
                 (x->how->jobs > 0 ? x->how->jobs : 1);
    if (x->how->tick)
        x->how->tick(x->how->context, &v);
}

static berlu_status outputs_take(scheduler *x)
{
    struct pollfd fds[2 * STUDY_JOBS];
    int owner[2 * STUDY_JOBS], count = 0;
    for (int i = 0; i < x->how->jobs; i++) {
        if (!x->workers[i].process)
            continue;
        owner[count] = i, fds[count++] = (struct pollfd){.fd = x->pipes[i].out.fd, .events = POLLIN};
        owner[count] = i, fds[count++] = (struct pollfd){.fd = x->pipes[i].err.fd, .events = POLLIN};
    }
    poll(fds, (nfds_t)count, 250);
    for (int k = 0; k < count; k += 2)
        if (!worker_read(&x->workers[owner[k]], &x->pipes[owner[k]]))
            TRY(worker_end(x, owner[k]));
    return BERLU_OK;
}

static int time_is_up(const scheduler *x)
{
    return x->how->seconds > 0 && clock_seconds() - x->began >= x->how->seconds;
}

/* Whether a run started now can finish an epoch within the limit, by the longest epoch so far. */
static int time_for_epoch(const scheduler *x)
{
    double longest = x->epoch_seconds;
    for (int i = 0; i < x->how->jobs; i++)
        longest = fmax(longest, x->workers[i].process ? x->workers[i].epoch_seconds : 0);
    return x->how->seconds <= 0 || clock_seconds() - x->began + longest < x->how->seconds;
}

static berlu_status slots_fill(scheduler *x)
{
    for (int i = 0; i < x->how->jobs && !x->stopping; i++) {
        int run = x->workers[i].process || !time_for_epoch(x) ? -1 : next_run(x);
        if (run >= 0)
            TRY(worker_start(x, i, (size_t)run));
    }
    return BERLU_OK;
}

static berlu_status loop(scheduler *x)
{
    berlu_status status = BERLU_OK;
    for (double shown = 0;;) {
        if (!x->stopping && ((x->how->stop && *x->how->stop) || time_is_up(x))) {
            x->stopping = 1;
            workers_signal(x, SIGTERM);
        }
        if (status == BERLU_OK)
            status = slots_fill(x);
        if (status != BERLU_OK && !x->stopping) { /* a full disk: workers save what they can */
            x->stopping = 1;
            workers_signal(x, SIGTERM);
        }
        if (!workers_busy(x))
            break;
        berlu_status taken = outputs_take(x);
        status = status == BERLU_OK ? taken : status;
        if (clock_seconds() - shown >= 0.25) {
            view_show(x);
            shown = clock_seconds();
        }
    }
    view_show(x);
    x->stopping |= next_run(x) >= 0; /* the rest does not fit into the time limit */
    return status == BERLU_OK && x->stopping ? berlu_fail(BERLU_ERR_STOPPED, "stopped; all runs are saved") : status;
}

berlu_status study_schedule_run(const study_schedule *how, const study *s, study_entries *runs, store *index)
{
    scheduler *x = calloc(1, sizeof *x);
    if (!x || how->jobs < 1 || how->jobs > STUDY_JOBS) {
        free(x);
        return x ? berlu_fail(BERLU_ERR_ARG, "jobs: 1 to %d are possible", STUDY_JOBS)
                 : berlu_fail_memory(sizeof *x, "a scheduler");
    }
    *x = (scheduler){.how = how, .s = s, .runs = runs, .index = index, .began = clock_seconds()};
    x->attempts = calloc(runs->count + 1, sizeof *x->attempts);
    x->measured = calloc(runs->count + 1, sizeof *x->measured);
    x->steps_known = calloc(runs->count + 1, sizeof *x->steps_known);
    x->landscapes = how->landscapes && study_names_claim(s, STUDY_FLATNESS);
    for (int i = 0; i < STUDY_JOBS; i++) {
        x->pipes[i].device = how->devices ? how->devices[i % how->device_count] : -1;
        x->pipes[i].out.fd = x->pipes[i].err.fd = -1;
    }
    berlu_status status;
    if (!x->attempts || !x->measured || !x->steps_known)
        TRY_DONE(berlu_fail_memory(runs->count, "a scheduler"));
    TRY_DONE(store_put_study(index, s, how->yaml, runs));
    for (size_t i = 0; i < runs->count; i++)
        if (runs->items[i].same_as == i && runs->items[i].state != STUDY_WAITING && !runs->items[i].known &&
            !store_is_current(index, &runs->items[i]))
            TRY_DONE(store_put_run(index, &runs->items[i], NULL));
    status = loop(x);
done:
    free(x->attempts);
    free(x->measured);
    free(x->steps_known);
    free(x);
    return status;
}
