/* cmd_study_run.c - `berlu study run`: runs what a study still lacks. SPDX-License-Identifier: MIT
 * */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "signals.h"
#include "study/cost.h"
#include "study/lacks.h"
#include "study/scheduler.h"
#include "study_launch.h"
#include "study_open.h"
#include "study_plan.h"
#include "study_screen.h"

static const option_row run_rows[] = {
    STUDY_ROWS,
    {"jobs", OPTION_INT, "N", .least = 1, .most = STUDY_JOBS,
     .help = "runs at a time (default: the cores, a thread each, for networks under 2 million parameters; else 1)"},
    {"devices", OPTION_INTS, "LIST", .least = 0, .most = 1023, .help = "GPUs to use: 0,1"},
    {"per-device", OPTION_INT, "N", .standard = "1", .least = 1, .most = 16, .help = "runs at a time on each of them"},
    {"for", OPTION_STRING, "TIME", .help = "stop, saved, after so long: 90s, 25m, 8h"},
    {"only", OPTION_STRING, "TEXT", .help = "cells whose label holds this"},
    KNOWN_ROW,
    {"retries", OPTION_INT, "N", .standard = "2", .least = 0, .most = 100,
     .help = "how often an interrupted run is resumed without progress"},
    {"launcher", OPTION_CHOICE, .standard = "here", .choices = "here|slurm",
     .help = "who starts the runs: this process, or one array job of Slurm"},
    {"sbatch", OPTION_STRING, "OPTIONS", .flags = OPTION_DASHES | OPTION_EMPTY,
     .help = "slurm: options for sbatch, such as \"--time=60 --gres=gpu:1\""},
    {"slim", OPTION_FLAG, .help = "delete the checkpoints of finished runs"},
    {"dry-run", OPTION_FLAG, .help = "list cells, seeds, memory and expected time; run nothing"},
    {"quiet", OPTION_FLAG, .help = "no progress"},
    {0}};

static berlu_status time_parse(double *out, const char *word)
{
    char *end = NULL;
    *out = word ? strtod(word, &end) : 0;
    if (!word)
        return BERLU_OK;
    double unit = strcmp(end, "s") == 0 || !*end ? 1 : strcmp(end, "m") == 0 ? 60 : strcmp(end, "h") == 0 ? 3600 : 0;
    *out *= unit;
    return end != word && *out > 0
               ? BERLU_OK
               : berlu_fail(BERLU_ERR_ARG, "--for %s: a time is expected, such as 90s, 25m or 8h", word);
}

static berlu_status devices_take(int out[STUDY_JOBS], int *count, const options *o)
{
    size_t given = options_count(o, "devices"), each = (size_t)options_int(o, "per-device");
    if (given * each > STUDY_JOBS)
        return berlu_fail(BERLU_ERR_ARG, "--devices: at most %d runs at a time", STUDY_JOBS);
    for (size_t i = 0; i < given * each; i++)
        out[i] = (int)options_ints(o, "devices")[i % given];
    *count = (int)(given * each);
    return BERLU_OK;
}

/* What is wrong with these options is told before the study's folder is made. */
static berlu_status words_check(const options *o)
{
    double seconds;
    int devices[STUDY_JOBS], count;
    const char *words = options_string(o, "sbatch");
    if (words && strchr(words, '\n'))
        return berlu_fail(BERLU_ERR_ARG, "--sbatch: options in one line are expected");
    TRY(time_parse(&seconds, options_string(o, "for")));
    return devices_take(devices, &count, o);
}

/* Without NVIDIA's MPS the processes on a GPU take turns, with it they run side by side
 * (docs/performance.md, 9). Its daemon is looked for where CUDA's programs look. */
static void sharing_note(const options *o)
{
    if (options_count(o, "devices") == 0 || options_int(o, "per-device") < 2 || options_flag(o, "quiet"))
        return;
    if (!getenv("CUDA_MPS_PIPE_DIRECTORY") && access("/tmp/nvidia-mps", F_OK) != 0)
        fputs("note: runs that share a GPU take turns, which costs a tenth; NVIDIA's MPS lets them run side by side: "
              "nvidia-cuda-mps-control -d\n",
              stderr);
}

/* --devices divides GPUs among runs; what a run trains on is its setting. */
static void devices_note(const study *s, const options *o)
{
    int wanted = options_count(o, "devices") == 0 || options_flag(o, "quiet");
    for (size_t i = 0; i < s->cell_count && !wanted; i++) {
        const char *device = study_setting_of(&s->cells[i], "device");
        wanted = device && strcmp(device, "cuda") == 0;
    }
    if (!wanted)
        fputs(
            "note: no cell of this study has device: cuda, so its runs train on the CPU; --set device=cuda sends them "
            "to the GPUs of --devices\n",
            stderr);
}

