/* scheduler.c - see scheduler.h. SPDX-License-Identifier: MIT
 *
 * One loop: fill free slots, wait for output with poll(), take in lines, reap. Nothing here needs a thread or a handler. */
#include "study/scheduler.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "study/algorithms.h"
#include "study/process.h"

enum { LINE = 4096, TRIES = 8 };

/* Bytes of a pipe that are no whole line yet. */
typedef struct line_pipe {
    int fd;
    size_t used;
    char bytes[LINE];
} line_pipe;

typedef struct slot {
    line_pipe out, err;
    int device; /* -1: not said */
} slot;

typedef struct scheduler {
    const study_schedule *how;
    const study *s;
    study_entries *runs;
    store *index;
    study_worker workers[STUDY_JOBS];
    slot slots[STUDY_JOBS];
    int *attempts;             /* per run: processes without progress */
    uint64_t *steps_known;     /* per run: the step of the newest checkpoint when a process began */
    double began, run_seconds; /* of finished runs, to estimate the rest */
    size_t run_count;
    double epoch_seconds; /* the longest epoch of processes that have ended */
    int stopping;
} scheduler;

/* ---- processes ---- */

/* The words of study_command() with those that only a scheduler adds; the array has space for them. */
static char **worker_command(arena *memory, const scheduler *x, size_t run)
{
    const study_entry *r = &x->runs->items[run];
    char **words = study_command(memory, x->s, r, x->how), path[STUDY_PATH];
    size_t n = 0;
    while (words && words[n])
        n++;
    if (!words)
        return NULL;
    if (x->how->folder && study_algorithms_wanted(&x->s->cells[r->cell]) &&
        study_algorithms_prepare(path, x->how->folder, r->key) == BERLU_OK) {
        words[n++] = arena_strdup(memory, "--algorithms");
        words[n++] = arena_strdup(memory, path);
    }
    words[n++] = arena_strdup(memory, "--json-lines");
    words[n++] = arena_strdup(memory, "--quiet");
    words[n] = NULL;
    for (size_t i = 0; i < n; i++)
        if (!words[i])
            return NULL;
    return words;
}

static berlu_status worker_start(scheduler *x, int at, size_t run)
{
    arena memory = {0};
    study_process p;
    char **words = worker_command(&memory, x, run);
    berlu_status status =
        words ? study_process_start(&p, words, x->slots[at].device) : berlu_fail_memory(LINE, "a command line");
    arena_free(&memory);
    if (status != BERLU_OK)
        return status;
    x->slots[at].out = (line_pipe){.fd = p.out};
    x->slots[at].err = (line_pipe){.fd = p.err};
    x->workers[at] = (study_worker){.process = p.id, .run = run, .loss = NAN, .top1 = NAN, .began = clock_seconds()};
    x->steps_known[run] = x->runs->items[run].record.step;
    x->runs->items[run].state = STUDY_RUNNING;
    return store_put_run(x->index, &x->runs->items[run], NULL);
}

static void workers_signal(scheduler *x, int signal)
{
    for (int i = 0; i < x->how->jobs; i++)
        if (x->workers[i].process)
            kill((pid_t)x->workers[i].process, signal);
}

/* ---- output of workers ---- */

