/* diagnose.h - metrics of the activation sites for metrics.csv, and TensorBoard's histograms.
 * SPDX-License-Identifier: MIT
 *
 * Once per epoch, at its last update, the pre-activations of every site are measured where the
 * training step holds them: the first rows that make up DIAGNOSE_VALUES values, at least
 * DIAGNOSE_ROWS, so the cost does not grow with the batch and no unit is assessed from a few
 * inputs. A unit is dead if the derivative of its activation is below 1/1000 in magnitude at every
 * one of these inputs: no gradient passes it. The transition is |x| <= eps; for an activation
 * without eps it is the point zero. */
#ifndef TRAIN_DIAGNOSE_H
#define TRAIN_DIAGNOSE_H

#include "engine/engine.h"
#include "io/tensorboard.h"
#include "train/metrics.h"

enum { DIAGNOSE_VALUES = 1 << 16, DIAGNOSE_ROWS = 256 };

typedef struct diagnosis diagnosis;
berlu_status diagnosis_create(diagnosis **out, const graph *g, int threads); /* threads 0: all */
void diagnosis_free(diagnosis *d);                                           /* NULL is allowed */

size_t diagnosis_sites(const diagnosis *d);
const char *const *diagnosis_names(const diagnosis *d);

/* Between forward and backward of a training step: all metrics but the gradient. `tb` may be
 * NULL. */
berlu_status diagnosis_forward(diagnosis *d, engine *e, double *site_metrics, tb_writer *tb, double wall, int64_t step);
/* Between backward and update: the gradient's norm per site. */
berlu_status diagnosis_backward(diagnosis *d, engine *e, double *site_metrics);
/* After updates: the current parameters and their Lipschitz constant. */
berlu_status diagnosis_parameters(diagnosis *d, engine *e, double *site_metrics);

#endif
