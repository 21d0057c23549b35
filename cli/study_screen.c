/* study_screen.c - see study_screen.h. SPDX-License-Identifier: MIT */
#include "study_screen.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"

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
        if (w->landscape) {
            text_add(out, "  %-28.28s seed %-3lld landscape of its weights\n", v->study->cells[r->cell].label,
                     (long long)r->seed);
            ++*lines;
            continue;
        }
        text_add(out, "  %-28.28s seed %-3lld epoch %-4llu %3.0f %%  loss %-7.4f", v->study->cells[r->cell].label,
                 (long long)r->seed, (unsigned long long)w->epoch,
                 w->steps ? 100.0 * (double)w->step / (double)w->steps : 0.0, w->loss);
        if (!isnan(w->top1))
            text_add(out, " top-1 %5.2f", w->top1);
        text_add(out, " %.0f images/s, left ", w->images_per_s);
        time_print(out,
                   w->step > w->first_step && w->steps >= w->step
                       ? (clock_seconds() - w->began) * (double)(w->steps - w->step) / (double)(w->step - w->first_step)
                       : NAN);
        text_string(out, "\n");
        ++*lines;
    }
}

/* Rows of the table of means that fit below the workers on a small terminal. */
enum { MEANS = 16 };

/* Mean and deviation of what is done, cell by cell; nothing before the first run is. */
static void means_print(text *out, const study_view *v, int *lines)
{
    size_t shown = 0, hidden = 0;
    for (size_t c = 0; c < v->study->cell_count; c++) {
        double sum = 0, squares = 0;
        size_t n = 0, all = 0;
        for (size_t i = 0; i < v->runs->count; i++) {
            double value = study_entry_metric(&v->runs->items[i], v->study->metric);
            all += v->runs->items[i].cell == c;
            if (v->runs->items[i].cell == c && !isnan(value))
                n++, sum += value;
        }
        if (!n)
            continue;
        for (size_t i = 0; i < v->runs->count; i++) {
            double value = study_entry_metric(&v->runs->items[i], v->study->metric);
            if (v->runs->items[i].cell == c && !isnan(value))
                squares += (value - sum / (double)n) * (value - sum / (double)n);
        }
        if (shown++ >= MEANS) {
            hidden++;
            continue;
        }
        text_add(out, "  %-36.36s %zu of %zu  %s %.2f", v->study->cells[c].label, n, all, v->study->metric,
                 sum / (double)n);
        text_add(out, n > 1 ? " (sd %.2f)\n" : "\n", n > 1 ? sqrt(squares / (double)(n - 1)) : 0.0);
        ++*lines;
    }
    if (hidden) {
        text_add(out, "  and %zu cells more\n", hidden);
        ++*lines;
    }
}

static void runs_print(text *out, const study_view *v, int *lines)
{
    size_t shown = 0;
    for (size_t i = 0; i < v->runs->count && shown < MEANS; i++) {
        const study_entry *r = &v->runs->items[i];
        if (r->same_as != i || r->state != STUDY_RUNNING)
            continue;
        text_add(out, "  %-28.28s seed %-3lld step %llu saved, on %.32s\n", v->study->cells[r->cell].label,
                 (long long)r->seed, (unsigned long long)r->record.step, r->record.host);
        shown++;
        ++*lines;
    }
}

void study_show(void *context, const study_view *v)
{
    study_screen *s = context;
    text out = {0};
    int lines = 1;
    if (s->quiet || (!s->terminal && s->shown && clock_seconds() - s->shown < 30))
        return;
    s->shown = clock_seconds();
    if (s->terminal && s->lines)
        text_add(&out, "\033[%dA\033[J", s->lines);
    if (s->terminal && v->slots)
        workers_print(&out, v, &lines);
    else if (s->terminal)
        runs_print(&out, v, &lines);
    counts_print(&out, v);
    if (s->terminal)
        means_print(&out, v, &lines);
    if (out.data)
        fputs(out.data, stderr);
    s->lines = lines;
    text_free(&out);
}
