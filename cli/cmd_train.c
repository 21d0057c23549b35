/* cmd_train.c - berlu train. SPDX-License-Identifier: MIT
 *
 * The options are the list of train/settings.h and a few that belong to this command. Options are
 * set first, as texts, then the keys of the settings file; train/trainer.h does the rest. This file
 * displays the progress. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends.h"
#include "base/clock.h"
#include "base/file.h"
#include "commands.h"
#include "commit.h"
#include "gpu.h"
#include "machine.h"
#include "output.h"
#include "progress.h"
#include "signals.h"
#include "train/run_folder.h"
#include "train/run_missing.h"
#include "train/settings.h"
#include "train/trainer.h"

enum {
    OPTION_OF_TEXT = OPTION_STRING,
    OPTION_OF_LIST = OPTION_STRINGS,
    OPTION_OF_CHOICE = OPTION_STRING,
    OPTION_OF_COUNT = OPTION_INT,
    OPTION_OF_REAL = OPTION_STRING, /* train/recipe.c parses it: it may be "auto" */
    OPTION_OF_FLAG = OPTION_FLAG
};
#define ROW(key, option, kind, standard, least, most, choices, unit, help, role)                                       \
    {option, (option_type)OPTION_OF_##kind, unit, NULL, least, most, NULL, help, OPTION_EMPTY},
static const option_row rows[] = {
    TRAIN_SETTINGS(ROW){"resume", OPTION_FLAG, .help = "continue the run in --run"},
    {"dry-run", OPTION_FLAG, .help = "check everything, show settings, memory and expected time, write nothing"},
    {"wait", OPTION_FLOAT, "SECONDS", .standard = "0", .least = 0, .most = 1e9,
     .help = "how long to wait for another process that trains in --run; then exit 4"},
    {"strict", OPTION_FLAG,
     .help = "a resume under another version, matrix library, instruction set or device is an error, not a warning"},
    {"record-steps", OPTION_FLAG,
     .help = "keep the first weights (initial.safetensors) and every batch's images and loss (steps.csv) in --run"},
    {"config", OPTION_STRING, "FILE",
     .help = "settings from a YAML file, or those of another run from its run.json; options win"},
    {"verbose", OPTION_FLAG, .help = "show all settings at the start"},
    {"quiet", OPTION_FLAG, .help = "show nothing but errors"},
    {"json-lines", OPTION_FLAG, .help = "a JSON object per line on stdout: every epoch, and progress now and then"},
    {0}};

/* ---- what is shown --------------------------------------------------------------------------- */

typedef struct display {
    progress bar;
    int quiet, lines, started;
    uint64_t first;    /* images trained on before this process */
    uint64_t reported; /* clock_ns() of the last line of progress in JSON */
} display;

static void log_show(void *context, berlu_log_level level, const char *line)
{
    display *d = context;
    if (level == BERLU_LOG_WARNING) {
        warning_show(d->started ? &d->bar : NULL, level, line);
        return;
    }
    if (d->quiet)
        return;
    if (d->started)
        progress_clear(&d->bar);
    fprintf(stderr, "%s\n", line);
}

/* A line that cannot be written does not end the run; the command ends with it (cli/main.c). */
static void line_print(output *out)
{
    output_print(out);
    output_flush();
}

static void progress_line(display *d, const train_progress *p)
{
    uint64_t now = clock_ns();
    if (now - d->reported < 1000000000u)
        return;
    d->reported = now;
    output out;
    output_start(&out);
    output_string(&out, "event", "progress");
    output_string(&out, "phase", p->phase);
    output_int(&out, "epoch", (int64_t)p->epoch);
    output_int(&out, "step", (int64_t)p->update);
    output_int(&out, "steps", (int64_t)p->updates);
    output_real(&out, "loss", p->loss);
    output_real(&out, "lr", p->lr);
    output_real(&out, "images_per_s", p->images_per_s);
    line_print(&out);
}

static void note_make(display *d, const train_progress *p)
{
    char top1[24] = "";
    int evaluating = strcmp(p->phase, "train") != 0;
    if (!isnan(p->top1))
        snprintf(top1, sizeof top1, ", top1 %.2f", p->top1);
    d->bar.rate = p->images_per_s;
    progress_note(&d->bar, "epoch %llu/%llu%s%s, loss %.4f%s, lr %.3g", (unsigned long long)p->epoch,
                  (unsigned long long)p->epochs, evaluating ? " evaluating " : "", evaluating ? p->phase : "", p->loss,
                  top1, p->lr);
}

static void progress_show(void *context, const train_progress *p)
{
    display *d = context;
    if (d->lines)
        progress_line(d, p);
    if (!d->started) {
        d->first = p->images > p->done ? p->images - p->done : 0;
        progress_start(&d->bar, "train", "images", p->all - d->first, d->quiet || d->lines);
        d->started = 1;
    }
    if (progress_due(&d->bar))
        note_make(d, p);
    progress_step(&d->bar, p->images - d->first);
}

static void row_write(output *out, const metrics_row *row)
{
    const struct {
        const char *key;
        double value;
    } reals[] = {{"lr", row->lr},
                 {"train_loss", row->train_loss},
                 {"train_top1", row->train_top1},
                 {"test_loss", row->test_loss},
                 {"test_top1", row->test_top1},
                 {"test_top5", row->test_top5},
                 {"grad_norm", row->grad_norm},
                 {"lipschitz", row->lipschitz}};
    output_int(out, "epoch", (int64_t)row->epoch);
    output_int(out, "step", (int64_t)row->step);
    for (size_t i = 0; i < COUNT(reals); i++)
        output_real(out, reals[i].key, reals[i].value);
    if (!isnan(row->ema_top1))
        output_real(out, "ema_top1", row->ema_top1);
}

static void speed_write(output *out, const train_speed *speed)
{
    output_real(out, "images_per_s", speed->images_per_s);
    output_real(out, "wait_percent", speed->wait_percent);
    output_real(out, "overhead_percent", speed->overhead_percent);
}

static void epoch_show(void *context, const metrics_row *row, const train_speed *speed, int best)
{
    display *d = context;
    if (!d->lines)
        return;
    output out;
    output_start(&out);
    output_string(&out, "event", "epoch");
    row_write(&out, row);
    speed_write(&out, speed);
    output_bool(&out, "best", best);
    line_print(&out);
}

/* ---- settings -------------------------------------------------------------------------------- */

static berlu_status setting_take(train_settings *s, const options *o, const setting *row)
{
    char digits[32];
    if (!options_given(o, row->option))
        return BERLU_OK;
    switch (row->kind) {
    case SETTING_LIST:
        for (size_t i = 0; i < options_count(o, row->option); i++)
            TRY(recipe_set(s, row->key, options_strings(o, row->option)[i]));
        return BERLU_OK;
    case SETTING_COUNT:
        snprintf(digits, sizeof digits, "%lld", (long long)options_int(o, row->option));
        return recipe_set(s, row->key, digits);
    case SETTING_FLAG:
        return recipe_set(s, row->key, options_flag(o, row->option) ? "1" : "0");
    default:
        if (!*options_string(o, row->option) && !options_given(o, "config")) /* most likely an unset shell variable */
            return berlu_fail(BERLU_ERR_ARG, "option --%s is empty: %s is expected", row->option, row->unit);
        return recipe_set(s, row->key, options_string(o, row->option));
    }
}

/* A name that ends in .json is a run's record; any other file is YAML. */
static berlu_status file_take(train_settings *s, const char *path)
{
    yaml_tree tree;
    train_settings recorded;
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".json") == 0) {
        TRY(run_json_read(&recorded, NULL, path));
        berlu_status read = recipe_take(s, &recorded);
        recipe_free(&recorded);
        return read;
    }
    if (run_exists(path))
        return berlu_fail(BERLU_ERR_ARG, "option --config: %s is the folder of a run; give %s/run.json", path, path);
    TRY(yaml_tree_read(&tree, path));
    berlu_status status = recipe_set_yaml(s, &tree, tree.root);
    yaml_tree_free(&tree);
    return status;
}

