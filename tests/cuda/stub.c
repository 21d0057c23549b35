/* stub.c - devices, memory, events and captures of the GPU made of malloc.
 * SPDX-License-Identifier: MIT
 *
 * Read on: stub_lt.c for products, stub_kernels.c for the ops, stub_calls.c for what the C files of
 * src/cuda call beside them. */
#include "cuda/stub.h"

#include <assert.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/stub_internal.h"

stub_machine stub;

void stub_reset(void)
{
    int alive = stub.allocations;
    size_t taken = stub.taken;
    stub = (stub_machine){
        .gpus = 1, .memory = (size_t)1 << 32, .version = "13.1.0", .offers = 3, .major = 9, .processors = 7};
    stub.cost[0] = 3e-6, stub.cost[1] = 1e-6, stub.cost[2] = 2e-6;
    stub.allocations = alive;
    stub.taken = taken;
}

/* ---- work: done at once, or kept while a stream is captured ---------------------------------- */

/* Work of a captured stream. Without `run` it is the record of `event`, or with `waits` the wait
 * for it. */
typedef struct work {
    void (*run)(const void *data);
    void *data;
    cuda_stream stream;
    cuda_event event;
    int waits;
    struct work *next;
} work;
struct CUgraphExec_st {
    work *first;
    cuda_stream main; /* the stream whose capture it was */
};
struct CUevent_st {
    double time;
    int used, recorded, waited;
};
static struct CUevent_st events[1 << 14]; /* a device has a thousand: no malloc each, tests make every one fail */
enum { POISONED = 1 << 16, FLUSH = 128 << 20 };
static work *captured, **captured_end;
static int capturing, launch_error;
static cuda_stream capturing_stream;
static double now;

void stub_clock_add(double seconds)
{
    now += seconds;
}

static work *captured_add(cuda_stream s)
{
    work *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->stream = s;
    *captured_end = w;
    captured_end = &w->next;
    return w;
}

void stub_enqueue(cuda_stream s, void (*run)(const void *), const void *data, size_t bytes)
{
    if (!capturing) {
        run(data);
        return;
    }
    work *w = captured_add(s);
    w->run = run;
    w->data = malloc(bytes);
    memcpy(w->data, data, bytes);
}

static void order_add(cuda_stream s, cuda_event e, int waits)
{
    work *w = captured_add(s);
    w->event = e;
    w->waits = waits;
}

static void work_free(work *w)
{
    for (work *next; w; w = next) {
        next = w->next;
        free(w->data);
        free(w);
    }
}

/* Every call that needs the GPU asks; once it is lost it stays so. */
static berlu_status gpu_there(void)
{
    stub.calls++;
    if (stub.lost > 1)
        stub.lost--;
    else if (stub.lost)
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: waiting for the GPU: it is lost");
    return BERLU_OK;
}

int stub_launch_ok(void)
{
    stub.launches++;
    if (gpu_there() != BERLU_OK) {
        launch_error = 1;
        return 0;
    }
    if (stub.launch_fails && --stub.launch_fails == 0) {
        launch_error = 1;
        return 0;
    }
    return 1;
}

/* ---- cuda_api.h: devices, memory, events ----------------------------------------------------- */

berlu_status gpu_count(int *out)
{
    *out = stub.gpus;
    if (stub.old_driver)
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: the NVIDIA driver is too old");
    return stub.gpus ? BERLU_OK : berlu_fail(BERLU_ERR_DEVICE, "CUDA: this machine has no GPU that can be used");
}

berlu_status gpu_describe(gpu_properties *out, int index)
{
    assert_true(index >= 0 && index < stub.gpus);
    *out = (gpu_properties){.name = "Stub|GPU",
                            .major = stub.major,
                            .minor = stub.minor,
                            .processors = stub.processors,
                            .memory = stub.memory};
    return BERLU_OK;
}

berlu_status gpu_use(int index)
{
    assert_true(index >= 0 && index < stub.gpus);
    return BERLU_OK;
}

berlu_status gpu_memory(size_t *free_bytes)
{
    *free_bytes = stub.memory;
    return BERLU_OK;
}

static berlu_status memory_take(void **out, size_t bytes)
{
    assert_false(capturing);
    if (gpu_there() != BERLU_OK)
        return BERLU_ERR_DEVICE;
    if (stub.others_at && --stub.others_at == 0)
        stub.memory = 0;
    if (bytes > stub.memory)
        return berlu_fail(BERLU_ERR_MEMORY, "CUDA: allocating memory");
    *out = aligned_alloc(256, (bytes + 256) / 256 * 256);
    if (!*out)
        return berlu_fail(BERLU_ERR_MEMORY, "CUDA: allocating memory");
    memset(*out, 0xa5, bytes < POISONED ? bytes : POISONED); /* fresh memory is not zero */
    stub.allocations++;
    return BERLU_OK;
}

static size_t whole_pieces(size_t bytes)
{
    return stub.piece ? (bytes + stub.piece - 1) / stub.piece * stub.piece : bytes;
}

berlu_status gpu_alloc(void **out, size_t bytes)
{
    TRY(memory_take(out, whole_pieces(bytes)));
    size_t taken = malloc_usable_size(*out);
    stub.taken += taken;
    stub.memory -= taken < stub.memory ? taken : stub.memory;
    return BERLU_OK;
}

void gpu_free(void *memory)
{
    size_t taken = memory ? malloc_usable_size(memory) : 0;
    stub.taken -= taken;
    stub.memory += taken;
    gpu_host_free(memory);
}

berlu_status gpu_host_alloc(void **out, size_t bytes)
{
    return memory_take(out, bytes);
}

