/* cmd_study.c - `berlu study run|status|list|report|rebuild|merge`: many runs from one file. SPDX-License-Identifier: MIT
 *
 * Every verb takes the study's file; the study lives in runs/NAME unless --dir says otherwise. The folders of the runs are the
 * truth (study/runs.h), study.db is an index made from them (study/store.h), and the report reads the index. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/threads.h"
#include "commands.h"
#include "io/yaml.h"
#include "output.h"
#include "report/report.h"
#include "signals.h"
#include "study/scheduler.h"

#define STUDY_ROWS                                                                                                     \
    {"file", OPTION_STRING, "FILE", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "the study, a YAML file"},     \
        {"dir", OPTION_STRING, "DIR", .help = "where the study lives (default runs/NAME)"},                            \
    {                                                                                                                  \
        "set", OPTION_STRINGS, "KEY=VALUE", .help = "a setting for all runs, over the file's; may be repeated"         \
    }

/* A study, its place and its runs. */
typedef struct opened {
    study s;
    study_entries runs;
    char folder[STUDY_PATH];
    const char **set; /* NULL-terminated */
    char *yaml;
} opened;

static void opened_free(opened *x)
{
    study_entries_free(&x->runs);
    study_free(&x->s);
    free(x->set);
    free(x->yaml);
}

static berlu_status study_open(opened *x, const options *o)
{
    text problems = {0};
    *x = (opened){0};
    size_t bytes;
    berlu_status status = file_read_all(&x->yaml, &bytes, options_string(o, "file"), YAML_BYTES);
    if (status == BERLU_OK)
        status = study_parse(&x->s, x->yaml, bytes, options_string(o, "file"), &problems);
    if (status != BERLU_OK && problems.data) {
        char *last = strrchr(problems.data, '\n');
        if (last)
            *last = 0;
        status = berlu_fail(BERLU_ERR_INPUT, "%s", problems.data);
    }
    text_free(&problems);
    if (status != BERLU_OK) {
        free(x->yaml);
        return status;
    }
    const char *dir = options_string(o, "dir");
    snprintf(x->folder, sizeof x->folder, dir ? "%s" : "runs/%s", dir ? dir : x->s.name);
    size_t count = options_count(o, "set");
    x->set = calloc(count + 1, sizeof *x->set);
    if (!x->set)
        status = berlu_fail_memory(count, "settings");
    for (size_t i = 0; status == BERLU_OK && i < count; i++)
        x->set[i] = options_strings(o, "set")[i];
    if (status == BERLU_OK)
        status = study_set(&x->s, x->set);
    for (size_t i = 0; i < x->s.note_count; i++)
        fprintf(stderr, "note: %s\n", x->s.notes[i]);
    if (status != BERLU_OK)
        opened_free(x);
    return status;
}

static berlu_status study_open_runs(opened *x, const options *o)
{
    berlu_status status = study_open(x, o);
    if (status == BERLU_OK && (status = study_entries_make(&x->runs, &x->s, x->folder)) != BERLU_OK)
        opened_free(x);
    return status;
}

static void counts_of(const study_entries *r, size_t counts[STUDY_STATES])
{
    for (size_t i = 0; i < r->count; i++)
        counts[r->items[i].state]++;
}

/* ---- showing ---- */

typedef struct screen {
    int terminal, quiet;
    int lines; /* drawn before, to be drawn over */
    double shown;
} screen;

static void time_print(text *out, double seconds)
{
    if (isnan(seconds))
        text_string(out, "?");
    else if (seconds < 90)
        text_add(out, "%.0f s", seconds);
    else if (seconds < 5400)
        text_add(out, "%.0f min", seconds / 60);
    else
        text_add(out, "%.1f h", seconds / 3600);
}

static void counts_print(text *out, const study_view *v)
{
    for (int i = 0; i < STUDY_STATES; i++)
        if (v->counts[i] || i == STUDY_DONE)
            text_add(out, "%zu %s, ", v->counts[i], study_state_names[i]);
    text_string(out, "left ");
    time_print(out, v->left);
    text_string(out, "\n");
}

static void workers_print(text *out, const study_view *v, int *lines)
{
    for (int i = 0; i < v->slots; i++) {
        const study_worker *w = &v->workers[i];
        if (!w->process)
            continue;
        const study_entry *r = &v->runs->items[w->run];
        text_add(out, "  %-28.28s seed %-3lld epoch %-4llu %3.0f %%  loss %-7.4f", v->study->cells[r->cell].label,
                 (long long)r->seed, (unsigned long long)w->epoch,
                 w->steps ? 100.0 * (double)w->step / (double)w->steps : 0.0, w->loss);
        if (!isnan(w->top1))
            text_add(out, " top-1 %5.2f", w->top1);
        text_add(out, " %.0f images/s\n", w->images_per_s);
        ++*lines;
    }
}

