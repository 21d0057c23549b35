/* trainer.c - the training loop over epochs. SPDX-License-Identifier: MIT
 *
 * An epoch is a number of batches, and `accumulate` of them make an update (trainer_update.c).
 * Between two updates all state is in train_state and in the engine's arrays, so checkpoints are
 * written there and nowhere else, and a stop takes effect there. An epoch ends with the evaluation,
 * its row of metrics.csv and a checkpoint, in this order: a run killed in between writes the same
 * row again after its resume. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "train/evaluate.h"
#include "train/trainer_internal.h"

static int stop_requested(const trainer *t)
{
    return t->hooks.stop && *t->hooks.stop;
}

static berlu_status stop_and_save(trainer *t)
{
    TRY(tb_flush(t->tb)); /* histograms of an epoch that is stopped during its evaluation */
    TRY(trainer_save(t));
    TRY(trainer_save_finish(t));
    log_line(&t->run.log, BERLU_LOG_INFO, "stopped at step %llu; the state is saved",
             (unsigned long long)t->state.updates);
    return berlu_fail(BERLU_ERR_STOPPED, "stopped at step %llu; continue with --resume",
                      (unsigned long long)t->state.updates);
}

/* Prefetches the first batches of the next epoch during this one's evaluation. */
static berlu_status batches_prefetch(trainer *t)
{
    if (t->state.epoch + 1 >= (uint64_t)t->settings.epochs || t->state.batches < t->epoch_batches ||
        t->state.updates >= t->updates)
        return BERLU_OK;
    t->ahead = t->state.epoch + 1;
    return loader_start(t->batches, (uint32_t)t->ahead, 0);
}

static berlu_status batches_start(trainer *t)
{
    int there = t->ahead == t->state.epoch && t->ahead > 0 && t->state.batches == 0;
    t->ahead = 0;
    if (there || t->state.batches >= t->epoch_batches)
        return BERLU_OK;
    return loader_start(t->batches, (uint32_t)t->state.epoch, t->settings.overfit_batch ? 0 : t->state.batches);
}

/* Updates until the end of the epoch, the limit of updates or a stop. */
static berlu_status epoch_train(trainer *t)
{
    uint64_t every = (uint64_t)t->settings.checkpoint_every, batch = (uint64_t)t->settings.batch;
    TRY(batches_start(t));
    while (t->state.batches < t->epoch_batches && t->state.updates < t->updates) {
        if (stop_requested(t))
            return stop_and_save(t);
        double began = clock_seconds(), done;
        berlu_status status = update_run(t);
        t->times.loop += (done = clock_seconds()) - began;
        report_progress(t, "train", t->state.batches * batch, t->epoch_batches * batch);
        t->times.loop += clock_seconds() - done; /* progress reports count as time of the step */
        TRY(status);
        if (every && t->state.updates % every == 0 && t->state.batches < t->epoch_batches)
            TRY(trainer_save(t));
    }
    return trainer_results(t);
}

/* The first update is a warm-up and not counted, unless it alone exceeds the time. */
berlu_status updates_time(trainer *t, double seconds, double *out)
{
    double began = clock_seconds(), spent = 0;
    uint64_t first = 0;
    TRY(batches_start(t));
    while (t->state.batches < t->epoch_batches && t->state.updates < t->updates &&
           (spent < seconds || t->state.updates == first)) {
        if (stop_requested(t))
            return berlu_fail(BERLU_ERR_STOPPED, "stopped");
        TRY(update_run(t));
        TRY(trainer_results(t));
        spent = clock_seconds() - began;
        if (t->state.updates == 1 && spent < seconds)
            first = 1, began = clock_seconds();
    }
    *out = spent / (double)(t->state.updates > first ? t->state.updates - first : 1);
    return BERLU_OK;
}

typedef struct eval_note {
    const trainer *t;
    const char *phase;
    uint64_t total;
} eval_note;

static void eval_tick(void *context, uint64_t images)
{
    const eval_note *note = context;
    report_progress(note->t, note->phase, images, note->total);
}

static berlu_status evaluate_part(trainer *t, loader *l, const char *phase, score *out, unsigned char *correct)
{
    eval_note note = {.t = t, .phase = phase, .total = loader_images(l)};
    return evaluate(t->eval, l, out, correct, t->hooks.stop, eval_tick, &note);
}

static berlu_status evaluate_average(trainer *t, metrics_row *row)
{
    score s = {0};
    if (!engine_has(t->train, ARRAY_EMA))
        return BERLU_OK;
    berlu_status status = engine_swap_ema(t->train);
    if (status == BERLU_OK)
        status = evaluate_part(t, t->test, "test (average)", &s, NULL);
    berlu_status back = engine_swap_ema(t->train);
    status = status == BERLU_OK ? back : status;
    row->ema_loss = score_loss(&s), row->ema_top1 = score_top1(&s), row->ema_top5 = score_top5(&s);
    return status;
}

/* Whether the run ends with the current epoch. */
static int last_epoch(const trainer *t)
{
    return t->state.epoch + 1 >= (uint64_t)t->settings.epochs || t->state.updates >= t->updates;
}

static berlu_status evaluate_sets(trainer *t, metrics_row *row)
{
    score test, train;
    TRY(evaluate_part(t, t->test, "test", &test, t->correct));
    TRY(evaluate_part(t, t->probe, "train set", &train, NULL));
    TRY(evaluate_average(t, row));
    if (last_epoch(t)) /* before the checkpoint, so that every complete run has the file */
        TRY(file_write_atomic_in(&t->run.folder, "correct.bin", t->correct, (loader_images(t->test) + 7) / 8));
    row->train_top1 = score_top1(&train);
    row->test_loss = score_loss(&test);
    row->test_top1 = t->top1 = score_top1(&test);
    row->test_top5 = score_top5(&test);
    return BERLU_OK;
}