/* Collects the settings of options and file; for a resume those the run was started with. */
static berlu_status settings_take(train_settings *s, const options *o)
{
    for (size_t i = 0; i < train_settings_count; i++)
        TRY(setting_take(s, o, &train_settings_table[i]));
    if (options_given(o, "config"))
        TRY(file_take(s, options_string(o, "config")));
    int nothing = options_flag(o, "resume") && s->run && !run_exists(s->run) && !(s->model && *s->model);
    if (nothing) {
        TRY(run_hidden(s->run));
        return berlu_fail(BERLU_ERR_ARG, "%s: holds no run to resume; to begin one give --model, --data and --act",
                          s->run);
    }
    if (!options_flag(o, "resume") || !s->run || !run_exists(s->run))
        return recipe_resolve(s);
    train_settings saved;
    TRY(trainer_resume_settings(&saved, s));
    recipe_free(s);
    *s = saved;
    return BERLU_OK;
}

static berlu_status early_checks(const train_settings *s, const options *o)
{
    if (options_json(o) && options_flag(o, "json-lines"))
        return berlu_fail(BERLU_ERR_ARG, "option --json-lines: writes lines and --json one object; choose one of them");
    if (options_flag(o, "resume") && options_flag(o, "record-steps"))
        return berlu_fail(BERLU_ERR_ARG, "option --record-steps: records from the first step on; leave --resume out");
    if (options_flag(o, "dry-run") && !options_given(o, "run"))
        return BERLU_OK;
    if (!*s->run)
        return berlu_fail(BERLU_ERR_ARG, "run: say where to keep the run, --run DIR");
    berlu_status status = run_check(s->run, options_flag(o, "resume"));
    return status == BERLU_ERR_BUSY && options_float(o, "wait") > 0 ? BERLU_OK : status; /* trainer_begin() waits */
}

