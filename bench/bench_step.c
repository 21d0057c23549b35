/* bench_step.c - times forward, backward and update of whole steps on random images.
 * SPDX-License-Identifier: MIT
 *
 * A step is that of training: forward, loss, backward, clipping to norm 1, AdamW. Medians, because
 * a shared machine has slow moments but no fast ones. Memory is the growth of the resident set from
 * before the engine exists to its peak in the steps; Linux lets a process reset that peak, which
 * happens once the weights are drawn: the array they are drawn into is not the engine's. Memory
 * that earlier engines returned to malloc goes back to the system before either is read
 * (malloc_trim), and where memory alone is measured, huge pages are off: each array could add up to
 * 2 MiB of them (memory_settle). */
#include "bench/bench_step.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/median.h"
#include "base/philox.h"
#include "models/weights.h"

enum { WARM_UP = 2, STEPS_MOST = 4096 };

/* A line such as "VmHWM:   1234 kB" of /proc/self/status, in bytes; 0 where there is no such
 * file. */
static uint64_t status_bytes(const char *key)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    size_t length = strlen(key);
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            sscanf(line + length + 1, "%llu", &kib);
    if (file)
        fclose(file);
    return kib * 1024;
}

/* Makes freed memory leave the process and counts used memory to the page. Both cost time. */
static void memory_settle(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 16); /* free() unmaps; also keeps malloc from raising the threshold */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

static void peak_reset(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file)
        return;
    fputs("5", file);
    fclose(file);
}

static void batch_fill(engine *e, const model *m, int batch)
{
    int64_t pixels = tensor_elements(graph_tensor(m->graph, graph_image(m->graph))) * batch;
    int64_t classes = tensor_elements(graph_tensor(m->graph, graph_logits(m->graph)));
    for (int64_t i = 0; i < pixels; i++)
        engine_input(e)[i] = 4 * philox_f32(philox_draw(1, PURPOSE_SYNTHETIC, 0, (uint64_t)i, 0).w[0]) - 2;
    for (int i = 0; i < batch; i++)
        engine_labels(e)[i] = (int32_t)(i % classes);
}

typedef struct times {
    double forward[STEPS_MOST], backward[STEPS_MOST], update[STEPS_MOST], all[STEPS_MOST];
    double stream[STEPS_MOST]; /* asynchronous devices: seconds per step, many in flight */
    int count, streams;
} times;

