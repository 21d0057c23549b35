/* progress.c - see progress.h. SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

static const uint64_t second = 1000000000u;

void progress_start(progress *p, const char *what, const char *unit, uint64_t total, int quiet)
{
    *p = (progress){.what = what, .unit = unit, .total = total, .quiet = quiet, .terminal = isatty(STDERR_FILENO)};
    p->began = p->shown = clock_ns();
}

void progress_note(progress *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->note, sizeof p->note, format, args);
    va_end(args);
}

/* "7.3 s", "2 min 05 s", "3 h 20 min" */
static const char *span_text(char out[32], double seconds)
{
    if (seconds < 60)
        snprintf(out, 32, "%.1f s", seconds);
    else if (seconds < 3600)
        snprintf(out, 32, "%d min %02d s", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(out, 32, "%.0f h %02d min", (double)(long)(seconds / 3600), (int)(seconds / 60) % 60);
    return out;
}

int terminal_colours(int fd)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fd) && !(none && *none) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

/* The columns of a line: one less than the terminal has, because some terminals wrap after a full
 * line. Queried each time, so that a resized window needs no signal. */
static size_t line_width(void)
{
    struct winsize size;
    enum { UNKNOWN = 79 };
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : UNKNOWN;
}

/* A line as it is drawn; the filled part of the bar is line[bar] to line[bar + full]. */
typedef struct layout {
    char line[320];
    size_t length, bar, full;
} layout;

__attribute__((format(printf, 2, 3))) static void add(layout *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int count = vsnprintf(l->line + l->length, sizeof l->line - l->length, format, args);
    va_end(args);
    l->length += count > 0 ? (size_t)count : 0;
    l->length = l->length < sizeof l->line ? l->length : sizeof l->line - 1;
}

static void add_bar(layout *l, size_t width, double part)
{
    l->bar = l->length + 1;
    l->full = (size_t)(part * (double)width + 0.5);
    add(l, "[%*s] ", (int)width, "");
    memset(l->line + l->bar, '=', l->full);
}

/* The bytes of the first `items` items of a note, which are separated by ", ". */
static size_t note_length(const char *note, int items)
{
    const char *end = note;
    for (; items > 0 && end; items--)
        end = strstr(end == note ? end : end + 2, ", ");
    return items > 0 || !end ? strlen(note) : (size_t)(end - note);
}

static int note_items(const char *note)
{
    int items = *note != 0;
    for (; (note = strstr(note, ", ")); note += 2)
        items++;
    return items;
}

/* The parts of a line: the bar's columns, "7104/7680 images", the rate. */
typedef struct form {
    size_t bar;
    int counts, rate, items_least; /* items that the note keeps before the next form is tried */
} form;

/* The line in one form, with the first `items` items of the note. */
static void line_make(layout *l, const progress *p, uint64_t now, const form *f, int items)
{
    char span[32];
    double seconds = (double)(now - p->began) * 1e-9, mean = seconds > 0 ? (double)p->done / seconds : 0;
    double rate = p->rate > 0 ? p->rate : mean;
    *l = (layout){.length = 0};
    add(l, "%s ", p->what);
    if (p->total) {
        double part = p->done >= p->total ? 1 : (double)p->done / (double)p->total;
        if (f->bar)
            add_bar(l, f->bar, part);
        add(l, f->bar ? "%3.0f%% " : "%.0f%% ", part * 100);
    }
    if (f->counts && p->total)
        add(l, "%llu/%llu %s, ", (unsigned long long)p->done, (unsigned long long)p->total, p->unit);
    else if (f->counts || !p->total)
        add(l, "%llu %s, ", (unsigned long long)p->done, p->unit);
    if (f->rate)
        add(l, "%.*f/s, ", rate < 10 ? 2 : 0, rate);
    if (p->total > p->done && mean > 0)
        add(l, "%s left", span_text(span, (double)(p->total - p->done) / mean));
    else
        add(l, "%s", span_text(span, seconds));
    if (items > 0)
        add(l, ", %.*s", (int)note_length(p->note, items), p->note);
}

/* Finds the most complete line that fits: first the bar is shortened and the counts are dropped,
 * then the last items of the note, then bar and rate. A line still too long is cut, never inside a
 * UTF-8 character. */
static void line_fit(layout *l, const progress *p, uint64_t now)
{
    enum { ALL = 99 };
    static const form forms[] = {{28, 1, 1, ALL}, {10, 1, 1, ALL}, {10, 0, 1, 2}, {0, 0, 1, 2}, {0, 0, 0, 0}};
    size_t width = line_width();
    int all = note_items(p->note);
    for (size_t i = 0; i < COUNT(forms); i++) {
        int least = forms[i].items_least < all ? forms[i].items_least : all;
        for (int items = all; items >= least; items--) {
            line_make(l, p, now, &forms[i], items);
            if (l->length <= width)
                return;
        }
    }
    l->length = width;
    while (l->length > 0 && ((unsigned char)l->line[l->length] & 0xc0) == 0x80)
        l->length--;
    l->line[l->length] = 0;
}

static void line_draw(progress *p, uint64_t now)
{
    layout l;
    if (p->terminal) {
        line_fit(&l, p, now);
        int green = l.full > 0 && l.bar + l.full <= l.length && terminal_colours(STDERR_FILENO);
        fprintf(stderr, "\r\033[K%.*s%s%.*s%s%s", (int)l.bar, l.line, green ? "\033[32m" : "", (int)l.full,
                l.line + l.bar, green ? "\033[0m" : "", l.line + l.bar + l.full);
    } else {
        line_make(&l, p, now, &(form){.counts = 1, .rate = 1}, note_items(p->note));
        fprintf(stderr, "%s\n", l.line);
    }
    fflush(stderr);
    p->drawn = 1;
    p->shown = now;
}

/* A bar is redrawn ten times a second; lines are printed every ten seconds, which keeps logs
 * short. */
static int due_at(const progress *p, uint64_t now)
{
    uint64_t pause = p->terminal ? second / 10 : 10 * second;
    return now - p->began >= second && (!p->drawn || now - p->shown >= pause);
}

int progress_due(const progress *p)
{
    return !p->quiet && due_at(p, clock_ns());
}

void progress_step(progress *p, uint64_t done)
{
    uint64_t now = p->quiet ? 0 : clock_ns();
    p->done = done;
    if (!p->quiet && due_at(p, now))
        line_draw(p, now);
}

void progress_clear(progress *p)
{
    if (p->drawn && p->terminal)
        fputs("\r\033[K", stderr);
}

void progress_finish(progress *p)
{
    if (!p->drawn)
        return;
    line_draw(p, clock_ns());
    if (p->terminal)
        fputc('\n', stderr);
}

void warning_show(void *context, berlu_log_level level, const char *line)
{
    if (level != BERLU_LOG_WARNING)
        return;
    if (context)
        progress_clear(context);
    int yellow = terminal_colours(STDERR_FILENO);
    fprintf(stderr, "%swarning: %s%s\n", yellow ? "\033[33m" : "", yellow ? "\033[0m" : "", line);
}