/* A terminal is redrawn in place; elsewhere a line every half minute. */
static void study_show(void *context, const study_view *v)
{
    screen *s = context;
    text out = {0};
    int lines = 1;
    if (s->quiet || (!s->terminal && clock_seconds() - s->shown < 30))
        return;
    s->shown = clock_seconds();
    if (s->terminal && s->lines)
        text_add(&out, "\033[%dA\033[J", s->lines);
    if (s->terminal)
        workers_print(&out, v, &lines);
    counts_print(&out, v);
    if (out.data)
        fputs(out.data, stderr);
    s->lines = lines;
    text_free(&out);
}

static berlu_status answer(const options *o, const opened *x, double seconds, int slots)
{
    size_t counts[STUDY_STATES] = {0};
    counts_of(&x->runs, counts);
    if (options_json(o)) {
        output out;
        output_start(&out);
        output_string(&out, "study", x->s.name);
        output_int(&out, "runs", (int64_t)x->runs.count);
        for (int i = 0; i < STUDY_STATES; i++)
            output_int(&out, study_state_names[i], (int64_t)counts[i]);
        output_real(&out, "seconds", seconds);
        output_int(&out, "slots", slots);
        return output_print(&out);
    }
    printf("%s: %zu runs: %zu done, %zu running, %zu cut, %zu failed, %zu waiting (%s)\n", x->s.name, x->runs.count,
           counts[STUDY_DONE], counts[STUDY_RUNNING], counts[STUDY_CUT], counts[STUDY_FAILED], counts[STUDY_WAITING],
           x->folder);
    return BERLU_OK;
}

/* ---- run ---- */

