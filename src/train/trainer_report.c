/* trainer_report.c - a run's output besides its checkpoints: metrics.csv, timing.csv, start.csv,
 * TensorBoard and progress. SPDX-License-Identifier: MIT
 *
 * metrics.csv is part of a run's identity: its bytes are summed in the training state, so a resume
 * notices a file that was edited, and truncates rows that the checkpoint does not cover. timing.csv
 * depends on the machine and is only ever appended to. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file_in.h"
#include "io/csv.h"
#include "train/trainer_internal.h"

uint64_t report_peak_bytes(void)
{
    struct rusage use = {0};
    getrusage(RUSAGE_SELF, &use);
    return (uint64_t)use.ru_maxrss * 1024;
}

uint64_t report_planned_bytes(const trainer *t)
{
    engine_memory train = engine_memory_use(t->train), eval = engine_memory_use(t->eval);
    return train.total + eval.total - eval.parameters;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char timing_names[] =
    "epoch,step,images,seconds,images_per_s,forward_s,backward_s,update_s,teacher_s,data_s,"
    "diagnose_s,wait_percent,overhead_percent,evaluate_s,checkpoint_s,peak_bytes,planned_bytes\n";

typedef struct compared {
    const char *expected; /* bytes not yet compared */
    int same;
} compared;

static void compared_add(void *context, const void *bytes, size_t count)
{
    compared *c = context;
    c->same = c->same && memcmp(bytes, c->expected, count) == 0;
    c->expected += count;
}

/* Whether a file of the run begins with these bytes; 0 also where it cannot be read. */
static int begins_with(const trainer *t, const char *name, const char *bytes, size_t count)
{
    compared c = {.expected = bytes, .same = 1};
    file_in file;
    berlu_status status = file_in_open_in(&file, &t->run.folder, name, name);
    if (status == BERLU_OK && file.size >= count)
        status = file_in_each(&file, count, compared_add, &c);
    int compared_all = status == BERLU_OK && file.size >= count;
    file_in_close(&file);
    return compared_all && c.same;
}

static const char metrics_name[] = "metrics.csv";

static metrics_form form_of(const trainer *t)
{
    return (metrics_form){.sites = diagnosis_names(t->diagnosis),
                          .count = diagnosis_sites(t->diagnosis),
                          .ema = t->settings.ema > 0,
                          .old = t->old_columns};
}

static berlu_status metrics_create(trainer *t)
{
    text names = {0};
    metrics_form form = form_of(t);
    metrics_names(&names, &form);
    berlu_status status = file_write_text(&t->run.folder, metrics_name, &names);
    t->state.metrics_bytes = names.length;
    t->state.metrics_sum = crc32c(0, names.data, names.length);
    text_free(&names);
    return status;
}

/* A run started by berlu 0.1.0 keeps its columns. */
static berlu_status columns_find(trainer *t)
{
    int found = 0;
    for (t->old_columns = 0; t->old_columns < 2; t->old_columns++) {
        text names = {0};
        metrics_form form = form_of(t);
        metrics_names(&names, &form);
        berlu_status status = text_status(&names);
        found = status == BERLU_OK && begins_with(t, metrics_name, names.data, names.length);
        text_free(&names);
        if (found || status != BERLU_OK)
            return status;
    }
    return berlu_fail(BERLU_ERR_INPUT,
                      "%s/%s: has other columns than this version of berlu writes; continue the run with the version "
                      "that began it, or start a new one",
                      t->run.path, metrics_name);
}

static void sum_add(void *context, const void *bytes, size_t count)
{
    uint32_t *sum = context;
    *sum = crc32c(*sum, bytes, count);
}

/* Verifies the rows that the checkpoint covers against their sum. */
berlu_status report_check(trainer *t)
{
    char shown[FILE_SHOWN];
    file_in file;
    uint32_t sum = 0;
    TRY(file_in_open_in(&file, &t->run.folder, metrics_name, file_shown(shown, &t->run.folder, metrics_name)));
    int shorter = file.size < t->state.metrics_bytes;
    berlu_status status = shorter ? BERLU_OK : file_in_each(&file, t->state.metrics_bytes, sum_add, &sum);
    file_in_close(&file);
    TRY(status);
    if (shorter)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s/%s: is shorter than its checkpoint says; it was changed from outside: put it back as it "
                          "was, or start a new run",
                          t->run.path, metrics_name);
    TRY(columns_find(t));
    if (t->resumed_format == 0)
        t->state.metrics_sum = sum;
    if (t->state.metrics_sum != sum)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s/%s: its rows are not those that this run wrote; put the file back as it was, or start a "
                          "new run",
                          t->run.path, metrics_name);
    return BERLU_OK;
}

