/* guarded.h - a backend that proves the engine never touches device memory.
 * SPDX-License-Identifier: MIT
 *
 * It computes with the CPU's kernels, but its memory is protected (no access at all) except while
 * one of its own functions runs, results of steps arrive three steps late, and any chosen call of
 * it can be made to fail. Tests of the engine are compiled a second time with cpu_backend()
 * replaced by guarded_backend(): they pass with the CPU's bits, or end in SIGSEGV where host code
 * reads what lies on a device. */
#ifndef TESTS_GRAPH_GUARDED_H
#define TESTS_GRAPH_GUARDED_H

#include "engine/backend.h"

const backend *guarded_backend(void);     /* over cpu_backend() */
const backend *guarded_f64_backend(void); /* over cpu_f64_backend() */
const backend *guarded_backend_at(int index);

/* The n-th call from now on of upload, download, copy, prepare, run or push fails with
 * BERLU_ERR_DEVICE; 0: none does. */
void guarded_fail_at(int n);
int guarded_calls(void); /* since guarded_fail_at() */

#endif