/* The row of the epoch. Between evaluations (--eval-every) its accuracies and test losses stay
 * empty. */
static berlu_status evaluate_all(trainer *t, metrics_row *row)
{
    double began = clock_seconds();
    *row = (metrics_row){.epoch = t->state.epoch + 1, .step = t->state.updates, .lr = t->lr};
    row->train_top1 = row->test_loss = row->test_top1 = row->test_top5 = NAN;
    row->ema_loss = row->ema_top1 = row->ema_top5 = NAN;
    if (last_epoch(t) || row->epoch % (uint64_t)t->settings.eval_every == 0)
        TRY(evaluate_sets(t, row));
    TRY(diagnosis_parameters(t->diagnosis, t->train, t->state.site_metrics));
    row->train_loss = t->state.images ? t->state.loss_sum / (double)t->state.images : NAN;
    row->grad_norm = t->state.norms ? t->state.norm_sum / (double)t->state.norms : NAN;
    for (size_t i = 0; i < diagnosis_sites(t->diagnosis); i++)
        row->lipschitz = fmax(row->lipschitz, t->state.site_metrics[i * SITE_METRICS + SITE_LIPSCHITZ]);
    t->times.evaluate += clock_seconds() - began;
    return BERLU_OK;
}

static void epoch_count(trainer *t)
{
    t->state.epoch++;
    t->state.batches = t->state.images = t->state.norms = 0;
    t->state.loss_sum = t->state.norm_sum = 0;
}

static int is_better(const trainer *t)
{
    return !isnan(t->row.test_top1) && (t->state.best_updates == 0 || t->row.test_top1 > t->state.best_top1);
}

/* Whether the run ended within an epoch (--max-steps) with the best evaluation of all. The state
 * does not know it: a longer run goes on as if that epoch had not been evaluated. */
static int end_is_best(const trainer *t)
{
    return t->state.batches > 0 && t->row.step == t->state.updates && is_better(t);
}

static berlu_status epoch_end(trainer *t)
{
    int cut = t->state.batches < t->epoch_batches;
    t->lr = schedule_rate(&t->schedule, t->state.updates ? t->state.updates - 1 : 0);
    TRY(batches_prefetch(t));
    berlu_status status = evaluate_all(t, &t->row);
    if (status == BERLU_ERR_STOPPED)
        return stop_and_save(t);
    TRY(status);
    int best = is_better(t);
    if (best && !cut) {
        t->state.best_top1 = t->row.test_top1;
        t->state.best_updates = t->state.updates;
    }
    TRY(trainer_save_finish(t)); /* rows and checkpoints reach the disk in order */
    TRY(report_epoch(t, &t->row, best, cut));
    if (!cut)
        epoch_count(t);
    TRY(trainer_save(t));
    return report_timing(t);
}

static void result_fill(const trainer *t, train_result *out)
{
    int end = end_is_best(t);
    *out = (train_result){.last = t->row,
                          .best_top1 = end ? t->row.test_top1 : t->state.best_top1,
                          .best_step = end ? t->state.updates : t->state.best_updates,
                          .epochs = t->state.epoch,
                          .updates = t->state.updates,
                          .seconds = t->total.loop,
                          .speed = report_speed(&t->total),
                          .peak_bytes = report_peak_bytes(),
                          .planned_bytes = report_planned_bytes(t)};
}

/* A run that was already complete reports the last row of its metrics. */
static berlu_status last_row_read(trainer *t)
{
    char path[RUN_PATH + 16];
    snprintf(path, sizeof path, "%s/metrics.csv", t->run.path);
    log_line(&t->run.log, BERLU_LOG_INFO, "the run is complete at step %llu", (unsigned long long)t->state.updates);
    return metrics_last(&t->row, path);
}

/* Records in the lock file how the run ended. Only values that are not finite fail the run itself;
 * after any other error it can be resumed. A run is done only once this record is written. */
static berlu_status end_mark(trainer *t, berlu_status status)
{
    uint64_t step = t->saved_updates == UINT64_MAX ? 0 : t->saved_updates;
    if (status == BERLU_OK)
        return run_mark(&t->run, RUN_DONE, step);
    kept_failure first;
    failure_keep(&first, status);
    if (status == BERLU_ERR_IO && run_intact(&t->run) != BERLU_OK) { /* the cause, whichever call failed */
        failure_keep(&first, report_not_saved(t, status));
    }
    (void)run_mark(&t->run, status == BERLU_ERR_NUMERIC ? RUN_FAILED : RUN_STOPPED, step);
    return failure_report(&first);
}

berlu_status trainer_run(trainer *t, train_result *out)
{
    uint64_t epochs = (uint64_t)t->settings.epochs;
    int complete = t->state.epoch >= epochs || (t->state.updates >= t->updates && !t->state.batches);
    berlu_status status;
    TRY_DONE(run_mark(&t->run, RUN_RUNNING, t->run.lock.record.step));
    if (complete)
        TRY_DONE(last_row_read(t));
    while (!complete) {
        status = epoch_train(t);
        if (status == BERLU_OK)
            status = epoch_end(t);
        berlu_status recorded = steps_write(t); /* also after a failure */
        TRY_DONE(status == BERLU_OK ? recorded : status);
        complete = t->state.epoch >= epochs || t->state.updates >= t->updates;
    }
    status = trainer_save_finish(t);
    if (status == BERLU_OK && end_is_best(t))
        status = checkpoint_link_best(&t->store, t->state.updates);
done:
    if (out)
        result_fill(t, out);
    return end_mark(t, status);
}