/* Indexes finished runs and submits the rest to Slurm. */
static berlu_status launcher_start(const study_opened *x, const options *o, store *index)
{
    TRY(store_put_study(index, &x->s, x->yaml, &x->runs));
    for (size_t i = 0; i < x->runs.count; i++) {
        const study_entry *r = &x->runs.items[i];
        if (r->same_as == i && r->state != STUDY_WAITING && !r->known && !store_is_current(index, r))
            TRY(store_put_run(index, r, NULL));
    }
    return study_launch_slurm(x, o);
}

/* A second scheduler is refused with the host and process of the first, before it asks for the
 * index that the first one writes. */
static berlu_status scheduler_lock(run_lock *lock, folder_handle *folder)
{
    run_record holder;
    int held = 0;
    if (run_record_read(&holder, &held, folder->path) == BERLU_OK && held)
        return study_busy(folder->path, &holder);
    TRY(run_lock_take(lock, folder, 0, NULL));
    lock->record = (run_record){.state = RUN_RUNNING, .attempt = lock->record.attempt + 1};
    berlu_status status = run_lock_write(lock, folder);
    if (status != BERLU_OK)
        run_lock_drop(lock);
    return status;
}

static berlu_status scheduler_start(study_opened *x, const options *o, store *index, int *slots)
{
    char program[STUDY_PATH];
    int devices[STUDY_JOBS], device_count = 0;
    study_screen shown = {.terminal = isatty(STDERR_FILENO), .quiet = options_flag(o, "quiet")};
    study_schedule how = {.program = program,
                          .jobs = options_given(o, "jobs")      ? (int)options_int(o, "jobs")
                                  : options_count(o, "devices") ? 1
                                                                : study_jobs_default(x),
                          .retries = (int)options_int(o, "retries"),
                          .landscapes = 1,
                          .slim = options_flag(o, "slim"),
                          .only = options_string(o, "only"),
                          .yaml = x->yaml,
                          .folder = x->folder,
                          .stop = signals_stop(),
                          .tick = study_show,
                          .context = &shown};
    TRY(time_parse(&how.seconds, options_string(o, "for")));
    TRY(devices_take(devices, &device_count, o));
    TRY(program_path(program));
    if (device_count) {
        how.devices = devices;
        how.device_count = device_count;
        how.jobs = options_given(o, "jobs") ? how.jobs : device_count;
    }
    sharing_note(o);
    how.threads = study_threads(o, how.jobs);
    *slots = how.jobs;
    return study_schedule_run(&how, &x->s, &x->runs, index);
}

/* ---- studies of kind cost -------------------------------------------------------------------- */

static void cost_show(void *context, const char *cell, int64_t round, size_t done, size_t all)
{
    if (!*(const int *)context)
        fprintf(stderr, "%zu of %zu: round %lld, %s\n", done + 1, all, (long long)round + 1, cell);
}

