/* bench_act_cuda.c - times activations on the GPU, interleaved with copy and add.
 * SPDX-License-Identifier: MIT
 *
 * The counterpart of bench_act.c: each round runs every row and every yardstick once between two
 * events; medians are compared. Rows of one dtype share their arrays, x uniform in +-range. */
#include <stdlib.h>
#include <string.h>

#include <berlu/act_cuda.h>

#include "base/half.h"
#include "base/philox.h"
#include "base/status.h"
#include "bench/bench_act.h"
#include "bench/yardstick_cuda.h"
#include "io/act_text.h"

enum { ROUNDS = 21, INNER = 3, PATTERN = 1 << 20 };

typedef struct subject {
    int yard; /* 1: copy, 2: add, 3: the driver's copy, 0: a row */
    bench_row *row;
    berlu_act *act;
    float times[ROUNDS];
} subject;

typedef struct device_bench {
    void *x, *dy, *y, *workspace;
    float *grad;
    size_t n, workspace_bytes;
    berlu_dtype dtype;
    cudaEvent_t start, stop;
    subject *subjects;
    size_t count;
} device_bench;

static berlu_status cuda_status(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return BERLU_OK;
    cudaGetLastError();
    return berlu_fail(BERLU_ERR_DEVICE, "%s: %s", what, cudaGetErrorString(error));
}

/* n elements: a pattern of 2^20 random ones, repeated. */
static berlu_status device_numbers(void **out, size_t n, berlu_dtype dtype, double range, uint64_t seed)
{
    size_t size = berlu_dtype_size(dtype), part = n < PATTERN ? n : PATTERN;
    char *host = malloc(part * size + 4);
    if (!host)
        return berlu_fail_memory(part * size, "the arrays of a bench");
    for (size_t i = 0; i < part; i++) {
        float v = (philox_f32(philox_draw(seed, PURPOSE_TEST, 0, i / 4, 0).w[i % 4]) * 2 - 1) * (float)range;
        uint16_t half = dtype == BERLU_BF16 ? bf16_from_f32(v) : f16_from_f32(v);
        memcpy(host + i * size, dtype == BERLU_F32 ? (void *)&v : (void *)&half, size);
    }
    berlu_status status = cuda_status(cudaMalloc(out, n * size), "the arrays of a bench");
    for (size_t at = 0; status == BERLU_OK && at < n; at += part)
        status = cuda_status(
            cudaMemcpy((char *)*out + at * size, host, (n - at < part ? n - at : part) * size, cudaMemcpyHostToDevice),
            "the arrays of a bench");
    free(host);
    return status;
}

static berlu_act_call call_of(const device_bench *b, const subject *s)
{
    berlu_act_op op = s->row->op;
    berlu_act_call call = {.dtype = b->dtype, .rows = b->n, .channels = 1, .x = b->x, .dy = b->dy, .dx = b->y};
    call.y = op == BERLU_ACT_BACKWARD_FROM_OUTPUT ? b->x : op == BERLU_ACT_BACKWARD ? NULL : b->y;
    for (size_t p = 0; p < berlu_act_param_count(s->act); p++) {
        berlu_act_param_info info;
        if (berlu_act_param(s->act, p, &info) == BERLU_OK && info.learned)
            call.param[p].grad = b->grad + p;
    }
    call.workspace = b->workspace;
    call.workspace_bytes = b->workspace_bytes;
    return call;
}

static berlu_status subject_run(const device_bench *b, const subject *s)
{
    if (s->yard == 1)
        return cuda_status(yardstick_cuda_copy(b->y, b->x, b->dtype, b->n), "copy");
    if (s->yard == 2)
        return cuda_status(yardstick_cuda_add(b->y, b->x, b->dy, b->dtype, b->n), "add");
    if (s->yard == 3)
        return cuda_status(cudaMemcpyAsync(b->y, b->x, b->n * berlu_dtype_size(b->dtype), cudaMemcpyDeviceToDevice, 0),
                           "copy");
    berlu_act_call call = call_of(b, s);
    return berlu_act_cuda_run(s->act, s->row->op, &call, NULL);
}

/* Three yardsticks, then the rows of this dtype. */
static berlu_status subjects_make(device_bench *b, bench_row *rows, size_t count)
{
    b->subjects = calloc(count + 3, sizeof *b->subjects);
    if (!b->subjects)
        return berlu_fail_memory((count + 3) * sizeof *b->subjects, "a bench");
    for (int yard = 1; yard <= 3; yard++)
        b->subjects[b->count++].yard = yard;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].dtype != b->dtype)
            continue;
        subject *s = &b->subjects[b->count++];
        s->row = &rows[i];
        TRY(act_from_text(&s->act, rows[i].act));
        berlu_act_call call = call_of(b, s);
        size_t bytes = berlu_act_cuda_workspace(s->act, rows[i].op, &call);
        b->workspace_bytes = bytes > b->workspace_bytes ? bytes : b->workspace_bytes;
    }
    return BERLU_OK;
}