/* Rows after the checkpoint go: the resumed run writes them again. */
static berlu_status metrics_resume(trainer *t)
{
    return file_truncate_in(&t->run.folder, metrics_name, t->state.metrics_bytes);
}

/* Columns of another version do not stop a run; their file is moved aside rather than mixed. */
static berlu_status timing_begin(trainer *t, int fresh)
{
    static const char name[] = "timing.csv";
    char aside[64];
    if (!fresh && begins_with(t, name, timing_names, sizeof timing_names - 1))
        return BERLU_OK;
    if (!fresh && file_exists_in(&t->run.folder, name)) {
        snprintf(aside, sizeof aside, "timing-until-%llu.csv", (unsigned long long)t->state.updates);
        TRY(path_rename_in(&t->run.folder, name, aside));
        log_line(&t->run.log, BERLU_LOG_INFO, "timing.csv had other columns and is kept as %s", aside);
    }
    return file_write_atomic_in(&t->run.folder, name, timing_names, sizeof timing_names - 1);
}

berlu_status report_start(trainer *t, int fresh)
{
    TRY(fresh ? metrics_create(t) : metrics_resume(t));
    TRY(timing_begin(t, fresh));
    return tb_open(&t->tb, &t->run.folder, clock_wall_seconds());
}

static void events_add(trainer *t, const metrics_row *row)
{
    double wall = clock_wall_seconds();
    int64_t step = (int64_t)row->step;
    const struct {
        const char *tag;
        double value;
    } values[] = {{"loss/train", row->train_loss},
                  {"loss/test", row->test_loss},
                  {"accuracy/train", row->train_top1},
                  {"accuracy/test", row->test_top1},
                  {"accuracy/test5", row->test_top5},
                  {"accuracy/ema", row->ema_top1},
                  {"optimizer/lr", row->lr},
                  {"optimizer/grad_norm", row->grad_norm},
                  {"activation/lipschitz", row->lipschitz}};
    for (size_t i = 0; i < COUNT(values); i++)
        if (!isnan(values[i].value))
            tb_scalar(t->tb, wall, step, values[i].tag, (float)values[i].value);
    for (size_t s = 0; s < diagnosis_sites(t->diagnosis); s++)
        for (int f = 0; f < SITE_METRICS; f++) {
            char tag[512];
            double value = t->state.site_metrics[s * SITE_METRICS + (size_t)f];
            snprintf(tag, sizeof tag, "%s/%s", site_metric_names[f], diagnosis_names(t->diagnosis)[s]);
            if (!isnan(value))
                tb_scalar(t->tb, wall, step, tag, (float)value);
        }
}

/* The row of an epoch cut short is not counted in the state: a resumed run overwrites it. */
berlu_status report_epoch(trainer *t, const metrics_row *row, int best, int cut)
{
    text line = {0};
    metrics_form form = form_of(t);
    metrics_line(&line, &form, row, t->state.site_metrics);
    berlu_status status;
    TRY_DONE(text_status(&line));
    TRY_DONE(file_append_in(&t->run.folder, "metrics.csv", line.data, line.length, 1));
    if (!cut) {
        t->state.metrics_bytes += line.length;
        t->state.metrics_sum = crc32c((uint32_t)t->state.metrics_sum, line.data, line.length);
    }
    events_add(t, row);
    status = tb_flush(t->tb);
    char scores[128] = ""; /* an epoch without an evaluation has none */
    if (!isnan(row->test_top1))
        snprintf(scores, sizeof scores, " top1 %.2f  test loss %.4f top1 %.2f top5 %.2f%s", row->train_top1,
                 row->test_loss, row->test_top1, row->test_top5, best ? "  best" : "");
    log_line(&t->run.log, BERLU_LOG_INFO, "epoch %llu/%lld  step %llu  lr %.3g  train loss %.4f%s",
             (unsigned long long)row->epoch, (long long)t->settings.epochs, (unsigned long long)row->step, row->lr,
             row->train_loss, scores);
    data_bad_warn(t->data, &t->told, &t->run.log);
    if (t->hooks.epoch) {
        train_speed speed = report_speed(&t->times);
        t->hooks.epoch(t->hooks.context, row, &speed, best);
    }
done:
    text_free(&line);
    return status;
}