static double number_at(const json_t *line, const char *key, double otherwise)
{
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void progress_take(study_worker *w, const char *text_line)
{
    json_t *line = json_loads(text_line, 0, NULL);
    if (!json_is_object(line)) {
        json_decref(line);
        return;
    }
    uint64_t epoch = (uint64_t)number_at(line, "epoch", (double)w->epoch);
    if (epoch > w->epoch) {
        double now = clock_seconds();
        w->epoch_seconds = w->epoch ? now - w->epoch_began : 0;
        w->epoch_began = now;
    }
    w->epoch = epoch;
    w->step = (uint64_t)number_at(line, "step", (double)w->step);
    w->steps = (uint64_t)number_at(line, "steps", (double)w->steps);
    w->loss = number_at(line, "loss", number_at(line, "train_loss", w->loss));
    w->top1 = number_at(line, "test_top1", w->top1);
    w->images_per_s = number_at(line, "images_per_s", w->images_per_s);
    json_decref(line);
}

static void error_take(study_worker *w, const char *line)
{
    if (*line)
        snprintf(w->error, sizeof w->error, "%s", line);
}

/* Whole lines to `take`; the rest waits. Returns 0 at the end of the output. */
static int pipe_read(line_pipe *p, study_worker *w, void (*take)(study_worker *, const char *))
{
    if (p->fd < 0)
        return 0;
    ssize_t got = read(p->fd, p->bytes + p->used, LINE - 1 - p->used);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        return 0;
    p->used += (size_t)got;
    p->bytes[p->used] = 0;
    char *line = p->bytes, *end;
    while ((end = strchr(line, '\n'))) {
        *end = 0;
        take(w, line);
        line = end + 1;
    }
    p->used = strlen(line);
    memmove(p->bytes, line, p->used + 1);
    if (p->used == LINE - 1) /* no line is that long */
        p->used = 0;
    return 1;
}

static void pipe_close(line_pipe *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

/* ---- the loop ---- */

static int is_wanted(const scheduler *x, size_t i)
{
    const study_entry *r = &x->runs->items[i];
    const char *only = x->how->only;
    return r->same_as == i && (!only || r->cell == x->s->teacher_cell || strstr(x->s->cells[r->cell].label, only)) &&
           (r->state == STUDY_WAITING || r->state == STUDY_CUT) && x->attempts[i] <= x->how->retries &&
           study_entry_ready(x->runs, r);
}

static int next_run(const scheduler *x)
{
    for (size_t i = 0; i < x->runs->count; i++)
        if (is_wanted(x, i))
            return (int)i;
    return -1;
}

static void slim(const study_entry *r)
{
    char path[STUDY_PATH + 16];
    snprintf(path, sizeof path, "%s/checkpoints", r->path);
    (void)folder_remove(path); /* a reader may hold a file of it: then it stays, and nothing depends on it */
}

/* The reason of a failure goes into the folder: the folders are the truth, and the process that said it is gone. */
static void message_keep(const study_entry *r, const char *message)
{
    char path[STUDY_PATH + 16];
    snprintf(path, sizeof path, "%s/message.txt", r->path);
    if (*message && folder_exists(r->path))
        (void)file_write_atomic(path, message, strlen(message));
}

static berlu_status worker_end(scheduler *x, int at)
{
    study_worker *w = &x->workers[at];
    study_entry *r = &x->runs->items[w->run];
    int code = 0;
    while (waitpid((pid_t)w->process, &code, 0) < 0 && errno == EINTR)
        ;
    x->epoch_seconds = fmax(x->epoch_seconds, w->epoch_seconds);
    pipe_close(&x->slots[at].out);
    pipe_close(&x->slots[at].err);
    berlu_status status = study_entry_look(r);
    if (status != BERLU_OK)
        return status;
    if (r->state == STUDY_DONE) {
        x->run_seconds += clock_seconds() - w->began;
        if (x->how->folder)
            study_algorithms_keep(x->how->folder, r);
        x->run_count++;
    }
    int bad_input = WIFEXITED(code) && WEXITSTATUS(code) == 2;
    if (bad_input && r->state != STUDY_DONE)
        r->state = STUDY_FAILED;
    if (r->state == STUDY_CUT || r->state == STUDY_WAITING)
        x->attempts[w->run] = r->record.step > x->steps_known[w->run] || x->stopping ? 0 : x->attempts[w->run] + 1;
    if ((r->state == STUDY_CUT || r->state == STUDY_WAITING) && x->attempts[w->run] > x->how->retries)
        r->state = STUDY_FAILED;
    if (r->state == STUDY_FAILED)
        message_keep(r, w->error);
    status = store_put_run(x->index, r, r->state == STUDY_DONE ? NULL : w->error);
    if (status == BERLU_OK)
        status = store_event(x->index, r->key, study_state_names[r->state]);
    if (status == BERLU_OK && r->state == STUDY_DONE && x->how->slim && r->cell != x->s->teacher_cell)
        slim(r);                                                      /* the index has the hash of the weights by now */
    for (size_t i = 0; i < x->runs->count && status == BERLU_OK; i++) /* cells that mean the same run */
        if (x->runs->items[i].same_as == w->run && i != w->run)
            status = study_entry_look(&x->runs->items[i]);
    w->process = 0;
    return status;
}

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
        owner[count] = i, fds[count++] = (struct pollfd){.fd = x->slots[i].out.fd, .events = POLLIN};
        owner[count] = i, fds[count++] = (struct pollfd){.fd = x->slots[i].err.fd, .events = POLLIN};
    }
    poll(fds, (nfds_t)count, 250);
    berlu_status status = BERLU_OK;
    for (int k = 0; k < count && status == BERLU_OK; k += 2) {
        int i = owner[k];
        int more = pipe_read(&x->slots[i].out, &x->workers[i], progress_take);
        if (!pipe_read(&x->slots[i].err, &x->workers[i], error_take) && !more)
            status = worker_end(x, i);
    }
    return status;
}

static int time_is_up(const scheduler *x)
{
    return x->how->seconds > 0 && clock_seconds() - x->began >= x->how->seconds;
}

/* Whether a run that begins now can end an epoch within the limit, by the longest epoch seen. */
static int time_for_epoch(const scheduler *x)
{
    double longest = x->epoch_seconds;
    for (int i = 0; i < x->how->jobs; i++)
        longest = fmax(longest, x->workers[i].process ? x->workers[i].epoch_seconds : 0);
    return x->how->seconds <= 0 || clock_seconds() - x->began + longest < x->how->seconds;
}

static berlu_status slots_fill(scheduler *x)
{
    berlu_status status = BERLU_OK;
    for (int i = 0; i < x->how->jobs && status == BERLU_OK && !x->stopping; i++) {
        int run = x->workers[i].process || !time_for_epoch(x) ? -1 : next_run(x);
        if (run >= 0)
            status = worker_start(x, i, (size_t)run);
    }
    return status;
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
    x->stopping |= next_run(x) >= 0; /* nothing more fits into the time */
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
    x->steps_known = calloc(runs->count + 1, sizeof *x->steps_known);
    for (int i = 0; i < STUDY_JOBS; i++) {
        x->slots[i].device = how->devices ? how->devices[i % how->device_count] : -1;
        x->slots[i].out.fd = x->slots[i].err.fd = -1;
    }
    berlu_status status = x->attempts && x->steps_known ? BERLU_OK : berlu_fail_memory(runs->count, "a scheduler");
    if (status == BERLU_OK)
        status = store_put_study(index, s, how->yaml, runs);
    for (size_t i = 0; i < runs->count && status == BERLU_OK; i++)
        if (runs->items[i].same_as == i && runs->items[i].state != STUDY_WAITING && !runs->items[i].known &&
            !store_is_current(index, &runs->items[i]))
            status = store_put_run(index, &runs->items[i], NULL);
    if (status == BERLU_OK)
        status = loop(x);
    free(x->attempts);
    free(x->steps_known);
    free(x);
    return status;
}
