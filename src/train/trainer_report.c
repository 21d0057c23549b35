/* trainer_report.c - what a trainer writes down and tells: metrics.csv, timing.csv, TensorBoard, progress, and the name of
 * the tensor that went bad. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file_in.h"
#include "io/csv.h"
#include "train/finite.h"
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

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static const char timing_names[] =
    "epoch,step,images,seconds,images_per_s,forward_s,backward_s,update_s,teacher_s,data_s,"
    "diagnose_s,wait_percent,overhead_percent,evaluate_s,checkpoint_s,peak_bytes,planned_bytes\n";

typedef struct compared {
    const char *expected; /* what has still to come */
    int same;
} compared;

static void compared_add(void *context, const void *bytes, size_t count)
{
    compared *c = context;
    c->same = c->same && memcmp(bytes, c->expected, count) == 0;
    c->expected += count;
}

/* Whether a file of the run begins with these bytes. */
static int begins_with(const trainer *t, const char *name, const char *bytes, size_t count)
{
    compared c = {.expected = bytes, .same = 1};
    file_in file;
    berlu_status status = file_in_open_in(&file, &t->run.folder, name, name);
    if (status == BERLU_OK && file.size >= count)
        status = file_in_each(&file, count, compared_add, &c);
    int whole = status == BERLU_OK && file.size >= count;
    file_in_close(&file);
    return whole && c.same;
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
    berlu_status status = text_status(&names);
    if (status == BERLU_OK)
        status = file_write_atomic_in(&t->run.folder, metrics_name, names.data, names.length);
    t->state.metrics_bytes = names.length;
    t->state.metrics_sum = crc32c(0, names.data, names.length);
    text_free(&names);
    return status;
}

/* A run that 0.1.0 began keeps its columns. */
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

/* The rows that the checkpoint knows must be the bytes that were written; what stands behind them is written again. */
static berlu_status metrics_resume(trainer *t)
{
    char shown[FILE_SHOWN];
    file_in file;
    uint32_t sum = 0;
    berlu_status status =
        file_in_open_in(&file, &t->run.folder, metrics_name, file_shown(shown, &t->run.folder, metrics_name));
    int shorter = status == BERLU_OK && file.size < t->state.metrics_bytes;
    if (status == BERLU_OK && !shorter)
        status = file_in_each(&file, t->state.metrics_bytes, sum_add, &sum);
    file_in_close(&file);
    if (status != BERLU_OK)
        return status;
    if (shorter)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s/%s: is shorter than its checkpoint says; it was changed from outside: put it back as it "
                          "was, or start a new run",
                          t->run.path, metrics_name);
    status = columns_find(t);
    if (status != BERLU_OK)
        return status;
    if (t->resumed_format == 0)
        t->state.metrics_sum = sum;
    if (t->state.metrics_sum != sum)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s/%s: its rows are not those that this run wrote; put the file back as it was, or start a "
                          "new run",
                          t->run.path, metrics_name);
    return file_truncate_in(&t->run.folder, metrics_name, t->state.metrics_bytes);
}

/* Times are for people: columns of another version are no reason to stop, but they are not mixed with ours either. */
static berlu_status timing_begin(trainer *t, int fresh)
{
    static const char name[] = "timing.csv";
    char aside[64];
    berlu_status status = BERLU_OK;
    if (!fresh && begins_with(t, name, timing_names, sizeof timing_names - 1))
        return BERLU_OK;
    if (!fresh && file_exists_in(&t->run.folder, name)) {
        snprintf(aside, sizeof aside, "timing-until-%llu.csv", (unsigned long long)t->state.updates);
        status = path_rename_in(&t->run.folder, name, aside);
        if (status == BERLU_OK)
            log_line(&t->run.log, BERLU_LOG_INFO, "timing.csv had other columns and is kept as %s", aside);
    }
    return status == BERLU_OK ? file_write_atomic_in(&t->run.folder, name, timing_names, sizeof timing_names - 1)
                              : status;
}