static berlu_status bench_make(device_bench *b, bench_row *rows, size_t count)
{
    TRY(cuda_status(cudaMalloc((void **)&b->grad, BERLU_ACT_PARAMS * sizeof(float)), "a bench"));
    TRY(device_numbers(&b->x, b->n, b->dtype, rows[0].range, 1));
    TRY(device_numbers(&b->dy, b->n, b->dtype, 1, 2));
    TRY(cuda_status(cudaMalloc(&b->y, b->n * berlu_dtype_size(b->dtype)), "the arrays of a bench"));
    TRY(subjects_make(b, rows, count));
    TRY(cuda_status(cudaMalloc(&b->workspace, b->workspace_bytes + 64), "the workspace of a bench"));
    TRY(cuda_status(cudaEventCreate(&b->start), "an event"));
    return cuda_status(cudaEventCreate(&b->stop), "an event");
}

static void bench_free(device_bench *b)
{
    for (size_t i = 0; b->subjects && i < b->count; i++)
        berlu_act_free(b->subjects[i].act);
    free(b->subjects);
    void *memory[] = {b->x, b->dy, b->y, b->workspace, b->grad};
    for (size_t i = 0; i < COUNT(memory); i++)
        cudaFree(memory[i]);
    if (b->start)
        cudaEventDestroy(b->start);
    if (b->stop)
        cudaEventDestroy(b->stop);
}

static berlu_status bench_rounds(device_bench *b)
{
    for (int r = -2; r < ROUNDS; r++) /* two rounds of warm-up */
        for (size_t j = 0; j < b->count; j++) {
            subject *s = &b->subjects[(j + (size_t)(r + 2)) % b->count];
            float ms = 0;
            TRY(cuda_status(cudaEventRecord(b->start, 0), "an event"));
            for (int i = 0; i < INNER; i++)
                TRY(subject_run(b, s));
            TRY(cuda_status(cudaEventRecord(b->stop, 0), "an event"));
            TRY(cuda_status(cudaEventSynchronize(b->stop), "a kernel"));
            TRY(cuda_status(cudaEventElapsedTime(&ms, b->start, b->stop), "an event"));
            if (r >= 0)
                s->times[r] = ms / INNER;
        }
    return BERLU_OK;
}

static int by_value(const void *a, const void *b)
{
    float u = *(const float *)a, v = *(const float *)b;
    return u < v ? -1 : u > v;
}

static void rows_fill(device_bench *b)
{
    double best[2] = {1e30, 1e30};
    for (size_t i = 0; i < b->count; i++) {
        subject *s = &b->subjects[i];
        qsort(s->times, ROUNDS, sizeof s->times[0], by_value);
        double ns = (double)s->times[ROUNDS / 2] * 1e6;
        if (s->yard && ns < best[s->yard == 2])
            best[s->yard == 2] = ns;
        if (s->row)
            s->row->median_ns = ns;
    }
    for (size_t i = 0; i < b->count; i++) {
        bench_row *row = b->subjects[i].row;
        if (!row)
            continue;
        int add = row->op == BERLU_ACT_BACKWARD || row->op == BERLU_ACT_BACKWARD_FROM_OUTPUT;
        row->bytes = (double)b->n * (double)berlu_dtype_size(b->dtype) * (add ? 3 : 2);
        row->gb_per_s = row->bytes / row->median_ns;
        row->yardstick = add ? "add" : "copy";
        row->ratio = row->median_ns / best[add];
    }
}

berlu_status bench_act_cuda_run(bench_row *rows, size_t count)
{
    if (berlu_cuda_count() == 0)
        return BERLU_ERR_DEVICE;
    for (int d = BERLU_F32; d <= BERLU_F16; d++) {
        device_bench b = {.n = rows[0].n, .dtype = (berlu_dtype)d};
        int any = 0;
        for (size_t i = 0; i < count; i++)
            any |= rows[i].dtype == b.dtype;
        if (!any)
            continue;
        berlu_status status = bench_make(&b, rows, count);
        if (status == BERLU_OK)
            status = bench_rounds(&b);
        if (status == BERLU_OK)
            rows_fill(&b);
        bench_free(&b);
        if (status != BERLU_OK)
            return status;
    }
    return BERLU_OK;
}
