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
        text_add(out, "  %-28.28s seed %-3lld epoch %-4llu %3.0f %%  loss %-7.4f", v->study->cells[r->cell].label,
                 (long long)r->seed, (unsigned long long)w->epoch,
                 w->steps ? 100.0 * (double)w->step / (double)w->steps : 0.0, w->loss);
        if (!isnan(w->top1))
            text_add(out, " top-1 %5.2f", w->top1);
        text_add(out, " %.0f images/s\n", w->images_per_s);
        ++*lines;
    }
}

void study_show(void *context, const study_view *v)
{
    study_screen *s = context;
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
