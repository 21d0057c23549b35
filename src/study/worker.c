/* worker.c - command lines of a study's processes, and what they write.
 * SPDX-License-Identifier: MIT
 *
 * worker.h names the two kinds. worker_read() takes complete lines: JSON lines of progress from
 * standard output, the last message from standard error. worker_reap() returns how a process
 * ended. */
#include "study/worker.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "study/algorithms.h"
#include "study/process.h"

/* ---- command lines --------------------------------------------------------------------------- */

/* The words of study_command() with those that only a scheduler adds; the array has space for
 * them. */
char **worker_train(arena *memory, const study_schedule *how, const study *s, const study_entry *run)
{
    char **words = study_command(memory, s, run, how), path[STUDY_PATH];
    size_t n = 0;
    while (words && words[n])
        n++;
    if (!words)
        return NULL;
    if (how->folder && study_algorithms_wanted(&s->cells[run->cell]) &&
        study_algorithms_prepare(path, how->folder, run->key) == BERLU_OK) {
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

/* Sharpness and one eigenvalue: neither lines nor a plane of the loss, which nobody looks at. */
char **worker_landscape(arena *memory, const study_schedule *how, const study *s, const study_entry *run)
{
    const char *const fixed[] = {how->program, "analyze",  "landscape", run->path,       "--save", "--directions",
                                 "1",          "--points", "1",         "--eigenvalues", "1",      "--grid",
                                 "0"};
    size_t n = 0;
    char **words = ARENA_ARRAY(memory, char *, COUNT(fixed) + 5);
    for (; words && n < COUNT(fixed); n++)
        if (!(words[n] = arena_strdup(memory, fixed[n])))
            return NULL;
    const char *device = words ? study_setting_of(&s->cells[run->cell], "device") : NULL;
    if (device) {
        words[n++] = arena_strdup(memory, "--device");
        words[n++] = arena_strdup(memory, device);
    }
    if (words && how->threads) {
        words[n++] = arena_strdup(memory, "--threads");
        words[n++] = arena_printf(memory, "%d", how->threads);
    }
    for (size_t i = 0; i < n; i++)
        if (!words[i])
            return NULL;
    return words;
}

/* ---- the process ----------------------------------------------------------------------------- */

berlu_status worker_spawn(study_worker *w, worker_pipes *p, char *const *words)
{
    study_process started;
    TRY(study_process_start(&started, words, p->device));
    p->out = (line_pipe){.fd = started.out};
    p->err = (line_pipe){.fd = started.err};
    w->process = started.id;
    return BERLU_OK;
}

static void pipe_close(line_pipe *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

int worker_reap(study_worker *w, worker_pipes *p)
{
    int code = 0;
    while (waitpid((pid_t)w->process, &code, 0) < 0 && errno == EINTR)
        ;
    pipe_close(&p->out);
    pipe_close(&p->err);
    w->process = 0;
    return code;
}

/* ---- output ---------------------------------------------------------------------------------- */

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
    uint64_t step = (uint64_t)number_at(line, "step", (double)w->step);
    w->first_step = w->step ? w->first_step : step;
    w->step = step;
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
    ssize_t got = read(p->fd, p->bytes + p->used, sizeof p->bytes - 1 - p->used);
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
    if (p->used == sizeof p->bytes - 1) /* no line is that long */
        p->used = 0;
    return 1;
}

int worker_read(study_worker *w, worker_pipes *p)
{
    int out = pipe_read(&p->out, w, progress_take), err = pipe_read(&p->err, w, error_take);
    return out || err;
}
