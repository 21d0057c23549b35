/* bench_step.c - times forward, backward and update of steps on random images.
 * SPDX-License-Identifier: MIT
 *
 * A step is that of training: forward, loss, backward, clipping to norm 1, AdamW. Medians, because
 * a shared machine has slow moments but no fast ones. Memory is the growth of the resident set from
 * before the engine exists to its peak in the steps; Linux lets a process reset that peak, which
 * happens once the weights are drawn: the array they are drawn into is not the engine's. Memory
 * that earlier engines returned to malloc goes back to the system before either is read
 * (malloc_trim), and where memory alone is measured, huge pages are off: each array could add up to
 * 2 MiB of them (memory_settle). On a device with memory of its own it is what the driver has less
 * free than before the engine. */
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
#include "engine/image_set.h"
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

/* A device with its own memory holds a set of random bytes and computes batches from draws, as in
 * training; otherwise the network reads the feeds. */
typedef struct images {
    image_set *set;
    image_draw *draws;
} images;

static void images_free(images *i)
{
    image_set_free(i->set);
    free(i->draws);
}

static berlu_status images_place(images *out, engine *e, const model *m, const backend *on, int batch)
{
    const tensor_info *input = graph_tensor(m->graph, graph_image(m->graph));
    int64_t classes = tensor_elements(graph_tensor(m->graph, graph_logits(m->graph)));
    size_t bytes = (size_t)tensor_elements(input) * (size_t)batch;
    float levels[IMAGE_LEVELS];
    *out = (images){0};
    if (on->host_memory || input->rank != 3 || input->size[0] != 3 || input->size[1] != input->size[2])
        return BERLU_OK;
    for (int i = 0; i < IMAGE_LEVELS; i++)
        levels[i] = (float)(i % 256) / 64 - 2;
    uint8_t *pixels = malloc(bytes);
    out->draws = calloc((size_t)batch, sizeof *out->draws);
    if (!pixels || !out->draws) {
        free(pixels);
        return berlu_fail_memory(bytes, "a batch of images");
    }
    for (size_t i = 0; i < bytes; i++)
        pixels[i] = (uint8_t)philox_draw(1, PURPOSE_SYNTHETIC, 0, i, 0).w[0];
    for (int i = 0; i < batch; i++)
        out->draws[i] = (image_draw){.index = i, .label = (int32_t)(i % classes), .partner = i, .flip = i % 2};
    berlu_status status;
    TRY_DONE(image_set_create(&out->set, on, engine_device(e), (int)input->size[1], (size_t)batch, levels));
    TRY_DONE(image_set_write(out->set, 0, (size_t)batch, pixels));
    TRY_DONE(engine_use_images(e, out->set));
    engine_set_draws(e, out->draws);
done:
    free(pixels);
    return status;
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

/* Runs a step in its three phases and waits for each. */
static berlu_status one_step(bench_step *b, engine *e, times *t, uint32_t step)
{
    engine_step s = step_of(step);
    double marks[4] = {time_now(b)};
    TRY(engine_forward(e, &s));
    TRY(phase_wait(b, e));
    marks[1] = marks[2] = marks[3] = time_now(b);
    if (b->options.mode == ENGINE_TRAIN) {
        TRY(engine_backward(e));
        TRY(phase_wait(b, e));
        marks[2] = time_now(b);
        TRY(engine_update(e));
        TRY(phase_wait(b, e));
        marks[3] = time_now(b);
    }
    if (step < WARM_UP || t->count == STEPS_MOST)
        return BERLU_OK;
    t->forward[t->count] = marks[1] - marks[0];
    t->backward[t->count] = marks[2] - marks[1];
    t->update[t->count] = marks[3] - marks[2];
    t->all[t->count++] = marks[3] - marks[0];
    return BERLU_OK;
}

/* Runs steps as training enqueues them, without waiting in between: the speed of an asynchronous
 * device. */
static berlu_status steps_stream(bench_step *b, engine *e, times *t, uint32_t first)
{
    enum { STREAM = 20 };
    double begin = time_now(b);
    for (uint32_t i = 0; i < STREAM; i++) {
        engine_step s = step_of(first + i);
        TRY(b->options.mode == ENGINE_TRAIN ? engine_step_run(e, &s) : engine_forward(e, &s));
    }
    TRY(engine_wait(e));
    if (t->streams < STEPS_MOST)
        t->stream[t->streams++] = (time_now(b) - begin) / STREAM;
    return BERLU_OK;
}

/* Weights, a batch, and the steps that are not timed. */
static berlu_status warm_up(bench_step *b, const model *m, engine *e, times *t)
{
    TRY(weights_init(e, 1, NULL));
    malloc_trim(0);
    peak_reset();
    batch_fill(e, m, b->options.batch);
    for (uint32_t i = 0; i < WARM_UP; i++)
        TRY(one_step(b, e, t, i));
    return BERLU_OK;
}

static berlu_status measure(bench_step *b, engine *e, times *t)
{
    double begin = clock_seconds();
    t->count = t->streams = 0;
    engine_profile_reset(e);
    for (uint32_t i = WARM_UP; t->count < b->steps || clock_seconds() - begin < b->seconds; i++) {
        TRY(one_step(b, e, t, i));
        if (b->options.backend->asynchronous)
            TRY(steps_stream(b, e, t, i));
    }
    b->loss = b->options.loss == LOSS_NONE ? 0 : engine_loss(e);
    b->images_per_s = b->options.batch / (t->streams ? median(t->stream, t->streams) : median(t->all, t->count));
    b->forward_ms = 1e3 * median(t->forward, t->count);
    b->backward_ms = 1e3 * median(t->backward, t->count);
    b->update_ms = 1e3 * median(t->update, t->count);
    return BERLU_OK;
}

/* Free device memory (`watch`) or resident memory before the engine. */
typedef struct memory_before {
    device *watch;
    uint64_t left, resident;
} memory_before;

static void memory_take(bench_step *b, engine *e, const memory_before *before)
{
    uint64_t now = before->watch ? b->options.backend->free_bytes(before->watch) : status_bytes("VmHWM");
    if (before->watch)
        b->peak_bytes = before->left > now ? before->left - now : 0;
    else
        b->peak_bytes = now > before->resident ? now - before->resident : 0;
    b->memory = engine_memory_use(e);
    b->options.backend->describe(engine_device(e), b->machine, sizeof b->machine);
}

/* Runs one step, so that code which libraries load and compile on first use is not counted as the
 * engine's memory. It has the batch that is measured: other sizes use other kernels of the matrix
 * library, which generates 3 MiB of code for each kind. */
static berlu_status libraries_wake(const bench_step *b, const model *m)
{
    bench_step one = *b;
    engine *e = NULL;
    berlu_status status;
    TRY_DONE(engine_create(&e, m->graph, &one.options));
    TRY_DONE(weights_init(e, 1, NULL));
    TRY_DONE(one_step(&one, e, NULL, 0));
done:
    engine_free(e);
    return status;
}

/* Opens a second handle to query free device memory, before the engine: its own use must not count
 * as the engine's. */
static berlu_status watch_open(device **out, const bench_step *b)
{
    const backend *on = b->options.backend;
    return on->free_bytes ? on->open(out, on, &b->options.opening) : BERLU_OK;
}

berlu_status bench_step_run(bench_step *b, const model *m, text *profile)
{
    engine *e = NULL;
    images set = {0};
    memory_before before = {0};
    berlu_status status;
    if (b->memory_only)
        memory_settle();
    TRY(libraries_wake(b, m));
    times *t = calloc(1, sizeof *t);
    if (!t)
        return berlu_fail_memory(sizeof *t, "the times of a bench");
    malloc_trim(0);
    before.resident = status_bytes("VmRSS");
    TRY_DONE(watch_open(&before.watch, b));
    before.left = before.watch ? b->options.backend->free_bytes(before.watch) : 0;
    TRY_DONE(engine_create(&e, m->graph, &b->options));
    TRY_DONE(images_place(&set, e, m, b->options.backend, b->options.batch));
    TRY_DONE(warm_up(b, m, e, t));
    for (b->measured = 0;; b->measured++) {
        int more = !b->measured;
        TRY_DONE(b->next ? b->next(b, &more) : BERLU_OK);
        if (!more)
            break;
        TRY_DONE(measure(b, e, t));
        memory_take(b, e, &before);
    }
    if (profile && b->options.profile)
        TRY_DONE(engine_profile_text(e, &b->profile, profile));
done:
    images_free(&set);
    engine_free(e);
    b->options.backend->close(before.watch);
    free(t);
    return status;
}
