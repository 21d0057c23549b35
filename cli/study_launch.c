/* study_launch.c - see study_launch.h. SPDX-License-Identifier: MIT */
#include "study_launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "study/process.h"

enum { TASKS = 1000 }; /* Slurm's own limit is 1001 unless its administrator raised it */

/* A word for the shell, in single quotes. */
static void quoted_add(text *out, const char *word)
{
    text_string(out, "'");
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            text_string(out, "'\\''");
        else
            text_bytes(out, c, 1);
    }
    text_string(out, "'");
}

static void list_add(text *out, const study_opened *x, const options *o, const char *program, size_t tasks)
{
    char file[STUDY_PATH + 32];
    snprintf(file, sizeof file, "%s/slurm/study.yaml", x->folder);
    quoted_add(out, program);
    text_string(out, " study list ");
    quoted_add(out, file);
    text_string(out, " --dir ");
    quoted_add(out, x->folder);
    for (size_t i = 0; i < options_count(o, "set"); i++) {
        text_string(out, " --set ");
        quoted_add(out, options_strings(o, "set")[i]);
    }
    for (size_t i = 0; i < options_count(o, "known"); i++) {
        text_string(out, " --known ");
        quoted_add(out, options_strings(o, "known")[i]);
    }
    if (options_threads(o))
        text_add(out, " --threads %d", options_threads(o));
    text_add(out, " --commands --part \"$SLURM_ARRAY_TASK_ID/%zu\"", tasks);
}

/* The script of an array of K tasks. */
static berlu_status script_make(text *out, const study_opened *x, const options *o, const char *program, size_t tasks)
{
    const char *words = options_string(o, "sbatch");
    text_string(out, "#!/bin/bash\n");
    text_add(out, "#SBATCH --job-name=%s --requeue --open-mode=append --signal=TERM@120\n", x->s.name);
    text_add(out, "#SBATCH --output=%s/slurm/task-%%a.txt\n", x->folder);
    if (words)
        text_add(out, "#SBATCH %s\n", words);
    text_string(out, "# A task of a study: its runs one by one; the runs' folders say which are done.\n"
                     "line=1 tries=0 last=\n"
                     "while :; do\n    command=$(");
    list_add(out, x, o, program, tasks);
    text_string(out, " | sed -n \"${line}p\")\n"
                     "    [ -n \"$command\" ] || exit 0\n"
                     "    if [ \"$command\" = \"$last\" ]; then\n"
                     "        tries=$((tries + 1)) # without an end, and nobody said why\n"
                     "        if [ $tries -gt 2 ]; then line=$((line + 1)) tries=0; continue; fi\n"
                     "    else\n"
                     "        tries=0 last=$command\n"
                     "    fi\n"
                     "    echo \"== task $SLURM_ARRAY_TASK_ID, restart ${SLURM_RESTART_COUNT:-0}: $command\"\n"
                     "    eval \"srun $command --quiet\"\n"
                     "    code=$?\n"
                     "    if [ $code = 3 ] || [ $code = 4 ]; then\n"
                     "        scontrol requeue \"$SLURM_JOB_ID\"\n"
                     "        exit $code\n"
                     "    fi\n"
                     "done\n");
    return text_status(out);
}

/* Runs a program of Slurm's and returns the first line that it wrote. */
static berlu_status slurm_ask(text *out, const char *shell)
{
    text messages = {0};
    char *const words[] = {"/bin/sh", "-c", (char *)shell, NULL};
    berlu_status status = study_process_run(words, -1, NULL, out, &messages);
    if (status == BERLU_OK && out->data)
        out->data[strcspn(out->data, "\n")] = 0;
    text_free(&messages);
    return status == BERLU_OK ? BERLU_OK : berlu_fail_in(BERLU_ERR_INPUT, "Slurm");
}

/* Whether the job that was submitted before still is in the queue; it is printed then. */
static int is_queued(const char *record)
{
    char *job = NULL, ask[256];
    size_t count;
    text answer = {0};
    if (!file_exists(record) || file_read_all(&job, &count, record, 64) != BERLU_OK)
        return 0;
    job[strspn(job, "0123456789")] = 0;
    snprintf(ask, sizeof ask, "squeue -h -j %s 2>/dev/null || true", job);
    int queued = *job && slurm_ask(&answer, ask) == BERLU_OK && answer.data && *answer.data;
    if (queued)
        fprintf(stderr, "job %s is still in the queue; nothing is submitted\n", job);
    text_free(&answer);
    free(job);
    return queued;
}

static berlu_status job_submit(const char *script, const char *record, size_t tasks)
{
    text submit = {0}, answer = {0};
    text_add(&submit, "sbatch --parsable --array=0-%zu ", tasks - 1);
    quoted_add(&submit, script);
    berlu_status status;
    TRY_DONE(text_status(&submit));
    TRY_DONE(slurm_ask(&answer, submit.data));
    if (!answer.data || !strspn(answer.data, "0123456789"))
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "sbatch did not answer with the number of a job"));
    answer.data[strspn(answer.data, "0123456789")] = 0;
    fprintf(stderr, "job %s: %zu tasks\n", answer.data, tasks);
    status = file_write_atomic(record, answer.data, strlen(answer.data));
done:
    text_free(&submit);
    text_free(&answer);
    return status;
}

static size_t runs_left(const study_entries *r)
{
    size_t left = 0;
    for (size_t i = 0; i < r->count; i++)
        left += r->items[i].same_as == i && r->items[i].state != STUDY_DONE && r->items[i].state != STUDY_FAILED;
    return left;
}

berlu_status study_launch_slurm(const study_opened *x, const options *o)
{
    char program[STUDY_PATH], path[STUDY_PATH + 32], record[STUDY_PATH + 32];
    text script = {0};
    size_t left = runs_left(&x->runs), tasks = options_given(o, "jobs") ? (size_t)options_int(o, "jobs") : left;
    tasks = tasks < left ? tasks : left;
    tasks = tasks < TASKS ? tasks : TASKS;
    snprintf(record, sizeof record, "%s/slurm/job", x->folder);
    if (!left || is_queued(record))
        return BERLU_OK;
    snprintf(path, sizeof path, "%s/slurm", x->folder);
    TRY(folder_make(path));
    TRY(program_path(program));
    snprintf(path, sizeof path, "%s/slurm/study.yaml", x->folder);
    TRY(file_write_atomic(path, x->yaml, strlen(x->yaml)));
    snprintf(path, sizeof path, "%s/slurm/job.sh", x->folder);
    berlu_status status;
    TRY_DONE(script_make(&script, x, o, program, tasks));
    TRY_DONE(file_write_atomic(path, script.data, script.length));
    status = job_submit(path, record, tasks);
done:
    text_free(&script);
    return status;
}
