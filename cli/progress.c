/* progress.c - see progress.h. SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

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

static void bar_draw(char *out, size_t width, double part)
{
    size_t full = (size_t)(part * (double)width + 0.5);
    memset(out, '=', full);
    memset(out + full, ' ', width - full);
    out[width] = 0;
}

/* Cuts a line to the terminal's width, so that drawing it again covers it. The width is asked for each time: a change of
 * the window needs no signal then. Never in the middle of a UTF-8 character. */
static void line_cut(char *line)
{
    struct winsize size;
    size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 0;
    if (width == 0 || strlen(line) <= width)
        return;
    while (width > 0 && ((unsigned char)line[width] & 0xc0) == 0x80)
        width--;
    line[width] = 0;
}

static void line_draw(progress *p, uint64_t now)
{
    enum { WIDTH = 28 };
    char line[320], bar[WIDTH + 1] = "", span[32];
    double seconds = (double)(now - p->began) * 1e-9, rate = seconds > 0 ? (double)p->done / seconds : 0;
    int at = snprintf(line, sizeof line, "%s ", p->what);
    if (p->total) {
        double part = p->done >= p->total ? 1 : (double)p->done / (double)p->total;
        bar_draw(bar, WIDTH, part);
        at += snprintf(line + at, sizeof line - (size_t)at, p->terminal ? "[%s] %3.0f%% " : "%.0s%.0f%% ", bar,
                       part * 100);
    }
    at += snprintf(line + at, sizeof line - (size_t)at, "%llu", (unsigned long long)p->done);
    if (p->total)
        at += snprintf(line + at, sizeof line - (size_t)at, "/%llu", (unsigned long long)p->total);
    at += snprintf(line + at, sizeof line - (size_t)at, " %s, %.*f/s", p->unit, rate < 10 ? 2 : 0, rate);
    if (p->total > p->done && rate > 0)
        at += snprintf(line + at, sizeof line - (size_t)at, ", %s left",
                       span_text(span, (double)(p->total - p->done) / rate));
    else
        at += snprintf(line + at, sizeof line - (size_t)at, ", %s", span_text(span, seconds));
    if (*p->note)
        snprintf(line + at, sizeof line - (size_t)at, ", %s", p->note);
    if (p->terminal)
        line_cut(line);
    fprintf(stderr, p->terminal ? "\r\033[K%s" : "%s\n", line);
    fflush(stderr);
    p->drawn = 1;
    p->shown = now;
}

/* A bar moves ten times a second; lines come every ten seconds, so that a log of a day stays readable. */
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
