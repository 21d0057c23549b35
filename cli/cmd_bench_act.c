/* cmd_bench_act.c - `berlu bench act`: speed of the activations, relative to copy and add.
 * SPDX-License-Identifier: MIT
 *
 * For each size it makes the rows, lets bench/bench_act.c time them together with the yardsticks
 * and prints them. The main numbers of a row are those of the first range of x; the times of the
 * other ranges follow. */
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"
#include "act_args.h"
#include "base/arena.h"
#include "base/threads.h"
#include "bench/bench_act.h"
#include "bench_explain.h"
#include "build_info.h"
#include "commands.h"
#include "io/act_text.h"
#include "output.h"
#include "progress.h"

static const option_row rows[] = {
    {"act", OPTION_STRINGS, "ACT", .help = "which activations (default: all)"},
    {"op", OPTION_CHOICE, .standard = "all", .choices = "all|forward|backward|backward_from_output",
     .help = "which op"},
    {"dtype", OPTION_CHOICE, .standard = "f32", .choices = "f32|bf16|f16|all", .help = "how numbers are stored"},
    {"n", OPTION_INTS, "N", .standard = "16Ki,256Ki,4Mi,64Mi", .least = 1, .most = 1ll << 34, .help = "sizes",
     OPTION_MANY},
    {"hint", OPTION_CHOICE, .standard = "auto", .choices = "auto|reuse|stream|both", .help = "kind of stores"},
    {"range", OPTION_FLOATS, "R", .standard = "3,12", .least = 0, .most = 1e6,
     .help = "x is uniform in +-R; in +-12 rare paths run", OPTION_MANY},
    {"seconds", OPTION_FLOAT, "S", .standard = "2", .least = 0.01, .most = 3600,
     .help = "time for each size, on the CPU"},
    {"device", OPTION_CHOICE, .standard = "cpu", .choices = "cpu|cuda", .help = "where"},
    {"explain", OPTION_FLAG, .help = "which kind of stores each row takes, by which rule, and why"},
    {0}};

static const char *const op_names[] = {"forward", "backward", "backward_from_output"};
static const char *const hint_names[] = {"auto", "reuse", "stream"};

typedef struct row_list {
    bench_row *rows;
    size_t count, capacity;
} row_list;

static berlu_status list_add(row_list *list, bench_row row)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        bench_row *more = realloc(list->rows, capacity * sizeof *more);
        if (!more)
            return berlu_fail_memory(capacity * sizeof *more, "the rows of a bench");
        list->rows = more;
        list->capacity = capacity;
    }
    list->rows[list->count++] = row;
    return BERLU_OK;
}

static int has_op(const berlu_act *act, berlu_act_op op, berlu_dtype dtype)
{
    return berlu_act_check(act, op, &(berlu_act_call){.dtype = dtype}) == BERLU_OK;
}

/* All requested dtypes, of those that have the op, and hints of one activation and op. */
static berlu_status add_variants(row_list *list, const options *o, const berlu_act *act, bench_row row)
{
    int dtype = options_choice(o, "dtype"), hint = options_choice(o, "hint");
    for (int d = BERLU_F32; d <= BERLU_F16; d++)
        for (int h = BERLU_HINT_AUTO; h <= BERLU_HINT_STREAM; h++) {
            if ((dtype != 3 && dtype != d) || !has_op(act, row.op, (berlu_dtype)d) ||
                (hint == 3 ? h == BERLU_HINT_AUTO : hint != h))
                continue;
            row.dtype = (berlu_dtype)d;
            row.hint = (berlu_hint)h;
            TRY(list_add(list, row));
        }
    return BERLU_OK;
}

static berlu_status add_act(row_list *list, const options *o, const char *spec, size_t n, double range)
{
    berlu_act *act = NULL;
    berlu_status status;
    TRY_DONE(act_from_text(&act, spec));
    for (int op = 0; op < 3; op++) {
        int asked = options_choice(o, "op");
        if (asked && asked != op + 1)
            continue;
        bench_row row = {.act = spec, .op = (berlu_act_op)op, .n = n, .range = range};
        row.cuda = options_choice(o, "device");
        berlu_isa asked_isa = act_isa_of(options_isa(o));
        row.isa = asked_isa == BERLU_ISA_BEST ? berlu_act_isa(act) : asked_isa;
        row.threads = threads_granted(options_threads(o));
        TRY_DONE(add_variants(list, o, act, row));
    }
done:
    berlu_act_free(act);
    return status;
}

/* As many rows for each range, one range after the other. */
static berlu_status rows_of_size(row_list *list, const options *o, size_t n)
{
    size_t given = options_count(o, "act");
    for (size_t r = 0; r < options_count(o, "range"); r++)
        for (size_t i = 0; given ? i < given : berlu_act_builtin(i) != NULL; i++)
            TRY(add_act(list, o, given ? options_strings(o, "act")[i] : berlu_act_builtin(i), n,
                        options_floats(o, "range")[r]));
    if (list->count == 0)
        return berlu_fail(BERLU_ERR_ARG, "none of these activations has that op in that dtype");
    return BERLU_OK;
}

/* The times of the same row in the other ranges, `step` rows apart. */
static void other_ranges_json(output *out, const bench_row *r, size_t step, size_t ranges)
{
    output_array(out, "other_ranges");
    for (size_t i = 1; i < ranges; i++) {
        output_object(out, NULL);
        output_real(out, "range", r[i * step].range);
        output_real(out, "median_ns", r[i * step].median_ns);
        output_real(out, "ratio", r[i * step].ratio);
        output_end(out);
    }
    output_end(out);
}

