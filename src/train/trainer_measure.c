/* trainer_measure.c - estimates a run's time from a few updates and its memory from plans.
 * SPDX-License-Identifier: MIT
 *
 * trainer_measure() serves --dry-run: it trains for about a second and leaves the trainer's weights
 * useless. memory_check() compares what a run needs of the host's memory with what is free,
 * memory_advice() extends the message of this failure, or of a failed allocation, by both and the
 * largest batch that fits; a plan allocates nothing, so any batch can be tried. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/file.h"
#include "train/trainer_internal.h"

/* Seconds of one forward of the evaluation network. Its time is that of a full batch however many
 * images there are, so a small set is read again. The first forward is a warm-up and not counted,
 * unless it alone exceeds the budget. */
static berlu_status pass_time(trainer *t, double budget, double *out)
{
    const loader_batch *b = NULL;
    uint64_t passes = 0, first = 0;
    double began = clock_seconds(), spent = 0;
    *out = 0;
    if (loader_images(t->test) == 0)
        return BERLU_OK;
    TRY(loader_start(t->test, 0, 0));
    while (spent < budget || passes == first) {
        TRY(loader_next(t->test, &b));
        if (!b) {
            TRY(loader_start(t->test, 0, 0));
            continue;
        }
        network_feed(t->eval, b);
        TRY(engine_forward(t->eval, &(engine_step){0}));
        if (!engine_logits(t->eval)) /* waits for the device */
            return BERLU_ERR_DEVICE;
        passes++;
        spent = clock_seconds() - began;
        if (passes == 1 && spent < budget)
            first = 1, began = clock_seconds(), spent = 0;
    }
    *out = spent / (double)(passes - first);
    return BERLU_OK;
}

static double passes_of(const loader *l, int batch)
{
    return ceil((double)loader_images(l) / batch);
}

berlu_status trainer_measure(trainer *t, double seconds, train_estimate *out)
{
    double update = 0, pass = 0, images = (double)(t->settings.batch * t->settings.accumulate);
    *out = (train_estimate){.updates = t->updates, .planned_bytes = report_planned_bytes(t)};
    TRY(pass_time(t, seconds / 4, &pass));
    double evaluation = pass * (passes_of(t->test, t->eval_batch) + passes_of(t->probe, t->eval_batch));
    /* A backward costs about two forwards: a sufficient estimate where one update exceeds the time
     * given. */
    update = 3 * images * pass / t->eval_batch;
    if (update < 3 * seconds)
        TRY(updates_time(t, seconds, &update));
    uint64_t epochs = (t->updates + t->epoch_updates - 1) / t->epoch_updates, every = (uint64_t)t->settings.eval_every;
    out->images_per_s = images / update;
    out->seconds = update * (double)t->updates + evaluation * (double)((epochs + every - 1) / every);
    return BERLU_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Bytes that this process can still allocate, by the machine's free memory and its own limit. */
static double bytes_available(void)
{
    double available = memory_free(), pages = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "r");
    int known = file && fscanf(file, "%lf", &pages) == 1;
    if (file)
        fclose(file);
    if (known && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        double left = (double)limit.rlim_cur - pages * 4096;
        available = left < available ? left : available;
    }
    return available > 0 ? available : 0;
}

static double bytes_needed(const trainer *t, const engine_options *train, const engine_options *eval)
{
    engine_memory a, b;
    if (engine_plan_memory(&a, t->model->graph, train) != BERLU_OK ||
        engine_plan_memory(&b, t->model->graph, eval) != BERLU_OK)
        return 0;
    double side = t->model->config.image_size, pixels = 3 * side * side * sizeof(float);
    double loaders = 4 * pixels * (train->batch + 2.0 * eval->batch); /* each prefetches four batches */
    return (double)(a.total + a.library + b.total + b.library) - (double)b.parameters + loaders;
}

/* The system grants more memory than it has, and later kills who uses it. */
berlu_status memory_check(const trainer *t, const engine_options *train, const engine_options *eval, double free)
{
    if (!train->backend->host_memory || free <= 0 || bytes_needed(t, train, eval) <= free)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_MEMORY, "this machine has too little memory for the run");
}

/* Halves the larger of the two batches until both plans fit. */
void memory_advice(const trainer *t, const engine_options *train, const engine_options *eval)
{
    char reason[512];
    snprintf(reason, sizeof reason, "%s", berlu_last_error());
    if (!train->backend->host_memory) { /* the reason has the figures: engine/memory_fit.c */
        berlu_fail(BERLU_ERR_MEMORY, "%s (--batch; for evaluations --eval-batch)", reason);
        return;
    }
    engine_options a = *train, b = *eval;
    b.share = NULL;
    double needed = bytes_needed(t, &a, &b), there = bytes_available(), fits = needed;
    while (fits > 0.9 * there && (a.batch > 1 || b.batch > 1)) {
        if (b.batch > a.batch || a.batch == 1)
            b.batch /= 2;
        else
            a.batch /= 2;
        fits = bytes_needed(t, &a, &b);
    }
    if (needed <= 0 || fits > 0.9 * there) {
        berlu_fail(BERLU_ERR_MEMORY, "%s; the run takes %.2f GiB: a smaller --batch or --eval-batch takes less", reason,
                   needed / 0x1p30);
        return;
    }
    text words = {0};
    text_add(&words, "%s; the run takes %.2f GiB and %.2f GiB are free:", reason, needed / 0x1p30, there / 0x1p30);
    if (a.batch < train->batch)
        text_add(&words, " --batch %d", a.batch);
    if (b.batch < eval->batch)
        text_add(&words, "%s --eval-batch %d", a.batch < train->batch ? " and" : "", b.batch);
    if (a.batch < train->batch)
        text_add(&words, " fits (--accumulate %lld keeps the size of an update)",
                 (long long)(t->settings.accumulate * ((train->batch + a.batch - 1) / a.batch)));
    else
        text_string(&words, b.batch < eval->batch ? " fits" : " other programs may need it meanwhile");
    berlu_fail(BERLU_ERR_MEMORY, "%s", words.data ? words.data : reason);
    text_free(&words);
}
