/* schedule.c - see schedule.h for what the families mean. SPDX-License-Identifier: MIT
 *
 * Every rule is written over t, the time in its own unit (updates or epochs), with total T and
 * warm-up W in that unit. The expressions have the order of operations of their sources, so that
 * they agree with them to the last bit or two; do not simplify them algebraically. */
#include "train/schedule.h"

#include <assert.h>
#include <math.h>

const char *const schedule_names[SCHEDULE_COUNT + 1] = {
    [SCHEDULE_COSINE_STEP] = "cosine-step",
    [SCHEDULE_TIMM_EPOCH] = "timm-epoch",
    [SCHEDULE_TIMM_UPDATE] = "timm-update",
    [SCHEDULE_CONVNEXT] = "convnext",
    [SCHEDULE_DEIT] = "deit",
    [SCHEDULE_LINEAR] = "linear",
    [SCHEDULE_STEP] = "step",
    [SCHEDULE_CONSTANT] = "constant",
};

berlu_status schedule_check(const schedule *s)
{
    if (s->updates == 0)
        return berlu_fail(BERLU_ERR_ARG, "schedule: an epoch has no updates; use a smaller batch");
    if (!(s->peak >= 0 && s->start >= 0 && s->floor >= 0) || !isfinite(s->peak + s->start + s->floor))
        return berlu_fail(BERLU_ERR_ARG,
                          "schedule: rates must be finite and not negative (lr %g, warmup_lr %g, min_lr %g)", s->peak,
                          s->start, s->floor);
    if (!(s->warmup >= 0) || !(s->epochs > 0))
        return berlu_fail(BERLU_ERR_ARG, "schedule: %g epochs with a warm-up of %g", s->epochs, s->warmup);
    if (s->warmup > 0 && s->warmup >= s->epochs)
        return berlu_fail(BERLU_ERR_ARG, "schedule: a warm-up of %g epochs leaves nothing of %g; make it shorter",
                          s->warmup, s->epochs);
    if (s->kind == SCHEDULE_STEP && !(s->step_every > 0 && s->step_factor > 0))
        return berlu_fail(BERLU_ERR_ARG, "schedule: step needs step_every > 0 and step_factor > 0");
    return BERLU_OK;
}

static double half_cosine(double from, double to, double share)
{
    return to + 0.5 * (from - to) * (1 + cos(M_PI * share));
}

static double warm(const schedule *s, double t, double W)
{
    return s->start + t * (s->peak - s->start) / W;
}

/* timm without warmup_prefix: at t = W the cosine is already below the peak. */
static double timm_rate(const schedule *s, double t, double T, double W)
{
    if (t < W)
        return warm(s, t, W);
    return t < T ? half_cosine(s->peak, s->floor, t / T) : s->floor;
}

/* linspace(start, peak, W) includes both ends, so W = 1 gives the start alone. */
static double convnext_rate(const schedule *s, double t, double T, double W)
{
    if (t < W)
        return W > 1 ? s->start + t * (s->peak - s->start) / (W - 1) : s->start;
    return half_cosine(s->peak, s->floor, (t - W) / (T - W));
}

double schedule_rate(const schedule *s, uint64_t update)
{
    assert(s->updates > 0 && (unsigned)s->kind < SCHEDULE_COUNT);
    double n = (double)s->updates, t = (double)update, epoch = floor(t / n);
    double T = floor(s->epochs * n), W = floor(s->warmup * n);
    switch (s->kind) {
    case SCHEDULE_TIMM_EPOCH:
        return timm_rate(s, epoch, s->epochs, s->warmup);
    case SCHEDULE_DEIT:
        return timm_rate(s, epoch > 0 ? epoch - 1 : 0, s->epochs, s->warmup);
    case SCHEDULE_TIMM_UPDATE:
        return timm_rate(s, t, T, W);
    case SCHEDULE_CONVNEXT:
        return convnext_rate(s, t, T, W);
    default:
        break;
    }
    if (t < W)
        return warm(s, t, W);
    double share = t < T ? (t - W) / (T - W) : 1; /* of what follows the warm-up */
    if (s->kind == SCHEDULE_COSINE_STEP)
        return half_cosine(s->peak, s->floor, share);
    if (s->kind == SCHEDULE_LINEAR)
        return s->peak + (s->floor - s->peak) * share;
    if (s->kind == SCHEDULE_STEP)
        return fmax(s->floor, s->peak * pow(s->step_factor, floor(epoch / s->step_every)));
    return s->peak;
}
