/* trainer.c - the loop. SPDX-License-Identifier: MIT
 *
 * An epoch is a number of batches, `accumulate` of them make an update, and between two updates everything that the
 * future depends on is in the state and in the engine's arrays. So a checkpoint is possible after every update and
 * nowhere else, and that is also where a stop is obeyed. At an epoch's end: evaluate, write the row, checkpoint; dying
 * in between means that the same row is written again. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "train/evaluate.h"
#include "train/trainer_internal.h"

static int stop_asked(const trainer *t)
{
    return t->hooks.stop && *t->hooks.stop;
}

/* ---- one update ------------------------------------------------------------------------------------------------------ */

/* Images or draws are read where the loader made them: they stay until the next batch is asked for. */
static berlu_status batch_borrow(trainer *t, const loader_batch *b)
{
    network_feed(t->train, b);
    t->images = b->images;
    if (!b->draws)
        memcpy(engine_labels(t->train), b->labels, b->rows * sizeof *b->labels);
    if (b->targets)
        memcpy(engine_targets(t->train), b->targets, b->rows * b->classes * sizeof *b->targets);
    if (!t->teacher.engine)
        return BERLU_OK;
    const float *logits;
    double began = clock_seconds();
    berlu_status status = teacher_logits(&t->teacher, b, &logits);
    if (status == BERLU_OK)
        memcpy(engine_teacher(t->train), logits, b->rows * (size_t)t->classes * sizeof *logits);
    t->times.teacher += clock_seconds() - began;
    return status;
}

/* The next batch for the engine. The one batch of an overfit stays where it is after the first time. */
static berlu_status batch_next(trainer *t)
{
    const loader_batch *b = NULL;
    double waited = loader_waited(t->batches);
    if (t->settings.overfit_batch && t->times.images > 0)
        return BERLU_OK;
    berlu_status status = loader_next(t->batches, &b);
    if (status == BERLU_OK && !b)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: the epoch ended after %llu of %llu batches", t->settings.data,
                            (unsigned long long)t->state.batches, (unsigned long long)t->epoch_batches);
    t->times.data += loader_waited(t->batches) - waited;
    return status == BERLU_OK ? batch_borrow(t, b) : status;
}

static berlu_status diagnose_forward(trainer *t)
{
    double began = clock_seconds();
    berlu_status status = diagnosis_forward(t->diagnosis, t->train, t->state.site_metrics, t->tb, clock_wall_seconds(),
                                            (int64_t)t->state.updates + 1);
    t->times.diagnose += clock_seconds() - began;
    return status;
}

/* What a batch came to. The device stops updating by itself at the first value that is not finite (step_result.fault). */
static berlu_status result_add(trainer *t, const step_result *r, int ends_update)
{
    double loss = step_loss(t->train, r);
    steps_add(t, r, loss, ends_update);
    if (!isfinite(loss))
        return report_not_finite(t, "loss");
    if (ends_update && !isfinite(r->grad_norm))
        return report_not_finite(t, "norm of the gradients");
    if (t->settings.overfit_batch && !t->learned && loss < OVERFIT_LOSS) {
        t->learned = 1;
        log_line(&t->run.log, BERLU_LOG_INFO, "the batch is learned: loss %.4g after %llu updates", loss,
                 (unsigned long long)t->state.updates);
    }
    t->state.loss_sum += loss * (double)t->settings.batch;
    if (ends_update) {
        t->state.norm_sum += r->grad_norm;
        t->state.norms++;
    }
    return BERLU_OK;
}

/* Adds up results in the order of their steps, so that the sums do not depend on when they arrive: those that are there,
 * and with `leave` as many more as it takes to leave at most that many outstanding. */
static berlu_status results_collect(trainer *t, int leave)
{
    berlu_status status = BERLU_OK;
    while (status == BERLU_OK && t->outstanding) {
        step_result r;
        int there;
        status = engine_poll(t->train, &r, &there, t->outstanding > leave);
        if (status != BERLU_OK || !there)
            return status;
        int ends_update = t->ends_update[0];
        memmove(t->ends_update, t->ends_update + 1, (size_t)--t->outstanding);
        status = result_add(t, &r, ends_update);
    }
    return status;
}

berlu_status trainer_results(trainer *t)
{
    return results_collect(t, 0);
}

