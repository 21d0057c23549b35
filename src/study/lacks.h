/* lacks.h - what this machine lacks for a study: data, a device, memory.
 * SPDX-License-Identifier: MIT
 *
 * The file may be right and the machine too small. `study run` refuses before anything runs, with
 * the place in the file for each cell that cannot run here; `--dry-run` prints the same as
 * notes. */
#ifndef STUDY_LACKS_H
#define STUDY_LACKS_H

#include "study/study_file.h"

/* Adds a line "FILE:LINE:COLUMN: ..." for each problem. `data`: also open the data and check what
 * training would refuse once it knows it, which may take a second for each set. */
berlu_status study_lacks(const study *s, const char *file, int data, text *problems);

#endif