static const option_row run_rows[] = {
    STUDY_ROWS,
    {"jobs", OPTION_INT, "N", .least = 1, .most = STUDY_JOBS, .help = "runs at a time (default 1)"},
    {"devices", OPTION_INTS, "LIST", .least = 0, .most = 1023, .help = "GPUs to use: 0,1"},
    {"per-device", OPTION_INT, "N", .standard = "1", .least = 1, .most = 16, .help = "runs at a time on each of them"},
    {"for", OPTION_STRING, "TIME", .help = "stop, saved, after so long: 90s, 25m, 8h"},
    {"only", OPTION_STRING, "TEXT", .help = "cells whose label holds this"},
    {"retries", OPTION_INT, "N", .standard = "2", .least = 0, .most = 100,
     .help = "how often a cut run is taken up again without progress"},
    {"slim", OPTION_FLAG, .help = "delete the checkpoints of finished runs"},
    {"dry-run", OPTION_FLAG, .help = "list cells and seeds and what is left; run nothing"},
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

/* Cells, seeds and how their runs stand; without keys (the data is not here) the seeds alone. */
static void plan_print(const opened *x)
{
    for (size_t c = 0; c < x->s.cell_count; c++) {
        printf("%-32s", x->s.cells[c].label);
        for (size_t i = 0; i < x->runs.count; i++)
            if (x->runs.items[i].cell == c)
                printf(" %lld:%s", (long long)x->runs.items[i].seed, study_state_names[x->runs.items[i].state]);
        for (size_t i = 0; !x->runs.count && i < x->s.run_count; i++)
            if (x->s.runs[i].cell == c)
                printf(" %lld", (long long)x->s.runs[i].seed);
        printf("\n");
    }
    for (size_t i = 0; i < x->s.pair_count; i++)
        printf("contrast %-22s %s - %s\n", x->s.pairs[i].name, x->s.cells[x->s.pairs[i].a].label,
               x->s.cells[x->s.pairs[i].b].label);
}

/* This program's own path: workers are the same program. */
static berlu_status program_path(char out[STUDY_PATH])
{
    ssize_t n = readlink("/proc/self/exe", out, STUDY_PATH - 1);
    if (n <= 0)
        return berlu_fail(BERLU_ERR_IO, "/proc/self/exe cannot be read: where is this program?");
    out[n] = 0;
    return BERLU_OK;
}

static berlu_status scheduler_start(opened *x, const options *o, store *index, folder_handle *folder, int *slots)
{
    char program[STUDY_PATH];
    int devices[STUDY_JOBS], device_count = 0;
    screen shown = {.terminal = isatty(STDERR_FILENO), .quiet = options_flag(o, "quiet")};
    study_schedule how = {.program = program,
                          .jobs = options_given(o, "jobs") ? (int)options_int(o, "jobs") : 1,
                          .threads = options_threads(o),
                          .retries = (int)options_int(o, "retries"),
                          .slim = options_flag(o, "slim"),
                          .only = options_string(o, "only"),
                          .yaml = x->yaml,
                          .stop = signals_stop(),
                          .tick = study_show,
                          .context = &shown};
    berlu_status status = time_parse(&how.seconds, options_string(o, "for"));
    if (status == BERLU_OK)
        status = devices_take(devices, &device_count, o);
    if (status == BERLU_OK)
        status = program_path(program);
    if (status != BERLU_OK)
        return status;
    if (device_count) {
        how.devices = devices;
        how.device_count = device_count;
        how.jobs = options_given(o, "jobs") ? how.jobs : device_count;
    }
    if (!how.threads && !device_count && how.jobs > 1)
        how.threads = threads_default() / how.jobs > 0 ? threads_default() / how.jobs : 1;
    *slots = how.jobs;
    run_lock lock;
    status = run_lock_take(&lock, folder, 0, NULL); /* a second scheduler is told of the first */
    if (status != BERLU_OK)
        return status;
    lock.record = (run_record){.state = RUN_RUNNING, .attempt = lock.record.attempt + 1};
    status = run_lock_write(&lock, folder);
    if (status == BERLU_OK)
        status = study_schedule_run(&how, &x->s, &x->runs, index);
    run_lock_drop(&lock);
    return status;
}

static berlu_status run_study(options *o)
{
    opened x;
    text notes = {0};
    store *index = NULL;
    folder_handle folder = {.fd = -1};
    int slots = 0;
    double began = clock_seconds();
    berlu_status status = options_flag(o, "dry-run") ? study_open(&x, o) : study_open_runs(&x, o);
    if (status != BERLU_OK)
        return status;
    if (options_flag(o, "dry-run")) { /* what this machine lacks is a note; only mistakes of the file are errors */
        if (study_entries_make(&x.runs, &x.s, x.folder) != BERLU_OK)
            fprintf(stderr, "note: %s\n", berlu_last_error());
        if (!options_json(o))
            plan_print(&x);
        status = answer(o, &x, 0, 0);
        opened_free(&x);
        return status;
    }
    status = folder_make(x.folder);
    if (status == BERLU_OK)
        status = folder_hold(&folder, x.folder);
    if (status == BERLU_OK)
        status = store_open(&index, x.folder, &notes);
    if (notes.data)
        fputs(notes.data, stderr);
    if (status == BERLU_OK)
        status = scheduler_start(&x, o, index, &folder, &slots);
    berlu_status closed = store_close(index);
    status = status == BERLU_OK ? closed : status;
    if (status == BERLU_OK || status == BERLU_ERR_STOPPED)
        (void)answer(o, &x, clock_seconds() - began, slots);
    size_t counts[STUDY_STATES] = {0};
    counts_of(&x.runs, counts);
    if (status == BERLU_OK && counts[STUDY_FAILED])
        status = berlu_fail(BERLU_ERR_NUMERIC, "%zu of %zu runs failed; berlu study report tells which and why",
                            counts[STUDY_FAILED], x.runs.count);
    folder_release(&folder);
    text_free(&notes);
    opened_free(&x);
    return status;
}

const command cmd_study_run = {
    "study run", "run what a study still lacks",
    "Makes the runs of a study file, seed by seed, each in DIR/runs/KEY. Runs that are done are not run again, cut "
    "ones\n"
    "are taken up from their checkpoint, and Ctrl-C or --for saves everything and exits with 3.\n\n"
    "    berlu study run studies/quick.yaml --jobs 2\n"
    "    berlu study run studies/vit_cifar10.yaml --devices 0 --per-device 2 --for 25m --slim",
    run_rows, run_study};

/* ---- status, list ---- */

static const option_row status_rows[] = {STUDY_ROWS, {0}};

static berlu_status status_study(options *o)
{
    opened x;
    berlu_status status = study_open_runs(&x, o);
    if (status != BERLU_OK)
        return status;
    status = answer(o, &x, 0, 0);
    for (size_t i = 0; !options_json(o) && i < x.runs.count; i++) {
        const study_entry *r = &x.runs.items[i];
        if (r->state == STUDY_RUNNING || r->state == STUDY_CUT || r->state == STUDY_FAILED)
            printf("  %-8s %-28s seed %-3lld step %llu  %s\n", study_state_names[r->state], x.s.cells[r->cell].label,
                   (long long)r->seed, (unsigned long long)r->record.step, r->path);
    }
    opened_free(&x);
    return status;
}

const command cmd_study_status = {"study status", "how far a study is",
                                  "Reads the run folders; works while the study runs, from anywhere.\n\n"
                                  "    berlu study status studies/quick.yaml",
                                  status_rows, status_study};

static const option_row list_rows[] = {
    STUDY_ROWS,
    {"commands", OPTION_FLAG, .help = "a command per run that is not done, for xargs or GNU parallel"},
    {0}};

static void word_print(const char *word)
{
    int plain = *word != 0;
    for (const char *c = word; *c; c++)
        plain = plain && (strchr("-_./:=,+@%", *c) || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                          (*c >= 'A' && *c <= 'Z'));
    if (plain) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (const char *c = word; *c; c++)
        fputs(*c == '\'' ? "'\\''" : (char[]){*c, 0}, stdout);
    putchar('\'');
}

static berlu_status list_study(options *o)
{
    opened x;
    char program[STUDY_PATH];
    berlu_status status = study_open_runs(&x, o);
    if (status != BERLU_OK)
        return status;
    status = program_path(program);
    for (size_t i = 0; i < x.runs.count && status == BERLU_OK; i++) {
        const study_entry *r = &x.runs.items[i];
        arena memory = {0};
        if (!options_flag(o, "commands"))
            printf("%s %-8s seed %-3lld %s\n", r->key, study_state_names[r->state], (long long)r->seed,
                   x.s.cells[r->cell].label);
        else if (r->same_as == i && r->state != STUDY_DONE && r->state != STUDY_FAILED) {
            char **words = study_command(&memory, &x.s, r, &(study_schedule){.program = program});
            for (size_t k = 0; words && words[k]; k++) {
                word_print(words[k]);
                putchar(words[k + 1] ? ' ' : '\n');
            }
        }
        arena_free(&memory);
    }
    opened_free(&x);
    return status;
}

const command cmd_study_list = {"study list", "the runs of a study, or their commands",
                                "    berlu study list studies/quick.yaml --commands | xargs -P 2 -I{} sh -c '{}'",
                                list_rows, list_study};

/* ---- the index ---- */

/* Brings the index up to date with the folders. */
static berlu_status index_make(const opened *x)
{
    text notes = {0};
    store *index = NULL;
    berlu_status status = store_open(&index, x->folder, &notes);
    if (status == BERLU_OK)
        status = store_put_study(index, &x->s, x->yaml, &x->runs);
    for (size_t i = 0; i < x->runs.count && status == BERLU_OK; i++)
        if (x->runs.items[i].same_as == i && x->runs.items[i].state != STUDY_WAITING)
            status = store_put_run(index, &x->runs.items[i], NULL);
    berlu_status closed = store_close(index);
    if (notes.data)
        fputs(notes.data, stderr);
    text_free(&notes);
    return status == BERLU_OK ? closed : status;
}

static berlu_status rebuild_study(options *o)
{
    opened x;
    berlu_status status = study_open_runs(&x, o);
    if (status != BERLU_OK)
        return status;
    status = index_make(&x);
    if (status == BERLU_OK)
        status = answer(o, &x, 0, 0);
    opened_free(&x);
    return status;
}

const command cmd_study_rebuild = {"study rebuild", "make a study's index again from its run folders",
                                   "    berlu study rebuild studies/quick.yaml", status_rows, rebuild_study};

static const option_row merge_rows[] = {
    {"stores", OPTION_STRINGS, "STORE", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "study.db files to take from"},
    {"out", OPTION_STRING, "DIR", .flags = OPTION_REQUIRED, .help = "folder of the store to add to"},
    {0}};

static berlu_status merge_study(options *o)
{
    text notes = {0};
    store *index = NULL;
    size_t all = 0;
    berlu_status status = store_open(&index, options_string(o, "out"), &notes);
    for (size_t i = 0; i < options_count(o, "stores") && status == BERLU_OK; i++) {
        size_t added = 0;
        status = store_merge(index, options_strings(o, "stores")[i], &added);
        all += added;
    }
    berlu_status closed = store_close(index);
    status = status == BERLU_OK ? closed : status;
    if (notes.data)
        fputs(notes.data, stderr);
    text_free(&notes);
    if (status == BERLU_OK && options_json(o)) {
        output out;
        output_start(&out);
        output_int(&out, "added", (int64_t)all);
        return output_print(&out);
    }
    if (status == BERLU_OK)
        printf("%zu runs added to %s\n", all, options_string(o, "out"));
    return status;
}

const command cmd_study_merge = {"study merge", "add the finished runs of other stores to one",
                                 "One run with two different results is an error that names it.\n\n"
                                 "    berlu study merge a/study.db b/study.db --out results",
                                 merge_rows, merge_study};

/* ---- report ---- */

static const option_row report_rows[] = {
    {"from", OPTION_STRINGS, "FILE|DIR", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "studies: their files, or folders that hold a study.db"},
    {"out", OPTION_STRING, "DIR", .flags = OPTION_REQUIRED, .help = "folder to write into"},
    {"format", OPTION_STRING, "LIST", .standard = "html,md,csv", .help = "of html, md, csv, latex"},
    {0}};

static berlu_status formats_parse(unsigned *out, const char *list)
{
    static const char *const names[] = {"html", "md", "csv", "latex"};
    *out = 0;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < COUNT(names) && (strlen(names[i]) != length || strncmp(names[i], at, length) != 0))
            i++;
        if (i == COUNT(names))
            return berlu_fail(BERLU_ERR_ARG, "--format %s: html, md, csv and latex are possible", list);
        *out |= 1u << i;
        at += length + (at[length] == ',');
    }
    return *out ? BERLU_OK : berlu_fail(BERLU_ERR_ARG, "--format: none given");
}

