/* trainer_update.c - one update: its batches, forward, backward, the optimizer's step, results.
 * SPDX-License-Identifier: MIT
 *
 * update_run() is the inner loop of training. On the CPU it runs the engine's phases one by one;
 * a device that runs on its own gets all three as one list, and results come back some steps
 * later. They are added up in the order of their steps, so no sum depends on when they arrive. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "train/trainer_internal.h"

/* Borrows the batch: the engine reads images or draws where the loader wrote them, valid until the
 * next loader_next(). */
static berlu_status batch_borrow(trainer *t, const loader_batch *b)
{
    assert(b->rows == (size_t)t->settings.batch);
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
    TRY(teacher_logits(&t->teacher, b, &logits));
    memcpy(engine_teacher(t->train), logits, b->rows * (size_t)t->classes * sizeof *logits);
    t->times.teacher += clock_seconds() - began;
    return BERLU_OK;
}

/* Feeds the next batch to the engine; with overfit_batch the first one stays for the whole run. */
static berlu_status batch_next(trainer *t)
{
    const loader_batch *b = NULL;
    double waited = loader_waited(t->batches);
    if (t->settings.overfit_batch && t->times.images > 0)
        return BERLU_OK;
    TRY(loader_next(t->batches, &b));
    if (!b)
        return berlu_fail(BERLU_ERR_INPUT, "%s: the epoch ended after %llu of %llu batches", t->settings.data,
                          (unsigned long long)t->state.batches, (unsigned long long)t->epoch_batches);
    t->times.data += loader_waited(t->batches) - waited;
    return batch_borrow(t, b);
}

/* Whether this is the run's first update, whose diagnosis describes the initial weights
 * (start.csv). A trainer that only measures (--dry-run) has no folder to write it to. */
static int at_initial_weights(const trainer *t)
{
    return t->state.updates == 0 && t->run.folder.fd >= 0;
}

static berlu_status diagnose_forward(trainer *t)
{
    double began = clock_seconds();
    TRY(diagnosis_forward(t->diagnosis, t->train, t->state.site_metrics, t->tb, clock_wall_seconds(),
                          (int64_t)t->state.updates + 1));
    t->times.diagnose += clock_seconds() - began;
    return BERLU_OK;
}

static berlu_status diagnose_backward(trainer *t, int diagnose)
{
    double began = clock_seconds();
    if (diagnose)
        TRY(diagnosis_backward(t->diagnosis, t->train, t->state.site_metrics));
    if (at_initial_weights(t))
        TRY(report_initial_backward(t));
    t->times.diagnose += clock_seconds() - began;
    return BERLU_OK;
}

/* Adds the result of one batch to the epoch's sums. The device itself stops updating at the first
 * value that is not finite (step_result.fault); here the run ends. */
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

/* Adds up the results that have arrived, and waits for more until at most `leave` are
 * outstanding. */
static berlu_status results_collect(trainer *t, int leave)
{
    while (t->outstanding) {
        step_result r;
        int arrived;
        TRY(engine_poll(t->train, &r, &arrived, t->outstanding > leave));
        if (!arrived)
            return BERLU_OK;
        int ends_update = t->ends_update[0];
        memmove(t->ends_update, t->ends_update + 1, (size_t)--t->outstanding);
        TRY(result_add(t, &r, ends_update));
    }
    return BERLU_OK;
}

berlu_status trainer_results(trainer *t)
{
    return results_collect(t, 0);
}

/* Ends a step on the device; its result is outstanding from now on. */
static berlu_status step_end(trainer *t, int ends_update)
{
    TRY(results_collect(t, RESULTS_OUTSTANDING - 1));
    assert(t->outstanding < RESULTS_OUTSTANDING);
    t->ends_update[t->outstanding++] = (char)ends_update;
    TRY(engine_step_end(t->train));
    return results_collect(t, RESULTS_OUTSTANDING);
}

/* Forward and backward of one batch; with `diagnose` the sites are measured in between. */
static berlu_status batch_run(trainer *t, int diagnose, int ends_update)
{
    double began = clock_seconds();
    TRY(engine_forward(t->train, &t->step));
    t->times.forward += clock_seconds() - began;
    if (diagnose)
        TRY(diagnose_forward(t));
    if (ends_update && at_initial_weights(t))
        TRY(report_initial_forward(t));
    t->state.images += (uint64_t)t->settings.batch;
    t->times.images += (uint64_t)t->settings.batch;
    began = clock_seconds();
    TRY(engine_backward(t->train));
    t->times.backward += clock_seconds() - began;
    return ends_update ? BERLU_OK : step_end(t, 0);
}

/* Forward, backward and update of one batch as one list of calls. */
static berlu_status update_as_one_list(trainer *t)
{
    t->step.micro_batch = 0;
    TRY(batch_next(t));
    double began = clock_seconds();
    TRY(engine_step_run(t->train, &t->step));
    t->state.images += (uint64_t)t->settings.batch;
    t->times.images += (uint64_t)t->settings.batch;
    TRY(step_end(t, 1));
    t->times.update += clock_seconds() - began;
    return BERLU_OK;
}

/* An update: forward and backward of each micro-batch, then the optimizer. The last update of an
 * epoch may have fewer micro-batches and divides by their number. A device that runs on its own
 * gets the update as one list, unless a diagnosis reads between its phases. */
berlu_status update_run(trainer *t)
{
    assert(t->state.batches < t->epoch_batches && t->state.updates < t->updates);
    uint64_t left = t->epoch_batches - t->state.batches, micro_batches = (uint64_t)t->settings.accumulate;
    micro_batches = left < micro_batches ? left : micro_batches;
    int diagnose = left == micro_batches || t->state.updates + 1 == t->updates;
    t->lr = t->step.lr = schedule_rate(&t->schedule, t->state.updates);
    t->step.step = (uint32_t)t->state.updates;
    t->step.count = (uint32_t)t->state.updates + 1;
    t->step.loss_scale = 1 / (double)micro_batches;
    t->step.micro_batches = (uint32_t)micro_batches;
    if (micro_batches == 1 && !diagnose && !at_initial_weights(t) && engine_backend(t->train)->asynchronous)
        TRY(update_as_one_list(t));
    else {
        for (uint64_t m = 0; m < micro_batches; m++) {
            int last = m + 1 == micro_batches;
            t->step.micro_batch = (uint32_t)m;
            TRY(batch_next(t));
            TRY(batch_run(t, diagnose && last, last));
        }
        TRY(diagnose_backward(t, diagnose));
        double began = clock_seconds();
        TRY(engine_update(t->train));
        TRY(step_end(t, 1));
        t->times.update += clock_seconds() - began;
    }
    t->state.updates++;
    t->state.batches += micro_batches;
    return BERLU_OK;
}
