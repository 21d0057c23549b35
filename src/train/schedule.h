/* schedule.h - the learning rate of every update. SPDX-License-Identifier: MIT
 *
 * A schedule is a pure function of the update's number, so a resume needs no state of it. The
 * families differ in details that change results; each is the exact rule of its source, in double:
 *
 *   cosine-step  linear warm-up, then half a cosine, per update; the warm-up counts among the
 *                epochs (preset `paper`)
 *   timm-update  timm's CosineLRScheduler per update: the cosine runs from the start, the warm-up
 *                only covers its head
 *   timm-epoch   the same per epoch
 *   deit         timm-epoch as DeiT's script calls it: one epoch late, so the first rate is used
 *                for two epochs
 *   convnext     per update; the warm-up is a linspace whose last point is the peak, so the peak
 *                comes twice
 *   linear       warm-up, then a straight line down
 *   step         warm-up, then the rate is multiplied by `step_factor` after every `step_every`
 *                epochs
 *   constant     warm-up, then the peak */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include <stdint.h>

#include "base/status.h"

typedef enum schedule_kind {
    SCHEDULE_COSINE_STEP,
    SCHEDULE_TIMM_EPOCH,
    SCHEDULE_TIMM_UPDATE,
    SCHEDULE_CONVNEXT,
    SCHEDULE_DEIT,
    SCHEDULE_LINEAR,
    SCHEDULE_STEP,
    SCHEDULE_CONSTANT,
    SCHEDULE_COUNT
} schedule_kind;

/* Their names in that order, NULL at the end. */
extern const char *const schedule_names[SCHEDULE_COUNT + 1];

typedef struct schedule {
    schedule_kind kind;
    double peak, start, floor; /* the rate after warm-up, at update 0, and at the end */
    double epochs, warmup;     /* in epochs; fractions are allowed */
    uint64_t updates;          /* per epoch */
    double step_every;         /* `step`: epochs between two falls */
    double step_factor;
} schedule;

/* Refuses meaningless schedules: no updates, negative rates, a warm-up as long as the run. */
berlu_status schedule_check(const schedule *s);

/* The rate of update number `update`, counted from 0. */
double schedule_rate(const schedule *s, uint64_t update);

#endif
