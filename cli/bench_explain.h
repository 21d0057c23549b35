/* bench_explain.h - `berlu bench act --explain`: which kind of stores the activations take on this
 * machine, and why. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_EXPLAIN_H
#define CLI_BENCH_EXPLAIN_H

#include "bench/bench_act.h"

/* Prints the caches of the machine and the rule of non-temporal stores that follows from them. */
berlu_status bench_explain(const char *spec, int threads);

/* Prints the choice of a row after its run on the CPU. */
void bench_explain_row(const bench_row *r);

#endif
