/* cpu.h - the backends of the CPU. SPDX-License-Identifier: MIT
 *
 * cpu_backend() is the fast one: f32, vectorised, OpenMP. cpu_f64_backend() is the reference:
 * simple loops in double over the same graph, one thread, never timed. Both give the same bits at
 * any number of threads and from run to run. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include "engine/backend.h"

const backend *cpu_backend(void);
const backend *cpu_f64_backend(void);
const backend *cpu_backend_at(int index); /* the fast one per instruction set built, best first; NULL after the last */
const backend *cpu_ref_backend(void);     /* the reference kernels in f32, with which the vector kernels are compared */
const char *cpu_blas_name(void);          /* "oneDNN 2.6.3" or "OpenBLAS 0.3.21": for people and run.json */

#endif