/* ---- the command ----------------------------------------------------------------------------- */

static void table_show(const trainer *t, const display *d, int verbose)
{
    text table = {0};
    if (verbose) {
        trainer_settings_print(t, &table);
        text_string(&table, "\n");
    }
    trainer_describe(t, &table);
    if (!d->quiet && !table.failed)
        fprintf(stderr, "%s\n", table.data);
    text_free(&table);
}

/* Warns that a learning rate scaled to a small batch is too small for a short run. */
static void rate_warn(const train_settings *s, const options *o, const display *d)
{
    double usual = 1e-3 * (double)(s->batch * s->accumulate) / 1024;
    int automatic = !recipe_present(s, "lr") && s->lr == usual;
    if (automatic && s->lr < 2e-4 && !options_flag(o, "resume") && !d->quiet)
        fprintf(stderr,
                "note: the automatic learning rate for %lld images per update is %.2g, which learns slowly; "
                "--lr 1e-3 or --recipe plain may suit a small run\n",
                (long long)(s->batch * s->accumulate), s->lr);
}

/* The default is the CPU; whoever has a GPU shall know the option. */
static void gpu_note(const train_settings *s, const options *o, const display *d)
{
    gpu here;
    const backend *cuda;
    if (!recipe_present(s, "device") && !options_flag(o, "resume") && !d->quiet &&
        backend_find(&cuda, "cuda") == BERLU_OK && gpu_usable(&here))
        fprintf(stderr, "note: this machine has a GPU, %s; --device cuda trains on it\n", here.name);
}

static berlu_status result_print(const options *o, const train_result *r, const display *d)
{
    char best[64] = "", speed[96] = "";
    if (r->best_step)
        snprintf(best, sizeof best, " (best %.2f at step %llu)", r->best_top1, (unsigned long long)r->best_step);
    if (r->speed.images_per_s > 0) /* unknown where the run was already complete */
        snprintf(speed, sizeof speed, ", %.0f images/s (%.1f %% of it waiting for images)", r->speed.images_per_s,
                 r->speed.wait_percent);
    if (!d->quiet)
        fprintf(stderr, "done: %llu updates, test top1 %.2f%s%s, %.0f MiB at most\n", (unsigned long long)r->updates,
                r->last.test_top1, best, speed, (double)r->peak_bytes / 0x1p20);
    if (!options_json(o))
        return BERLU_OK;
    output out;
    output_start(&out);
    row_write(&out, &r->last);
    output_real(&out, "best_top1", r->best_top1);
    output_int(&out, "best_step", (int64_t)r->best_step);
    speed_write(&out, &r->speed);
    output_int(&out, "peak_bytes", (int64_t)r->peak_bytes);
    output_int(&out, "planned_bytes", (int64_t)r->planned_bytes);
    return output_print(&out);
}

static const char *duration(char out[48], double seconds)
{
    if (seconds < 120)
        snprintf(out, 48, "%.0f s", seconds);
    else if (seconds < 2 * 3600)
        snprintf(out, 48, "%.0f min", seconds / 60);
    else
        snprintf(out, 48, "%.1f hours", seconds / 3600);
    return out;
}

/* Estimates the run from a second of training. */
static berlu_status dry_run(trainer *t, const options *o, const display *d)
{
    train_estimate e;
    char time[48];
    output out;
    TRY(trainer_measure(t, 1, &e));
    if (!d->quiet)
        fprintf(stderr, "%-10s about %s for %llu updates, %.0f images/s in a second of trying\n", "time",
                duration(time, e.seconds), (unsigned long long)e.updates, e.images_per_s);
    if (!options_json(o))
        return BERLU_OK;
    output_start(&out);
    output_string(&out, "settings_hash", trainer_settings_hash(t));
    output_int(&out, "updates", (int64_t)e.updates);
    output_int(&out, "planned_bytes", (int64_t)e.planned_bytes);
    output_real(&out, "images_per_s", e.images_per_s);
    output_real(&out, "seconds", e.seconds);
    return output_print(&out);
}

