/* profile.c - where the time of a step goes. SPDX-License-Identifier: MIT
 *
 * The backend adds up the seconds of every call; here equal calls become one line. By op the lines
 * show the kinds of work; by shape they say which layer to improve: the same product runs at very
 * different speeds at 16384 x 24 and at 1040 x 384. Beside the time of a shape stand the bytes of
 * its operands, each counted once, and the operations of its products, both per second; with the
 * device's two peaks, also the share of the time that the slower of them would take (a
 * roofline). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"

typedef struct profile_line {
    op_id op;
    int64_t rows, in, out; /* 0 where lines are by op */
    int calls;
    double seconds;
    double bytes, flops; /* of all these calls in one step */
} profile_line;

static int by_seconds(const void *a, const void *b)
{
    const profile_line *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : (int)x->op - (int)y->op;
}

/* Lists that are parts of others (the norm alone) keep times of their own; all add to the same
 * calls. */
static void seconds_collect(const engine *e, double *seconds, int reset)
{
    for (int i = 0; i < PROGRAM_COUNT; i++)
        if (e->program[i])
            e->backend->seconds(e->program[i], seconds + e->first[i], reset);
}

void engine_profile_reset(engine *e)
{
    double *dropped = e->options.profile ? calloc((size_t)engine_calls_end(e) - IMAGES_CALL, sizeof *dropped) : NULL;
    if (dropped)
        seconds_collect(e, dropped - IMAGES_CALL, 1);
    free(dropped);
    e->profiled_steps = 0;
}

static int is_product(op_id op)
{
    return op == OP_LINEAR || op == OP_LINEAR_DX || op == OP_LINEAR_DW || op == OP_LINEAR_ACT ||
           op == OP_LINEAR_DX_ACT || op == OP_LINEAR_NORM || op == OP_MLP;
}

static double operand_bytes(const op_operand *o)
{
    return o->info ? (double)o->rows * (double)o->channels * (double)dtype_bytes(o->dtype) : 0;
}

static double bytes_of(const op_call *c)
{
    double bytes = 0;
    for (int i = 0; i < NODE_INPUTS; i++)
        bytes += operand_bytes(&c->in[i]);
    for (int i = 0; i < NODE_OUTPUTS; i++)
        bytes += operand_bytes(&c->out[i]);
    return bytes;
}

/* Two for each multiply-add of a product; attention has two products, its gradient five. */
static double flops_of(const op_call *c, const profile_line *line)
{
    if (is_product(c->op))
        return 2.0 * (double)line->rows * (double)line->in * (double)line->out;
    if (c->op != OP_ATTENTION && c->op != OP_ATTENTION_GRAD)
        return 0;
    const op_operand *y = c->op == OP_ATTENTION ? &c->out[0] : &c->in[0];
    double tokens = (double)y->info->size[y->info->rank - 2];
    return (c->op == OP_ATTENTION ? 4 : 10) * tokens * (double)y->rows * (double)y->channels;
}

/* The line of a call, without its times. A product has the sizes of its layer, forward and backward
 * alike. */
static profile_line line_of(const op_call *c, engine_profile_by by)
{
    profile_line line = {.op = c->op, .calls = 1};
    if (by == PROFILE_BY_OP || !c->in[0].info)
        return line;
    line.rows = c->in[0].rows;
    line.in = c->in[0].channels;
    line.out = c->out[0].channels;
    if (c->op == OP_MLP) /* both layers */
        line.out = 2 * c->in[1].rows;
    if (c->op == OP_LINEAR_DX || c->op == OP_LINEAR_DX_ACT || c->op == OP_LINEAR_DW) { /* these read dy */
        line.in = c->op == OP_LINEAR_DW ? c->in[1].channels : c->out[0].channels;
        line.out = c->in[0].channels;
    }
    line.bytes = bytes_of(c);
    line.flops = flops_of(c, &line);
    return line;
}