static berlu_status result_expect(trainer *t, int ends_update)
{
    berlu_status status = results_collect(t, RESULTS_OUTSTANDING - 1);
    if (status != BERLU_OK)
        return status;
    t->ends_update[t->outstanding++] = (char)ends_update;
    status = engine_step_end(t->train);
    return status == BERLU_OK ? results_collect(t, RESULTS_OUTSTANDING) : status;
}

/* Whether the first update of the run is under way: its batch meets the initial weights. A trainer that only measures
 * (--dry-run) has no folder to write them to. */
static int at_start(const trainer *t)
{
    return t->state.updates == 0 && t->run.folder.fd >= 0;
}

/* Forward and backward of one batch; `look` at the sites in between. */
static berlu_status batch_run(trainer *t, int look, int ends_update)
{
    double began = clock_seconds(), middle;
    berlu_status status = engine_forward(t->train, &t->step);
    t->times.forward += (middle = clock_seconds()) - began;
    if (status == BERLU_OK && look)
        status = diagnose_forward(t);
    if (status == BERLU_OK && ends_update && at_start(t))
        status = report_initial_forward(t);
    if (status != BERLU_OK)
        return status;
    t->state.images += (uint64_t)t->settings.batch;
    t->times.images += (uint64_t)t->settings.batch;
    middle = clock_seconds();
    status = engine_backward(t->train);
    t->times.backward += clock_seconds() - middle;
    return status == BERLU_OK && !ends_update ? result_expect(t, 0) : status;
}

static berlu_status update_apply(trainer *t, int look)
{
    double began = clock_seconds();
    berlu_status status = look ? diagnosis_backward(t->diagnosis, t->train, t->state.site_metrics) : BERLU_OK;
    if (status == BERLU_OK && at_start(t))
        status = report_initial_backward(t);
    t->times.diagnose += clock_seconds() - began;
    began = clock_seconds();
    if (status == BERLU_OK)
        status = engine_update(t->train);
    if (status == BERLU_OK)
        status = result_expect(t, 1);
    t->times.update += clock_seconds() - began;
    return status;
}

/* Forward, backward and update of one batch as one list. */
static berlu_status step_whole(trainer *t)
{
    t->step.micro_batch = 0;
    berlu_status status = batch_next(t);
    double began = clock_seconds();
    if (status == BERLU_OK)
        status = engine_step_run(t->train, &t->step);
    if (status != BERLU_OK)
        return status;
    t->state.images += (uint64_t)t->settings.batch;
    t->times.images += (uint64_t)t->settings.batch;
    status = result_expect(t, 1);
    t->times.update += clock_seconds() - began;
    return status;
}

/* Forward and backward of each batch, then the update. */
static berlu_status group_run(trainer *t, uint64_t group, int look)
{
    for (uint64_t m = 0; m < group; m++) {
        t->step.micro_batch = (uint32_t)m;
        berlu_status status = batch_next(t);
        if (status == BERLU_OK)
            status = batch_run(t, look && m + 1 == group, m + 1 == group);
        if (status != BERLU_OK)
            return status;
    }
    return update_apply(t, look);
}

/* A group of batches and its update. The last group of an epoch may be smaller and divides by its own size. A device that
 * runs on its own gets a step at once, unless somebody looks at it in between. */
static berlu_status update_run(trainer *t)
{
    uint64_t left = t->epoch_batches - t->state.batches, group = (uint64_t)t->settings.accumulate;
    group = left < group ? left : group;
    int look = left == group || t->state.updates + 1 == t->updates;
    t->lr = t->step.lr = schedule_rate(&t->schedule, t->state.updates);
    t->step.step = (uint32_t)t->state.updates;
    t->step.count = (uint32_t)t->state.updates + 1;
    t->step.loss_scale = 1 / (double)group;
    t->step.micro_batches = (uint32_t)group;
    const struct device_base *on = (const struct device_base *)engine_device(t->train);
    int whole = group == 1 && !look && !at_start(t) && on->backend->asynchronous;
    berlu_status status = whole ? step_whole(t) : group_run(t, group, look);
    if (status != BERLU_OK)
        return status;
    t->state.updates++;
    t->state.batches += group;
    return status;
}

/* ---- an epoch -------------------------------------------------------------------------------------------------------- */

static berlu_status stop_here(trainer *t)
{
    berlu_status status = tb_flush(t->tb); /* an epoch stopped in its evaluation has its histograms, and only now */
    if (status == BERLU_OK)
        status = trainer_save(t);
    if (status == BERLU_OK)
        status = trainer_save_finish(t);
    if (status != BERLU_OK)
        return status;
    log_line(&t->run.log, BERLU_LOG_INFO, "stopped at step %llu; the state is saved",
             (unsigned long long)t->state.updates);
    return berlu_fail(BERLU_ERR_STOPPED, "stopped at step %llu; continue with --resume",
                      (unsigned long long)t->state.updates);
}

