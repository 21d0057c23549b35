/* curves.h - the curves of a run as a plot. SPDX-License-Identifier: MIT */
#ifndef TRAIN_CURVES_H
#define TRAIN_CURVES_H

#include "base/status.h"

/* Loss and accuracy by epoch, training beside test, from a run's metrics.csv. */
berlu_status curves_save(const char *svg, const char *run);

#endif