/* A store of a study file is brought up to date first; a folder's is read as it is. */
static berlu_status store_find(char path[STUDY_PATH], const char *from)
{
    if (folder_exists(from)) {
        snprintf(path, STUDY_PATH, "%s/study.db", from);
        return BERLU_OK;
    }
    opened x = {0};
    size_t bytes;
    berlu_status status = file_read_all(&x.yaml, &bytes, from, YAML_BYTES);
    if (status == BERLU_OK)
        status = study_parse(&x.s, x.yaml, bytes, from, NULL);
    if (status != BERLU_OK) {
        free(x.yaml);
        return status;
    }
    snprintf(x.folder, sizeof x.folder, "runs/%s", x.s.name);
    status = study_entries_make(&x.runs, &x.s, x.folder);
    if (status == BERLU_OK)
        status = index_make(&x);
    snprintf(path, STUDY_PATH, "%.4000s/study.db", x.folder);
    opened_free(&x);
    return status;
}

static berlu_status contents_of(store_contents *out, const char *from)
{
    char path[STUDY_PATH];
    store *s = NULL;
    berlu_status status = store_find(path, from);
    if (status == BERLU_OK)
        status = store_open_read(&s, path);
    if (status == BERLU_OK)
        status = store_read(s, out);
    store_close(s);
    return status;
}