static void line_add(profile_line *lines, int *count, const profile_line *more)
{
    int i = 0;
    while (i < *count && (lines[i].op != more->op || lines[i].rows != more->rows || lines[i].in != more->in ||
                          lines[i].out != more->out))
        i++;
    if (i == *count)
        lines[(*count)++] = (profile_line){.op = more->op, .rows = more->rows, .in = more->in, .out = more->out};
    lines[i].calls += more->calls;
    lines[i].seconds += more->seconds;
    lines[i].bytes += more->bytes;
    lines[i].flops += more->flops;
}

static int lines_make(const engine *e, engine_profile_by by, const double *seconds, profile_line *lines)
{
    int count = 0;
    for (int i = IMAGES_CALL; i < engine_calls_end(e); i++) {
        profile_line line = line_of(&e->calls[i], by);
        line.seconds = seconds[i];
        if ((i >= 0 && i < e->call_count) || seconds[i] > 0)
            line_add(lines, &count, &line);
    }
    qsort(lines, (size_t)count, sizeof *lines, by_seconds);
    return count;
}

/* The columns of a shape: bytes of a call, GB/s, GFLOP/s, share of the time that the peaks
 * allow. */
static void rates_print(text *out, const profile_line *line, double seconds, const engine_profile *how)
{
    double limit = fmax(how->bytes_per_s > 0 ? line->bytes / how->bytes_per_s : 0,
                        how->flops_per_s > 0 ? line->flops / how->flops_per_s : 0);
    text_add(out, " %9.4g %8.4g", 1e-6 * line->bytes / line->calls, 1e-9 * line->bytes / seconds);
    if (line->flops > 0)
        text_add(out, " %9.4g", 1e-9 * line->flops / seconds);
    else if (limit > 0)
        text_add(out, " %9s", "");
    if (limit > 0)
        text_add(out, " %6.2f", limit / seconds);
}

static void line_print(text *out, const profile_line *line, double steps, double total, const engine_profile *how)
{
    char shape[64] = "";
    if (line->rows)
        snprintf(shape, sizeof shape, "%lld x %lld, %lld", (long long)line->rows, (long long)line->in,
                 (long long)line->out);
    text_add(out, "%-20s %-20s %6d %10.3f %6.1f%%", op_rules[line->op].name, shape, line->calls,
             1e3 * line->seconds / steps, 100 * line->seconds / total);
    if (line->rows)
        rates_print(out, line, line->seconds / steps, how);
    text_string(out, "\n");
}

berlu_status engine_profile_text(const engine *e, const engine_profile *how, text *out)
{
    int by_shape = how->by == PROFILE_BY_SHAPE, peaks = how->bytes_per_s > 0 || how->flops_per_s > 0;
    if (!e->options.profile)
        return berlu_fail(BERLU_ERR_ARG, "engine: this engine was made without a profile");
    size_t most = (size_t)engine_calls_end(e) - IMAGES_CALL;
    profile_line *lines = calloc(most, sizeof *lines + sizeof(double));
    if (!lines)
        return berlu_fail_memory(most * sizeof *lines, "a profile");
    double *seconds = (double *)(lines + most) - IMAGES_CALL;
    double total = 0, steps = e->profiled_steps ? e->profiled_steps : 1;
    seconds_collect(e, seconds, 0);
    int count = lines_make(e, how->by, seconds, lines);
    for (int i = 0; i < count; i++)
        total += lines[i].seconds;
    text_add(out, "%-20s %-20s %6s %10s %7s%s%s\n", "op", by_shape ? "rows x in, out" : "", "calls", "ms/step", "share",
             by_shape ? "   MB/call     GB/s   GFLOP/s" : "", by_shape && peaks ? "  floor" : "");
    for (int i = 0; i < count && lines[i].seconds > 0; i++)
        line_print(out, &lines[i], steps, total, how);
    text_add(out, "%-20s %-20s %6d %10.3f %6.1f%%\n", "all", "", e->call_count, 1e3 * total / steps, 100.0);
    free(lines);
    return text_status(out);
}