void gpu_host_free(void *memory)
{
    stub.allocations -= memory != NULL;
    free(memory);
}

berlu_status gpu_stream_create(cuda_stream *out)
{
    *out = malloc(1);
    stub.allocations += *out != NULL;
    return *out ? BERLU_OK : berlu_fail_memory(1, "a stream");
}

void gpu_stream_destroy(cuda_stream s)
{
    gpu_host_free(s);
}

berlu_status gpu_stream_wait(cuda_stream s)
{
    (void)s;
    assert_false(capturing);
    return gpu_there();
}

typedef struct copy_work {
    void *to;
    const void *from;
    size_t bytes;
} copy_work;

static void copy_run(const void *data)
{
    const copy_work *w = data;
    if (w->from)
        memmove(w->to, w->from, w->bytes);
    else if (w->bytes < FLUSH)
        memset(w->to, 0, w->bytes); /* a larger block only empties a cache that is not here */
}

berlu_status gpu_copy(void *to, const void *from, size_t bytes, gpu_direction direction, cuda_stream s)
{
    (void)direction;
    stub.copies++;
    if (gpu_there() != BERLU_OK)
        return BERLU_ERR_DEVICE;
    stub_enqueue(s, copy_run, &(copy_work){to, from, bytes}, sizeof(copy_work));
    return BERLU_OK;
}

berlu_status gpu_zero(void *memory, size_t bytes, cuda_stream s)
{
    stub_enqueue(s, copy_run, &(copy_work){memory, NULL, bytes}, sizeof(copy_work));
    return BERLU_OK;
}

berlu_status gpu_event_create(cuda_event *out, int timed)
{
    (void)timed;
    *out = events;
    while ((*out)->used)
        assert_true(++*out < events + COUNT(events));
    **out = (struct CUevent_st){.used = 1};
    stub.allocations++;
    return BERLU_OK;
}

void gpu_event_destroy(cuda_event e)
{
    stub.allocations -= e != NULL;
    if (e)
        e->used = 0;
}

berlu_status gpu_event_record(cuda_event e, cuda_stream s)
{
    *e = (struct CUevent_st){.time = now, .used = 1, .recorded = 1};
    if (capturing)
        order_add(s, e, 0);
    return BERLU_OK;
}

berlu_status gpu_stream_after(cuda_stream s, cuda_event e)
{
    assert_true(capturing && e->recorded); /* outside of captures there is one stream */
    order_add(s, e, 1);
    return BERLU_OK;
}

berlu_status gpu_event_wait(cuda_event e)
{
    e->waited = 1;
    return gpu_there();
}

berlu_status gpu_event_done(cuda_event e, int *done)
{
    *done = !stub.events_late || !e->recorded || e->waited;
    return gpu_there();
}

berlu_status gpu_event_seconds(double *out, cuda_event from, cuda_event to)
{
    assert_true(from->recorded && to->recorded);
    *out = to->time - from->time;
    return BERLU_OK;
}

/* ---- capture --------------------------------------------------------------------------------- */

berlu_status gpu_capture_begin(cuda_stream s)
{
    assert_false(capturing);
    if (gpu_there() != BERLU_OK)
        return BERLU_ERR_DEVICE;
    stub.captures++;
    capturing = 1;
    capturing_stream = s;
    captured = NULL;
    captured_end = &captured;
    return BERLU_OK;
}

berlu_status gpu_capture_end(cuda_stream s, cuda_graph *out)
{
    (void)s;
    assert_true(capturing);
    capturing = 0;
    berlu_status there = gpu_there();
    cuda_graph made = out && there == BERLU_OK ? calloc(1, sizeof *made) : NULL;
    if (!made) {
        work_free(captured);
        return there != BERLU_OK ? there : out ? berlu_fail_memory(sizeof *made, "a graph") : BERLU_OK;
    }
    stub.allocations++;
    made->first = captured;
    made->main = capturing_stream;
    *out = made;
    return BERLU_OK;
}

/* Work of the second stream from *next on, up to the record of `event`. */
static void side_run(const work **next, cuda_stream main, cuda_event event)
{
    for (int found = 0; !found; *next = (*next)->next) {
        assert_non_null(*next); /* the event is recorded there */
        if ((*next)->stream == main)
            continue;
        if ((*next)->run)
            (*next)->run((*next)->data);
        found = !(*next)->run && !(*next)->waits && (*next)->event == event;
    }
}

/* The second stream does nothing until somebody has to wait for it: whatever lacks a wait shows in
 * the results. */
berlu_status gpu_graph_launch(cuda_graph g, cuda_stream s)
{
    const work *side = g->first;
    assert_ptr_equal(s, g->main);
    stub.graph_launches++;
    if (gpu_there() != BERLU_OK)
        return BERLU_ERR_DEVICE;
    for (const work *w = g->first; w; w = w->next) {
        stub.side_work += w->stream != g->main && w->run;
        if (w->stream == g->main && w->run)
            w->run(w->data);
        else if (w->stream == g->main && w->waits)
            side_run(&side, g->main, w->event);
    }
    for (; side; side = side->next)
        assert_true(side->stream == g->main || !side->run); /* a stream that nobody joined */
    return BERLU_OK;
}

void gpu_graph_free(cuda_graph g)
{
    if (g)
        work_free(g->first);
    gpu_host_free(g);
}

berlu_status gpu_launch_status(void)
{
    int failed = launch_error;
    launch_error = 0;
    if (failed && stub.lost)
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: starting a kernel: the GPU is lost");
    return failed ? berlu_fail(BERLU_ERR_DEVICE, "CUDA: starting a kernel: no") : BERLU_OK;
}