berlu_status report_start(trainer *t, int fresh)
{
    berlu_status status = fresh ? metrics_create(t) : metrics_resume(t);
    if (status == BERLU_OK)
        status = timing_begin(t, fresh);
    return status == BERLU_OK ? tb_open_in(&t->tb, &t->run.folder, clock_wall_seconds()) : status;
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

/* A row of an epoch that was cut short is not counted in the state: the resumed run writes the whole epoch's. */
berlu_status report_epoch(trainer *t, const metrics_row *row, int best, int cut)
{
    text line = {0};
    metrics_form form = form_of(t);
    metrics_line(&line, &form, row, t->state.site_metrics);
    berlu_status status = text_status(&line);
    if (status == BERLU_OK)
        status = file_append_in(&t->run.folder, "metrics.csv", line.data, line.length, 1);
    if (status == BERLU_OK && !cut) {
        t->state.metrics_bytes += line.length;
        t->state.metrics_sum = crc32c((uint32_t)t->state.metrics_sum, line.data, line.length);
    }
    text_free(&line);
    if (status != BERLU_OK)
        return status;
    events_add(t, row);
    status = tb_flush(t->tb);
    char scores[128] = ""; /* an epoch without an evaluation has none */
    if (!isnan(row->test_top1))
        snprintf(scores, sizeof scores, " top1 %.2f  test loss %.4f top1 %.2f top5 %.2f%s", row->train_top1,
                 row->test_loss, row->test_top1, row->test_top5, best ? "  best" : "");
    log_line(&t->run.log, BERLU_LOG_INFO, "epoch %llu/%lld  step %llu  lr %.3g  train loss %.4f%s",
             (unsigned long long)row->epoch, (long long)t->settings.epochs, (unsigned long long)row->step, row->lr,
             row->train_loss, scores);
    if (t->hooks.epoch) {
        train_speed speed = report_speed(&t->times);
        t->hooks.epoch(t->hooks.context, row, &speed, best);
    }
    return status;
}

/* ---- the start ------------------------------------------------------------------------------------------------------- */

berlu_status report_initial_forward(trainer *t)
{
    return diagnosis_forward(t->diagnosis, t->train, t->initial, NULL, 0, 0);
}

/* A file of its own: readers of metrics.csv take its first row for the first epoch. The same bytes however often a run dies
 * before its first checkpoint. */
berlu_status report_initial_backward(trainer *t)
{
    text lines = {0};
    metrics_form form = form_of(t);
    metrics_row row = {.lr = NAN, .train_loss = NAN, .train_top1 = NAN, .test_loss = NAN, .test_top1 = NAN};
    row.test_top5 = row.grad_norm = row.ema_loss = row.ema_top1 = row.ema_top5 = NAN;
    berlu_status status = diagnosis_backward(t->diagnosis, t->train, t->initial);
    if (status == BERLU_OK)
        status = diagnosis_parameters(t->diagnosis, t->train, t->initial);
    if (status != BERLU_OK)
        return status;
    for (size_t i = 0; i < form.count; i++)
        row.lipschitz = fmax(row.lipschitz, t->initial[i * SITE_METRICS + SITE_LIPSCHITZ]);
    metrics_names(&lines, &form);
    metrics_line(&lines, &form, &row, t->initial);
    status = text_status(&lines);
    if (status == BERLU_OK)
        status = file_write_atomic_in(&t->run.folder, "start.csv", lines.data, lines.length);
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
        csv_text(&line, number_text_f32(digits, (float)values[i])); /* a clock has no more */
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

/* ---- what went bad --------------------------------------------------------------------------------------------------- */

static int finite_all(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

/* The first parameter of an array with a number that is not finite; gradients in the order the backward makes them. */
static const char *bad_parameter(trainer *t, engine_array array, int backwards)
{
    const graph *g = engine_graph(t->train);
    int count = graph_param_count(g);
    for (int i = 0; i < count; i++) {
        int p = backwards ? count - 1 - i : i;
        const tensor_info *info = graph_tensor(g, graph_param(g, p));
        size_t elements = (size_t)tensor_elements(info);
        const float *place = engine_host(t->train, array, p);
        float *values = place ? NULL : malloc(elements * sizeof *values);
        if (values && engine_get(t->train, array, p, values) == BERLU_OK)
            place = values;
        int bad = place && !finite_all(place, elements);
        free(values);
        if (bad)
            return info->name;
    }
    return NULL;
}

static const char *bad_site(trainer *t)
{
    const graph *g = engine_graph(t->train);
    for (int i = 0; i < graph_site_count(g); i++) {
        int64_t rows = engine_site_rows(t->train, i), channels = graph_site_at(g, i)->channels;
        float *values = malloc((size_t)(rows * channels) * sizeof *values);
        int bad = values && engine_site_read(t->train, i, 0, rows, values) == BERLU_OK &&
                  !finite_all(values, (size_t)(rows * channels));
        free(values);
        if (bad)
            return graph_site_at(g, i)->name;
    }
    return NULL;
}

/* Whether somebody removed what was saved. */
static int saved_gone(const trainer *t)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoints/step-%08llu", (unsigned long long)t->saved_updates);
    return t->saved_updates != UINT64_MAX && !folder_exists_in(&t->run.folder, name);
}

static const char *kept_text(char out[64], const trainer *t)
{
    if (saved_gone(t))
        strcpy(out, "its checkpoints were removed too");
    else if (t->saved_updates == UINT64_MAX)
        strcpy(out, "there is no checkpoint yet");
    else
        snprintf(out, 64, "the checkpoint of step %llu is kept", (unsigned long long)t->saved_updates);
    return out;
}

/* A checkpoint is only written when it can be gone on from. Weights may overflow in the very update that followed a finite
 * loss, and moments and averages with them. */
berlu_status report_state_finite(const trainer *t, engine *e, uint64_t updates)
{
    static const struct {
        engine_array array;
        const char *what;
    } arrays[] = {{ARRAY_WEIGHT, "the weight "},
                  {ARRAY_MOMENT1, "the first moment of "},
                  {ARRAY_MOMENT2, "the second moment of "},
                  {ARRAY_EMA, "the average of "}};
    for (size_t i = 0; i < COUNT(arrays); i++) {
        char kept[64];
        not_finite found = {0};
        berlu_status status = engine_has(e, arrays[i].array) ? finite_look(e, arrays[i].array, &found) : BERLU_OK;
        if (status != BERLU_OK)
            return report_not_saved(t, status);
        if (found.name)
            return berlu_fail(
                BERLU_ERR_NUMERIC,
                "step %llu: after the update %s%s is not finite (%s; a lower --lr or --clip 1 needs a new run)",
                (unsigned long long)updates, arrays[i].what, found.name, kept_text(kept, t));
    }
    return BERLU_OK;
}

berlu_status report_not_saved(const trainer *t, berlu_status status)
{
    char sentence[1024], kept[64];
    snprintf(sentence, sizeof sentence, "%s", berlu_last_error());
    return berlu_fail(status, "%s (%s%s)", sentence, kept_text(kept, t),
                      saved_gone(t) ? "" : "; mend it and continue with --resume");
}

/* In the order of the computation: images, weights, activations, logits; for a norm, the gradients. */
berlu_status report_not_finite(trainer *t, const char *what)
{
    (void)trainer_save_finish(t); /* the sentence says which checkpoint there is */
    size_t side = (size_t)t->model->config.image_size, images = (size_t)t->settings.batch * 3 * side * side;
    const char *kind = "the logits", *name = "";
    const char *gradient = strcmp(what, "loss") == 0 ? NULL : bad_parameter(t, ARRAY_GRADIENT, 1);
    const char *weight = gradient ? NULL : bad_parameter(t, ARRAY_WEIGHT, 0);
    const char *input = gradient || weight ? NULL : bad_site(t);
    if (t->images && !finite_all(t->images, images))
        kind = "the images";
    else if (gradient)
        kind = "the gradient of ", name = gradient;
    else if (weight)
        kind = "the weight ", name = weight;
    else if (input)
        kind = "what enters ", name = input;
    char kept[64];
    return berlu_fail(BERLU_ERR_NUMERIC,
                      "step %llu: the %s is not finite; first bad: %s%s (%s; a lower --lr or --clip 1 needs a new run)",
                      (unsigned long long)t->state.updates + 1, what, kind, name, kept_text(kept, t));
}