/* The next epoch's first batches are made while this one is evaluated, so that its first step need not wait. */
static berlu_status batches_ahead(trainer *t)
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

/* Updates until the epoch, the limit of updates or a stop. */
static berlu_status epoch_train(trainer *t)
{
    uint64_t every = (uint64_t)t->settings.checkpoint_every, batch = (uint64_t)t->settings.batch;
    berlu_status status = batches_start(t);
    while (status == BERLU_OK && t->state.batches < t->epoch_batches && t->state.updates < t->updates) {
        if (stop_asked(t))
            return stop_here(t);
        double began = clock_seconds(), done;
        status = update_run(t);
        t->times.loop += (done = clock_seconds()) - began;
        report_progress(t, "train", t->state.batches * batch, t->epoch_batches * batch);
        t->times.loop += clock_seconds() - done; /* telling it is part of a step, too */
        if (status == BERLU_OK && every && t->state.updates % every == 0 && t->state.batches < t->epoch_batches)
            status = trainer_save(t);
    }
    return status == BERLU_OK ? results_collect(t, 0) : status;
}

/* The first update warms up, unless it alone takes longer than there is time. */
berlu_status updates_time(trainer *t, double seconds, double *out)
{
    double began = clock_seconds(), spent = 0;
    uint64_t first = 0;
    berlu_status status = batches_start(t);
    while (status == BERLU_OK && t->state.batches < t->epoch_batches && t->state.updates < t->updates &&
           (spent < seconds || t->state.updates == first)) {
        if (stop_asked(t))
            return berlu_fail(BERLU_ERR_STOPPED, "stopped");
        status = update_run(t);
        if (status == BERLU_OK)
            status = results_collect(t, 0);
        spent = clock_seconds() - began;
        if (t->state.updates == 1 && spent < seconds)
            first = 1, began = clock_seconds();
    }
    *out = spent / (double)(t->state.updates > first ? t->state.updates - first : 1);
    return status;
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

/* Whether the run ends with the epoch under way. */
static int last_epoch(const trainer *t)
{
    return t->state.epoch + 1 >= (uint64_t)t->settings.epochs || t->state.updates >= t->updates;
}

static berlu_status evaluate_sets(trainer *t, metrics_row *row)
{
    score test, train;
    berlu_status status = evaluate_part(t, t->test, "test", &test, t->correct);
    if (status == BERLU_OK)
        status = evaluate_part(t, t->probe, "train set", &train, NULL);
    if (status == BERLU_OK)
        status = evaluate_average(t, row);
    if (status == BERLU_OK &&
        last_epoch(t)) /* before the checkpoint: a complete run has it, however it was interrupted */
        status = file_write_atomic_in(&t->run.folder, "correct.bin", t->correct, (loader_images(t->test) + 7) / 8);
    if (status != BERLU_OK)
        return status;
    row->train_top1 = score_top1(&train);
    row->test_loss = score_loss(&test);
    row->test_top1 = t->top1 = score_top1(&test);
    row->test_top5 = score_top5(&test);
    return BERLU_OK;
}

/* The row of the epoch. Between evaluations (--eval-every) its accuracies and test losses stay empty. */
static berlu_status evaluate_all(trainer *t, metrics_row *row)
{
    double began = clock_seconds();
    *row = (metrics_row){.epoch = t->state.epoch + 1, .step = t->state.updates, .lr = t->lr};
    row->train_top1 = row->test_loss = row->test_top1 = row->test_top5 = NAN;
    row->ema_loss = row->ema_top1 = row->ema_top5 = NAN;
    berlu_status status = BERLU_OK;
    if (last_epoch(t) || row->epoch % (uint64_t)t->settings.eval_every == 0)
        status = evaluate_sets(t, row);
    if (status == BERLU_OK)
        status = diagnosis_parameters(t->diagnosis, t->train, t->state.site_metrics);
    if (status != BERLU_OK)
        return status;
    row->train_loss = t->state.images ? t->state.loss_sum / (double)t->state.images : NAN;
    row->grad_norm = t->state.norms ? t->state.norm_sum / (double)t->state.norms : NAN;
    for (size_t i = 0; i < diagnosis_sites(t->diagnosis); i++)
        row->lipschitz = fmax(row->lipschitz, t->state.site_metrics[i * SITE_METRICS + SITE_LIPSCHITZ]);
    t->times.evaluate += clock_seconds() - began;
    return BERLU_OK;
}

/* The state of an epoch that is over. */
static void epoch_finish(trainer *t)
{
    t->state.epoch++;
    t->state.batches = t->state.images = t->state.norms = 0;
    t->state.loss_sum = t->state.norm_sum = 0;
}

static berlu_status epoch_end(trainer *t)
{
    int cut = t->state.batches < t->epoch_batches;
    t->lr = schedule_rate(&t->schedule, t->state.updates ? t->state.updates - 1 : 0);
    berlu_status status = batches_ahead(t);
    if (status == BERLU_OK)
        status = evaluate_all(t, &t->row);
    if (status == BERLU_ERR_STOPPED)
        return stop_here(t);
    if (status != BERLU_OK)
        return status;
    int best =
        !cut && !isnan(t->row.test_top1) && (t->state.best_updates == 0 || t->row.test_top1 > t->state.best_top1);
    if (best) {
        t->state.best_top1 = t->row.test_top1;
        t->state.best_updates = t->state.updates;
    }
    status = trainer_save_finish(t); /* rows and checkpoints come in order */
    if (status == BERLU_OK)
        status = report_epoch(t, &t->row, best, cut);
    if (status == BERLU_OK && !cut)
        epoch_finish(t);
    if (status == BERLU_OK)
        status = trainer_save(t);
    return status == BERLU_OK ? report_timing(t) : status;
}

static void result_fill(const trainer *t, train_result *out)
{
    *out = (train_result){.last = t->row,
                          .best_top1 = t->state.best_top1,
                          .best_step = t->state.best_updates,
                          .epochs = t->state.epoch,
                          .updates = t->state.updates,
                          .seconds = t->total.loop,
                          .speed = report_speed(&t->total),
                          .peak_bytes = report_peak_bytes(),
                          .planned_bytes = report_planned_bytes(t)};
}

/* A run that was complete before: what it came to stands in its metrics. */
static berlu_status row_recall(trainer *t)
{
    char path[RUN_PATH + 16];
    snprintf(path, sizeof path, "%s/metrics.csv", t->run.path);
    log_line(&t->run.log, BERLU_LOG_INFO, "the run is complete at step %llu", (unsigned long long)t->state.updates);
    return metrics_last(&t->row, path);
}

/* How the run ended, into the lock file. Only numbers that are not finite are a failure of the run itself; what else ends
 * it can be repaired and resumed. The end of a run counts only once it is written down. */
static berlu_status end_mark(trainer *t, berlu_status status)
{
    uint64_t step = t->saved_updates == UINT64_MAX ? 0 : t->saved_updates;
    if (status == BERLU_OK)
        return run_mark(&t->run, RUN_DONE, step);
    char message[1024];
    snprintf(message, sizeof message, "%s", berlu_last_error());
    if (status == BERLU_ERR_IO && run_intact(&t->run) != BERLU_OK) { /* then this is why, whichever call failed */
        (void)report_not_saved(t, status);
        snprintf(message, sizeof message, "%s", berlu_last_error());
    }
    (void)run_mark(&t->run, status == BERLU_ERR_NUMERIC ? RUN_FAILED : RUN_STOPPED, step);
    return berlu_fail(status, "%s", message);
}

berlu_status trainer_run(trainer *t, train_result *out)
{
    berlu_status status = BERLU_OK;
    int over = t->state.epoch >= (uint64_t)t->settings.epochs || (t->state.updates >= t->updates && !t->state.batches);
    status = run_mark(&t->run, RUN_RUNNING, t->run.lock.record.step);
    if (status == BERLU_OK && over)
        status = row_recall(t);
    while (status == BERLU_OK && !over) {
        status = epoch_train(t);
        if (status == BERLU_OK)
            status = epoch_end(t);
        berlu_status recorded = steps_write(t);
        status = status == BERLU_OK ? recorded : status;
        over = t->state.epoch >= (uint64_t)t->settings.epochs || t->state.updates >= t->updates;
    }
    berlu_status last = status == BERLU_OK ? trainer_save_finish(t) : BERLU_OK;
    if (out)
        result_fill(t, out);
    return end_mark(t, status == BERLU_OK ? last : status);
}