static void row_json(output *out, const bench_row *r, size_t step, size_t ranges)
{
    output_object(out, NULL);
    output_string(out, "act", r->act);
    output_string(out, "op", op_names[r->op]);
    output_string(out, "dtype", berlu_dtype_name(r->dtype));
    output_string(out, "isa", r->cuda ? "cuda" : berlu_isa_name(r->isa));
    output_string(out, "device", r->cuda ? "cuda" : "cpu");
    output_int(out, "n", (int64_t)r->n);
    output_int(out, "threads", r->threads);
    output_string(out, "hint", hint_names[r->hint]);
    output_real(out, "range", r->range);
    output_real(out, "median_ns", r->median_ns);
    output_int(out, "bytes", (int64_t)r->bytes);
    output_real(out, "gb_per_s", r->gb_per_s);
    output_string(out, "yardstick", r->yardstick);
    output_real(out, "ratio", r->ratio);
    other_ranges_json(out, r, step, ranges);
    output_end(out);
}

static void row_print(const bench_row *r, size_t step, size_t ranges)
{
    printf("%-28s %-20s %-4s %-6s %9zu %2d %-6s %11.0f ns %7.4f ns/x %7.1f GB/s  %5.2f x %s", r->act, op_names[r->op],
           berlu_dtype_name(r->dtype), r->cuda ? "cuda" : berlu_isa_name(r->isa), r->n, r->threads, hint_names[r->hint],
           r->median_ns, r->median_ns / (double)r->n, r->gb_per_s, r->ratio, r->yardstick);
    for (size_t i = 1; i < ranges; i++)
        printf("  +-%g: %.2f x", r[i * step].range, r[i * step].ratio);
    printf("\n");
}

/* A GPU bench holds the arrays of one range at a time. */
static berlu_status run_rows(const options *o, row_list *list, size_t step)
{
    if (!options_choice(o, "device"))
        return bench_act_run(list->rows, list->count, options_float(o, "seconds"), memory_free());
#if BUILD_CUDA
    for (size_t at = 0; at < list->count; at += step)
        TRY(bench_act_cuda_run(list->rows + at, step));
    return BERLU_OK;
#else
    (void)step;
    return berlu_fail(BERLU_ERR_UNSUPPORTED, "--device cuda: this build has no CUDA (berlu doctor tells what it has)");
#endif
}

static berlu_status bench_size(options *o, output *out, size_t n)
{
    row_list list = {0};
    berlu_status status;
    TRY_DONE(rows_of_size(&list, o, n));
    size_t ranges = options_count(o, "range"), step = list.count / ranges;
    TRY_DONE(run_rows(o, &list, step));
    for (size_t i = 0; i < step; i++)
        if (options_json(o))
            row_json(out, &list.rows[i], step, ranges);
        else {
            row_print(&list.rows[i], step, ranges);
            if (options_flag(o, "explain"))
                bench_explain_row(&list.rows[i]);
        }
done:
    free(list.rows);
    return status;
}

/* Refuses options that only the CPU's kernels have, instead of silently ignoring them on a GPU. */
static berlu_status check_device(const options *o)
{
    static const char *const cpu_only[] = {"seconds", "hint", "threads", "isa", "explain"};
    for (size_t i = 0; options_choice(o, "device") && i < sizeof cpu_only / sizeof cpu_only[0]; i++)
        if (options_given(o, cpu_only[i]))
            return berlu_fail(BERLU_ERR_ARG, "option --%s: goes with --device cpu", cpu_only[i]);
    return BERLU_OK;
}

static berlu_status bench_act(options *o)
{
    TRY(check_device(o));
    if (options_flag(o, "explain") && options_json(o))
        return berlu_fail(BERLU_ERR_ARG, "option --explain: goes without --json, where each row has its hint");
    if (options_flag(o, "explain"))
        TRY(bench_explain(options_count(o, "act") ? options_strings(o, "act")[0] : berlu_act_builtin(0),
                          threads_granted(options_threads(o))));
    berlu_status status = BERLU_OK;
    output out;
    progress p;
    size_t sizes = options_count(o, "n");
    output_start(&out);
    output_array(&out, "rows");
    progress_start(&p, "bench act", "sizes", sizes, options_json(o));
    for (size_t i = 0; i < sizes && status == BERLU_OK; i++) {
        status = bench_size(o, &out, (size_t)options_ints(o, "n")[i]);
        progress_step(&p, i + 1);
    }
    progress_finish(&p);
    if (status != BERLU_OK || !options_json(o)) {
        text_free(&out.json);
        return status;
    }
    output_end(&out);
    return output_print(&out);
}

const command cmd_bench_act = {
    "bench act", "how fast the activations are, as a ratio to copy and add",
    "Times every activation and op, interleaved with the best copy (forward) and the best add of two arrays (backward) "
    "of\n"
    "this machine, and prints medians and their ratio. A backward includes the gradients of learned parameters.\n"
    "x is uniform in +-3, and once more in +-12, where the rare paths of a formula run.\n\n"
    "  berlu bench act --act berlu --n 16Ki 4Mi --threads 1 --isa avx2\n"
    "  berlu bench act --act gelu --act silu --op forward --range 12 --json",
    rows, bench_act};