/* ---- start.csv ------------------------------------------------------------------------------- */

berlu_status report_initial_forward(trainer *t)
{
    return diagnosis_forward(t->diagnosis, t->train, t->initial, NULL, 0, 0);
}

/* A separate file, because readers of metrics.csv expect the first epoch in its first row. Its
 * bytes do not depend on how often a run was killed before its first checkpoint. */
berlu_status report_initial_backward(trainer *t)
{
    text lines = {0};
    metrics_form form = form_of(t);
    metrics_row row = {.lr = NAN, .train_loss = NAN, .train_top1 = NAN, .test_loss = NAN, .test_top1 = NAN};
    row.test_top5 = row.grad_norm = row.ema_loss = row.ema_top1 = row.ema_top5 = NAN;
    TRY(diagnosis_backward(t->diagnosis, t->train, t->initial));
    TRY(diagnosis_parameters(t->diagnosis, t->train, t->initial));
    for (size_t i = 0; i < form.count; i++)
        row.lipschitz = fmax(row.lipschitz, t->initial[i * SITE_METRICS + SITE_LIPSCHITZ]);
    metrics_names(&lines, &form);
    metrics_line(&lines, &form, &row, t->initial);
    berlu_status status = file_write_text(&t->run.folder, "start.csv", &lines);
    text_free(&lines);
    return status;
}

static double share(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

train_speed report_speed(const timing *m)
{
    double inside = m->forward + m->backward + m->update + m->teacher;
    return (train_speed){.images_per_s = m->loop > 0 ? (double)m->images / m->loop : 0,
                         .wait_percent = share(m->data, m->loop),
                         .overhead_percent = share(m->loop - inside, m->loop)};
}

static void timing_add(timing *sum, const timing *m)
{
    sum->loop += m->loop;
    sum->forward += m->forward;
    sum->backward += m->backward;
    sum->update += m->update;
    sum->teacher += m->teacher;
    sum->data += m->data;
    sum->images += m->images;
}

berlu_status report_timing(trainer *t)
{
    const timing *m = &t->times;
    train_speed speed = report_speed(m);
    text line = {0};
    csv_int(&line, (long long)t->row.epoch);
    csv_int(&line, (long long)t->state.updates);
    csv_int(&line, (long long)m->images);
    const double values[] = {m->loop,
                             speed.images_per_s,
                             m->forward,
                             m->backward,
                             m->update,
                             m->teacher,
                             m->data,
                             m->diagnose,
                             speed.wait_percent,
                             speed.overhead_percent,
                             m->evaluate,
                             m->checkpoint};
    for (size_t i = 0; i < COUNT(values); i++) {
        char digits[NUMBER_TEXT];
        csv_text(&line, number_text_f32(digits, (float)values[i])); /* a clock has no more digits */
    }
    csv_int(&line, (long long)report_peak_bytes());
    csv_int(&line, (long long)report_planned_bytes(t));
    csv_end(&line);
    berlu_status status = text_status(&line);
    if (status == BERLU_OK)
        status = file_append_in(&t->run.folder, "timing.csv", line.data, line.length, 0);
    text_free(&line);
    timing_add(&t->total, m);
    t->times = (timing){0};
    return status;
}

void report_progress(const trainer *t, const char *phase, uint64_t done, uint64_t total)
{
    if (!t->hooks.progress)
        return;
    const timing *m = t->times.images ? &t->times : &t->total;
    train_progress p = {.phase = phase,
                        .epoch = t->state.epoch + 1,
                        .epochs = (uint64_t)t->settings.epochs,
                        .done = done,
                        .total = total,
                        .update = t->state.updates,
                        .updates = t->updates,
                        .images = (t->state.epoch * t->epoch_batches + t->state.batches) * (uint64_t)t->settings.batch,
                        .all = t->updates * (uint64_t)(t->settings.accumulate * t->settings.batch),
                        .loss = t->state.images ? t->state.loss_sum / (double)t->state.images : NAN,
                        .lr = t->lr,
                        .top1 = t->top1,
                        .images_per_s = m->loop > 0 ? (double)m->images / m->loop : 0};
    t->hooks.progress(t->hooks.context, &p);
}
