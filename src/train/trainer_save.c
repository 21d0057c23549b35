/* trainer_save.c - checkpoints of a run, synchronous or from a snapshot in the background.
 * SPDX-License-Identifier: MIT
 *
 * Where device memory is host memory, a checkpoint is written between two updates. An asynchronous
 * device would idle meanwhile: its arrays are downloaded in one transfer each, and a thread writes
 * the same files from an engine in host memory while training continues. At most one checkpoint is
 * in flight; trainer_save_finish() joins it before the next one, before the next row of metrics.csv
 * and before the run ends. So everything reaches the disk in the same order as without the thread,
 * a kill in between leaves the previous checkpoint, and a failed write ends the run at the next
 * join. */
#include <assert.h>
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
    void *snapshot; /* pinned memory, arrays in the device's layout */
    pthread_t thread;
    int busy;             /* 1: the thread runs; -1: written without a thread; 0: idle */
    train_state state;    /* owns its site_metrics */
    kept_failure failure; /* written by the thread, as the next */
    char warning[512];
    int warned; /* checkpoint_store.warned, of all its checkpoints */
};

berlu_status trainer_saver_open(trainer *t, const engine_options *like)
{
    if (!engine_backend(t->train)->asynchronous)
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
    TRY(engine_create(&s->copy, t->model->graph, &o));
    return engine_backend(t->train)->alloc(engine_device(t->train), &s->snapshot, MEMORY_HOST,
                                           engine_snapshot_bytes(t->train), "a snapshot of the parameters");
}

void trainer_saver_close(trainer *t)
{
    saver *s = t->saver;
    if (!s)
        return;
    if (s->busy > 0)
        pthread_join(s->thread, NULL);
    if (s->snapshot)
        engine_backend(t->train)->release(engine_device(t->train), MEMORY_HOST, s->snapshot);
    engine_free(s->copy);
    free(s->state.site_metrics);
    free(s);
    t->saver = NULL;
}

/* ---- the thread ------------------------------------------------------------------------------ */

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
    store.warned |= s->warned;
    TRY(engine_snapshot_put(s->copy, s->t->train, s->snapshot));
    TRY(report_state_finite(s->t, s->copy, s->state.updates));
    berlu_status status = checkpoint_save(&store, s->copy, &s->state);
    s->warned = store.warned;
    return status == BERLU_OK ? status : report_not_saved(s->t, status);
}

static void *saver_run(void *context)
{
    saver *s = context;
    failure_keep(&s->failure, snapshot_write(s));
    return NULL;
}

static berlu_status state_copy(saver *s, const train_state *now)
{
    size_t count = now->site_metric_count;
    double *metrics = s->state.site_metrics ? s->state.site_metrics : calloc(count + 1, sizeof *metrics);
    if (!metrics)
        return berlu_fail_memory(count * sizeof *metrics, "the metrics of sites");
    s->state = *now;
    s->state.site_metrics = metrics;
    memcpy(metrics, now->site_metrics, count * sizeof *metrics);
    return BERLU_OK;
}

static berlu_status saver_start(trainer *t)
{
    saver *s = t->saver;
    sigset_t before;
    assert(!s->busy);
    TRY(state_copy(s, &t->state));
    TRY(engine_snapshot_take(t->train, s->snapshot));
    *s->warning = 0;
    signals_block(&before); /* the new thread inherits the mask: signals go to the main thread */
    s->busy = pthread_create(&s->thread, NULL, saver_run, s) == 0;
    signals_restore(&before);
    if (s->busy)
        return BERLU_OK;
    s->busy = 1;
    saver_run(s); /* no thread available: write synchronously */
    s->busy = -1;
    return BERLU_OK;
}

/* ---- called by the loop ---------------------------------------------------------------------- */

/* Records that a checkpoint of this state is in place. */
static berlu_status saved_record(trainer *t, const train_state *state)
{
    t->saved_updates = state->updates;
    t->saved_batches = state->batches;
    /* Informs people and schedulers; a failure here is harmless. */
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
    TRY(failure_report(&s->failure));
    return saved_record(t, &s->state);
}

berlu_status trainer_save(trainer *t)
{
    TRY(trainer_save_finish(t));
    if (t->saved_updates == t->state.updates && t->saved_batches == t->state.batches)
        return BERLU_OK; /* already saved */
    double began = clock_seconds();
    TRY(trainer_results(t));
    if (!t->saver)
        TRY(report_state_finite(t, t->train, t->state.updates));
    /* A folder that was moved or lost its lock file is still ours; one locked by another process is
     * not. */
    berlu_status status = run_lock_named(&t->run.lock, &t->run.folder) < 0 ? run_in_place(&t->run) : BERLU_OK;
    if (status == BERLU_OK)
        status = t->saver ? saver_start(t) : checkpoint_save(&t->store, t->train, &t->state);
    t->times.checkpoint += clock_seconds() - began;
    if (status != BERLU_OK)
        return report_not_saved(t, status);
    return t->saver ? BERLU_OK : saved_record(t, &t->state);
}