static berlu_status cost_start(study_opened *x, const options *o, store *index)
{
    char program[STUDY_PATH];
    int quiet = options_flag(o, "quiet");
    study_cost how = {.program = program,
                      .threads = options_threads(o),
                      .device = options_count(o, "devices") ? (int)options_ints(o, "devices")[0] : -1,
                      .only = options_string(o, "only"),
                      .stop = signals_stop(),
                      .tick = cost_show,
                      .context = &quiet};
    TRY(time_parse(&how.seconds, options_string(o, "for")));
    TRY(program_path(program));
    TRY(store_check_cost(index, &x->s));
    TRY(store_put_study(index, &x->s, x->yaml, &(study_entries){0}));
    return study_cost_run(&how, &x->s, index);
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Refuses, before anything runs, what this machine cannot do: every such cell with its place in the
 * file. `found` is the status of study_runs_find(); it is returned where no cell is the cause. */
static berlu_status machine_check(const study_opened *x, const options *o, berlu_status found)
{
    text problems = {0};
    size_t left = 0;
    for (size_t i = 0; i < x->runs.count; i++)
        left += x->runs.items[i].state == STUDY_WAITING || x->runs.items[i].state == STUDY_CUT;
    if (found == BERLU_OK && (!left || options_choice(o, "launcher") == 1)) /* another machine runs them */
        return BERLU_OK;
    char message[1024];
    snprintf(message, sizeof message, "%s", found == BERLU_OK ? "" : berlu_last_error());
    berlu_status status = study_lacks(&x->s, options_string(o, "file"), found != BERLU_OK, &problems);
    if (status == BERLU_OK && problems.length)
        status = study_problems(options_string(o, "file"), &problems);
    else if (status == BERLU_OK && found != BERLU_OK)
        status = berlu_fail(found, "%s", message);
    text_free(&problems);
    return status;
}

/* Opens the study's folder and index, runs what is missing, closes them. */
static berlu_status missing_run(study_opened *x, const options *o, int *slots)
{
    text notes = {0};
    store *index = NULL;
    folder_handle folder = {.fd = -1};
    run_lock lock = {.fd = -1};
    int slurm = x->s.kind != STUDY_COST && options_choice(o, "launcher") == 1;
    TRY(folder_make(x->folder));
    TRY(folder_hold(&folder, x->folder));
    berlu_status status = slurm ? BERLU_OK : scheduler_lock(&lock, &folder);
    if (status == BERLU_OK)
        status = store_open(&index, x->folder, &notes);
    if (notes.data)
        fputs(notes.data, stderr);
    if (status == BERLU_OK)
        status = x->s.kind == STUDY_COST ? cost_start(x, o, index)
                 : slurm                 ? launcher_start(x, o, index)
                                         : scheduler_start(x, o, index, slots);
    berlu_status closed = store_close(index);
    run_lock_drop(&lock);
    folder_release(&folder);
    text_free(&notes);
    return status == BERLU_OK ? closed : status;
}

static berlu_status cost_study(study_opened *x, const options *o)
{
    double began = clock_seconds();
    if (options_flag(o, "dry-run") && !options_json(o))
        study_plan_print(x);
    if (options_flag(o, "dry-run"))
        return study_cost_answer(o, x, 0);
    berlu_status status = missing_run(x, o, NULL);
    if (status == BERLU_OK || status == BERLU_ERR_STOPPED)
        (void)study_cost_answer(o, x, clock_seconds() - began);
    return status;
}

/* Their process has ended with its message; the command repeats it. */
static void landscapes_note(const study_opened *x)
{
    const study_entry *first = NULL;
    size_t missing = 0;
    for (size_t i = 0; i < x->runs.count && study_names_claim(&x->s, STUDY_FLATNESS); i++) {
        const study_entry *r = &x->runs.items[i];
        if (r->state != STUDY_DONE || r->known || !r->weights || r->landscape || r->same_as != i)
            continue;
        first = first ? first : r;
        missing++;
    }
    if (first)
        fprintf(stderr, "note: %zu runs have no landscape yet; to see why: berlu analyze landscape %s --save\n",
                missing, first->path);
}

/* Runs without a result: those that failed, which is one of its own, and those given up. */
static berlu_status misses_tell(const study_entries *r)
{
    size_t counts[STUDY_STATES] = {0}, given_up = 0;
    study_counts(r, counts);
    for (size_t i = 0; i < r->count; i++)
        given_up += r->items[i].given_up;
    if (given_up)
        return berlu_fail(BERLU_ERR_NUMERIC,
                          "%zu of %zu runs have no result: %zu failed, %zu ended without progress and go on when "
                          "called again; berlu study report lists them with their messages",
                          counts[STUDY_FAILED] + given_up, r->count, counts[STUDY_FAILED], given_up);
    if (counts[STUDY_FAILED])
        return berlu_fail(BERLU_ERR_NUMERIC,
                          "%zu of %zu runs failed; berlu study report lists them with their messages",
                          counts[STUDY_FAILED], r->count);
    return BERLU_OK;
}

static berlu_status train_study(study_opened *x, const options *o)
{
    int slots = 0;
    double began = clock_seconds();
    devices_note(&x->s, o);
    if (options_flag(o, "dry-run"))
        return study_plan(o, x);
    TRY(machine_check(x, o, study_runs_find(x, o)));
    berlu_status status = missing_run(x, o, &slots);
    if (status == BERLU_OK || status == BERLU_ERR_STOPPED)
        (void)study_answer(o, x, clock_seconds() - began, slots);
    landscapes_note(x);
    status = status == BERLU_OK ? misses_tell(&x->runs) : status;
    return status;
}

static berlu_status only_check(const study *s, const char *only)
{
    for (size_t i = 0; i < s->cell_count; i++)
        if (!only || strstr(s->cells[i].label, only))
            return BERLU_OK;
    return berlu_fail(BERLU_ERR_ARG,
                      "--only %s: no cell's label holds this; the first is '%s', --dry-run lists them all", only,
                      s->cell_count ? s->cells[0].label : "");
}

static berlu_status run_study(options *o)
{
    study_opened x;
    TRY(words_check(o));
    TRY(study_open(&x, o));
    berlu_status status = only_check(&x.s, options_string(o, "only"));
    if (status == BERLU_OK)
        status = x.s.kind == STUDY_COST ? cost_study(&x, o) : train_study(&x, o);
    study_opened_free(&x);
    return status;
}

const command cmd_study_run = {
    "study run", "run what a study still lacks",
    "Runs a study file seed by seed, each run in DIR/runs/KEY. Finished runs are not repeated, interrupted ones "
    "resume\n"
    "from their checkpoint, and Ctrl-C or --for saves everything and exits with 3.\n\n"
    "    berlu study run studies/quick.yaml --jobs 2\n"
    "    berlu study run studies/vit_cifar10.yaml --devices 0 --per-device 2 --for 25m --slim",
    run_rows, run_study};
