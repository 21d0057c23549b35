/* study_launch.h - hands the runs of a study to Slurm. SPDX-License-Identifier: MIT
 *
 * One array of K tasks; task i takes runs i, i + K, i + 2K, ... of the study's list, one after the
 * other. A task never opens the index: it asks `study list --commands --part i/K` what is not done
 * yet, which reads the runs' lock files, because exit codes of launchers cannot be believed (srun
 * has answered 0 for a task it never started). Each training is started by srun, so that Slurm
 * signals it 120 s before the limit; it saves and exits with 3, and the script puts its task back
 * into the queue, also on 4, while another process still holds the run. `study run`, `status` and
 * `report` collect the folders. */
#ifndef CLI_STUDY_LAUNCH_H
#define CLI_STUDY_LAUNCH_H

#include "study_open.h"

/* Writes DIR/slurm/job.sh and a copy of the study file, and calls sbatch; the number of the job
 * stays in DIR/slurm/job. While that job is in the queue nothing is submitted. Returns at once; how
 * far it is comes from the folders. */
berlu_status study_launch_slurm(const study_opened *x, const options *o);

#endif