static double time_now(const bench_step *b)
{
    struct timespec t;
    if (!b->cpu_time || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        return clock_seconds();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static berlu_status phase_wait(const bench_step *b, engine *e)
{
    return b->options.backend->asynchronous ? engine_wait(e) : BERLU_OK;
}

static engine_step step_of(uint32_t step)
{
    return (engine_step){.seed = 1, .step = step, .count = step + 1, .lr = 1e-4, .weight_decay = 0.05, .clip = 1};
}

/* A step in its three phases, each waited for. */
static berlu_status one_step(bench_step *b, engine *e, times *t, uint32_t step)
{
    engine_step s = step_of(step);
    double marks[4] = {time_now(b)};
    berlu_status status = engine_forward(e, &s);
    if (status == BERLU_OK)
        status = phase_wait(b, e);
    marks[1] = marks[2] = marks[3] = time_now(b);
    if (status == BERLU_OK && b->options.mode == ENGINE_TRAIN) {
        status = engine_backward(e);
        if (status == BERLU_OK)
            status = phase_wait(b, e);
        marks[2] = time_now(b);
        if (status == BERLU_OK)
            status = engine_update(e);
        if (status == BERLU_OK)
            status = phase_wait(b, e);
        marks[3] = time_now(b);
    }
    if (step < WARM_UP || t->count == STEPS_MOST)
        return status;
    t->forward[t->count] = marks[1] - marks[0];
    t->backward[t->count] = marks[2] - marks[1];
    t->update[t->count] = marks[3] - marks[2];
    t->all[t->count++] = marks[3] - marks[0];
    return status;
}

/* Whole steps as training enqueues them, without waiting in between: the speed of an asynchronous
 * device. */
static berlu_status steps_stream(bench_step *b, engine *e, times *t, uint32_t first)
{
    enum { STREAM = 20 };
    double begin = time_now(b);
    berlu_status status = BERLU_OK;
    for (uint32_t i = 0; i < STREAM && status == BERLU_OK; i++) {
        engine_step s = step_of(first + i);
        status = engine_forward(e, &s);
        if (status == BERLU_OK && b->options.mode == ENGINE_TRAIN)
            status = engine_backward(e);
        if (status == BERLU_OK && b->options.mode == ENGINE_TRAIN)
            status = engine_update(e);
    }
    if (status == BERLU_OK)
        status = engine_wait(e);
    if (t->streams < STEPS_MOST)
        t->stream[t->streams++] = (time_now(b) - begin) / STREAM;
    return status;
}

static berlu_status measure(bench_step *b, const model *m, engine *e, times *t)
{
    berlu_status status = weights_init(e, 1, NULL);
    if (status != BERLU_OK)
        return status;
    malloc_trim(0);
    peak_reset();
    batch_fill(e, m, b->options.batch);
    double begin = clock_seconds();
    for (uint32_t i = 0; status == BERLU_OK; i++) {
        if (i == WARM_UP) {
            begin = clock_seconds();
            engine_profile_reset(e);
        }
        if (t->count >= b->steps && clock_seconds() - begin >= b->seconds)
            break;
        status = one_step(b, e, t, i);
        if (status == BERLU_OK && i >= WARM_UP && b->options.backend->asynchronous)
            status = steps_stream(b, e, t, i);
    }
    b->loss = b->options.loss == LOSS_NONE ? 0 : engine_loss(e);
    return status;
}

/* Runs one step, so that code which libraries load and compile on first use is not counted as the
 * engine's memory. It has the batch that is measured: other sizes use other kernels of the matrix
 * library, which generates 3 MiB of code for each kind. */
static berlu_status libraries_wake(const bench_step *b, const model *m)
{
    bench_step one = *b;
    engine *e = NULL;
    berlu_status status = engine_create(&e, m->graph, &one.options);
    if (status == BERLU_OK)
        status = weights_init(e, 1, NULL);
    if (status == BERLU_OK)
        status = one_step(&one, e, NULL, 0);
    engine_free(e);
    return status;
}

berlu_status bench_step_run(bench_step *b, const model *m, text *profile)
{
    engine *e = NULL;
    if (b->memory_only)
        memory_settle();
    berlu_status status = libraries_wake(b, m);
    if (status != BERLU_OK)
        return status;
    times *t = calloc(1, sizeof *t);
    if (!t)
        return berlu_fail_memory(sizeof *t, "the times of a bench");
    malloc_trim(0);
    uint64_t before = status_bytes("VmRSS");
    status = engine_create(&e, m->graph, &b->options);
    if (status == BERLU_OK)
        status = measure(b, m, e, t);
    if (status == BERLU_OK) {
        uint64_t peak = status_bytes("VmHWM");
        b->peak_bytes = peak > before ? peak - before : 0;
        b->memory = engine_memory_use(e);
        b->options.backend->describe(engine_device(e), b->machine, sizeof b->machine);
        b->images_per_s = b->options.batch / (t->streams ? median(t->stream, t->streams) : median(t->all, t->count));
        b->forward_ms = 1e3 * median(t->forward, t->count);
        b->backward_ms = 1e3 * median(t->backward, t->count);
        b->update_ms = 1e3 * median(t->update, t->count);
        if (profile && b->options.profile)
            status = engine_profile_text(e, b->profile_by, profile);
    }
    engine_free(e);
    free(t);
    return status;
}