/* The words of the command line, for run.json, as far as they can be read. */
enum { WORDS = 512 };
static const char *const *command_words(char **memory, const char *words[WORDS + 1])
{
    size_t size = 0, count = 0;
    if (file_read_all(memory, &size, "/proc/self/cmdline", 1 << 20) != BERLU_OK)
        return NULL;
    for (size_t at = 0; at < size && count < WORDS; at += strlen(*memory + at) + 1)
        words[count++] = *memory + at;
    words[count] = NULL;
    return words;
}

static berlu_status run_start(trainer *t, const options *o)
{
    char *memory = NULL;
    const char *words[WORDS + 1];
    train_start how = {.resume = options_flag(o, "resume"),
                       .wait = options_float(o, "wait"),
                       .strict = options_flag(o, "strict"),
                       .record_steps = options_flag(o, "record-steps"),
                       .command = command_words(&memory, words),
                       .commit = BERLU_COMMIT};
    berlu_status status = trainer_begin(t, &how);
    free(memory);
    return status;
}

/* `train --resume` and `train --run OLD`: half of what continues a run. */
static berlu_status half_resume_check(const options *o)
{
    const char *run = options_given(o, "run") ? options_string(o, "run") : NULL;
    if (options_flag(o, "resume") && !run && !options_given(o, "config"))
        return berlu_fail(BERLU_ERR_ARG, "option --resume: say which run to continue: --run DIR --resume");
    if (!options_flag(o, "resume") && run && !options_given(o, "model") && !options_given(o, "config") &&
        run_exists(run))
        return berlu_fail(BERLU_ERR_ARG, "%s: holds a run already; add --resume to continue it", run);
    return BERLU_OK;
}

static berlu_status train(options *o)
{
    display d = {.quiet = options_flag(o, "quiet"), .lines = options_flag(o, "json-lines")};
    berlu_log log = {.write = log_show, .context = &d};
    train_hooks hooks = {
        .stop = signals_stop(), .progress = progress_show, .epoch = epoch_show, .log = &log, .context = &d};
    train_settings s;
    train_result result;
    trainer *t = NULL;
    berlu_status status;
    recipe_init(&s);
    TRY_DONE(half_resume_check(o));
    TRY_DONE(settings_take(&s, o));
    TRY_DONE(early_checks(&s, o));
    if (!options_given(o, "threads")) /* a settings file or the run may set them */
        TRY_DONE(machine_threads((int)s.threads));
    TRY_DONE(trainer_open(&t, &s, &hooks));
    if (!options_flag(o, "resume"))
        TRY_DONE(trainer_new_check(t));
    table_show(t, &d, options_flag(o, "verbose"));
    rate_warn(&s, o, &d);
    gpu_note(&s, o, &d);
    if (options_flag(o, "dry-run"))
        TRY_DONE(dry_run(t, o, &d));
    else {
        TRY_DONE(run_start(t, o));
        status = trainer_run(t, &result);
        if (d.started)
            progress_clear(&d.bar);
        TRY_DONE(status);
        TRY_DONE(result_print(o, &result, &d));
    }
done:
    trainer_close(t);
    recipe_free(&s);
    if (status == BERLU_ERR_MEMORY && !strstr(berlu_last_error(), "--batch") &&
        !strstr(berlu_last_error(), "--eval-batch"))
        berlu_fail(status, "%s; a smaller --batch or --eval-batch takes less", berlu_last_error());
    return status;
}

const command cmd_train = {
    "train", "train a network with an activation",
    "Trains --model on --data with --act and keeps everything in --run: settings, metrics, checkpoints, curves.\n"
    "Can be stopped at any moment (Ctrl-C saves first) and continued with --resume, to the same bytes.\n"
    "What is not given comes from --recipe: the defaults below are those of `paper`, and `berlu train --recipe plain\n"
    "--help` shows those of another. --dry-run shows the outcome. A YAML file given with --config has the same names\n"
    "with _ for -.\n\n"
    "  berlu train --model vit_micro --patch 8 --data synthetic --act berlu --run runs/first --recipe plain --epochs "
    "3\n"
    "  berlu train --run runs/first --resume\n"
    "  berlu train --model vit_tiny_cifar --data cifar10:data --act berlu:eps=0.1 --act-constraint alpha:0: --run r\n",
    rows, train};