static berlu_status report_study(options *o)
{
    size_t count = options_count(o, "from"), studies = 0;
    unsigned formats = 0;
    store_contents *all = calloc(count + 1, sizeof *all);
    store_study *joined = NULL;
    report r = {0};
    berlu_status status =
        all ? formats_parse(&formats, options_string(o, "format")) : berlu_fail_memory(count, "studies");
    for (size_t i = 0; i < count && status == BERLU_OK; i++) {
        status = contents_of(&all[i], options_strings(o, "from")[i]);
        studies += all[i].count;
    }
    if (status == BERLU_OK && !(joined = calloc(studies + 1, sizeof *joined)))
        status = berlu_fail_memory(studies * sizeof *joined, "studies");
    store_contents whole = {.studies = joined};
    for (size_t i = 0; i < count && status == BERLU_OK; i++)
        for (size_t k = 0; k < all[i].count; k++)
            joined[whole.count++] = all[i].studies[k];
    if (status == BERLU_OK)
        status = report_make(&r, &whole);
    if (status == BERLU_OK)
        status = report_write(&r, &whole, options_string(o, "out"), formats);
    if (status == BERLU_OK && !options_json(o))
        printf("%zu studies: %s\n", whole.count, options_string(o, "out"));
    report_free(&r);
    for (size_t i = 0; all && i < count; i++)
        store_contents_free(&all[i]);
    free(joined);
    free(all);
    return status;
}

const command cmd_study_report = {"study report", "tables of what studies found",
                                  "Cells with means, deviations and intervals, the registered contrasts with Holm's p "
                                  "over all of them, and every run.\n\n"
                                  "    berlu study report studies/quick.yaml --out report\n"
                                  "    berlu study report docs/results --out page --format html,latex",
                                  report_rows, report_study};
