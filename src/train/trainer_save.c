/* trainer_save.c - checkpoints of a run: at once, or from a snapshot while the device goes on. SPDX-License-Identifier: MIT
 *
 * Where device memory is the host's, a checkpoint is written between two updates. A device that runs on its own would stand
 * still meanwhile: there the arrays are fetched in one transfer each, and a thread writes the same files from an engine in
 * host memory while training continues. One checkpoint is in the making at a time; it is waited for before the next one,
 * before the next row of metrics.csv, and before the run ends or stops, so everything on disk comes in the same order as
 * without the thread, and a death in between finds the checkpoint before. Its failure ends the run at the next of these
 * moments. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/signals.h"
#include "cpu/cpu.h"
#include "train/trainer_internal.h"

struct saver {
    const trainer *t;
    engine *copy;   /* in host memory */
    void *snapshot; /* pinned: the arrays as the device has them */
    pthread_t thread;
    int busy;
    train_state state; /* site_metrics are its own */
    berlu_status status;
    char message[1024], warning[512]; /* of the thread */
};

static const backend *backend_of(const trainer *t)
{
    return ((const struct device_base *)engine_device(t->train))->backend;
}

berlu_status trainer_saver_open(trainer *t, const engine_options *like)
{
    if (!backend_of(t)->asynchronous)
        return BERLU_OK;
    saver *s = t->saver = calloc(1, sizeof *s);
    if (!s)
        return berlu_fail_memory(sizeof *s, "checkpoints in the background");
    s->t = t;
    engine_options o = *like;
    o.backend = cpu_backend();
    o.opening = (device_options){0};
    o.batch = o.threads = 1;
    o.accumulate = 0;
    berlu_status status = engine_create(&s->copy, t->model->graph, &o);
    if (status != BERLU_OK)
        return status;
    s->snapshot = backend_of(t)->alloc(engine_device(t->train), MEMORY_HOST, engine_snapshot_bytes(t->train),
                                       "a snapshot of the parameters");
    return s->snapshot ? BERLU_OK : BERLU_ERR_MEMORY;
}

void trainer_saver_close(trainer *t)
{
    saver *s = t->saver;
    if (!s)
        return;
    if (s->busy)
        pthread_join(s->thread, NULL);
    if (s->snapshot)
        backend_of(t)->release(engine_device(t->train), MEMORY_HOST, s->snapshot);
    engine_free(s->copy);
    free(s->state.site_metrics);
    free(s);
    t->saver = NULL;
}

/* ---- the thread ---- */

static void warning_keep(void *context, berlu_log_level level, const char *line)
{
    saver *s = context;
    if (level == BERLU_LOG_WARNING)
        snprintf(s->warning, sizeof s->warning, "%s", line);
}

static berlu_status snapshot_write(saver *s)
{
    berlu_log log = {.write = warning_keep, .context = s};
    checkpoint_store store = s->t->store;
    store.log = &log;
    berlu_status status = engine_snapshot_put(s->copy, s->t->train, s->snapshot);
    if (status == BERLU_OK)
        status = report_state_finite(s->t, s->copy, s->state.updates);
    if (status != BERLU_OK)
        return status;
    status = checkpoint_save(&store, s->copy, &s->state);
    return status == BERLU_OK ? status : report_not_saved(s->t, status);
}

static void *saver_run(void *context)
{
    saver *s = context;
    s->status = snapshot_write(s);
    if (s->status != BERLU_OK)
        snprintf(s->message, sizeof s->message, "%s", berlu_last_error());
    return NULL;
}

static berlu_status state_keep(saver *s, const train_state *now)
{
    size_t count = now->site_metric_count;
    double *metrics = s->state.site_metrics ? s->state.site_metrics : calloc(count + 1, sizeof *metrics);
    if (!metrics)
        return berlu_fail_memory(count * sizeof *metrics, "the figures of sites");
    s->state = *now;
    s->state.site_metrics = metrics;
    memcpy(metrics, now->site_metrics, count * sizeof *metrics);
    return BERLU_OK;
}

static berlu_status saver_start(trainer *t)
{
    saver *s = t->saver;
    sigset_t before;
    berlu_status status = state_keep(s, &t->state);
    if (status == BERLU_OK)
        status = engine_snapshot_take(t->train, s->snapshot);
    if (status != BERLU_OK)
        return status;
    *s->message = *s->warning = 0;
    signals_block(&before); /* as all threads of ours do */
    s->busy = pthread_create(&s->thread, NULL, saver_run, s) == 0;
    signals_restore(&before);
    if (s->busy)
        return BERLU_OK;
    s->busy = 1;
    saver_run(s); /* no thread to be had: here and now */
    s->busy = -1;
    return BERLU_OK;
}

/* ---- what the loop asks for ---- */

/* A checkpoint of this state is in place. */
static berlu_status saved(trainer *t, const train_state *state)
{
    t->saved_updates = state->updates;
    t->saved_batches = state->batches;
    /* For people and schedulers; the checkpoint is what counts. */
    (void)run_mark(&t->run, RUN_RUNNING, state->updates);
    berlu_status status = run_intact(&t->run);
    return status == BERLU_OK ? BERLU_OK : report_not_saved(t, status);
}

berlu_status trainer_save_finish(trainer *t)
{
    saver *s = t->saver;
    if (!s || !s->busy)
        return BERLU_OK;
    double began = clock_seconds();
    if (s->busy > 0)
        pthread_join(s->thread, NULL);
    s->busy = 0;
    t->times.checkpoint += clock_seconds() - began;
    if (*s->warning)
        log_line(&t->run.log, BERLU_LOG_WARNING, "%s", s->warning);
    return s->status == BERLU_OK ? saved(t, &s->state) : berlu_fail(s->status, "%s", s->message);
}

berlu_status trainer_save(trainer *t)
{
    berlu_status status = trainer_save_finish(t);
    if (status != BERLU_OK || (t->saved_updates == t->state.updates && t->saved_batches == t->state.batches))
        return status; /* nothing happened since */
    double began = clock_seconds();
    status = trainer_results(t);
    if (status == BERLU_OK && !t->saver)
        status = report_state_finite(t, t->train, t->state.updates);
    if (status != BERLU_OK)
        return status;
    /* A folder that was moved, or lost its lock file, is still ours to save into; under a lock of another's it is not. */
    status = run_lock_named(&t->run.lock, &t->run.folder) < 0 ? run_in_place(&t->run) : BERLU_OK;
    if (status == BERLU_OK)
        status = t->saver ? saver_start(t) : checkpoint_save(&t->store, t->train, &t->state);
    t->times.checkpoint += clock_seconds() - began;
    if (status != BERLU_OK)
        return report_not_saved(t, status);
    return t->saver ? BERLU_OK : saved(t, &t->state);
}
