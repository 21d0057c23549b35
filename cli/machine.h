/* machine.h - the instruction set and the threads a command computes with.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include "options.h"

/* Takes --isa and --threads of any command, before it computes or writes anything. */
berlu_status machine_prepare(const options *o);

/* Sets the number of threads (0: as many as cores). More than threads_most() is reported and
 * limited to that; threads that the system refuses are an error here, since OpenMP would end the
 * process later. */
berlu_status machine_threads(int asked);

/* From now on an exit() outside of main() is explained in a line on stderr; NULL: main() is about
 * to return. */
void machine_guard(const char *command);

#endif
