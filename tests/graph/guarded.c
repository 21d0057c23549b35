/* guarded.c - see guarded.h. SPDX-License-Identifier: MIT */
#include "graph/guarded.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "cpu/device.h"

enum { BLOCKS = 64, LATE = 3, RESULTS = 8 };

typedef struct block {
    void *memory;
    size_t bytes;
} block;

typedef struct guarded {
    device cpu; /* first: kernels take the device for the CPU's */
    block blocks[BLOCKS];
    step_result results[RESULTS];
    int results_count;
} guarded;

static int fail_at, calls_made;

void guarded_fail_at(int n)
{
    fail_at = n;
    calls_made = 0;
}

int guarded_calls(void)
{
    return calls_made;
}

static berlu_status call_count(const char *what)
{
    return ++calls_made == fail_at ? berlu_fail(BERLU_ERR_DEVICE, "guarded device: %s failed", what) : BERLU_OK;
}

static void protect(guarded *g, int access)
{
    for (int i = 0; i < BLOCKS; i++)
        if (g->blocks[i].memory && mprotect(g->blocks[i].memory, g->blocks[i].bytes, access) != 0)
            abort();
}

static void guard_open(guarded *g)
{
    protect(g, PROT_READ | PROT_WRITE);
}

static void guard_close(guarded *g)
{
    protect(g, PROT_NONE);
}

static const backend *inner(const guarded *g)
{
    return g->cpu.base.backend->data == cpu_f64_backend() ? cpu_f64_backend() : cpu_backend();
}

static berlu_status device_open(device **out, const backend *b, const device_options *o)
{
    (void)o;
    guarded *g = calloc(1, sizeof *g);
    if (!g)
        return berlu_fail_memory(sizeof *g, "a guarded device");
    const backend *under = b->data == cpu_f64_backend() ? cpu_f64_backend() : cpu_backend();
    g->cpu.base.backend = b;
    g->cpu.simd = under->data;
    g->cpu.dtype = under == cpu_f64_backend() ? DTYPE_F64 : DTYPE_F32;
    *out = &g->cpu;
    return BERLU_OK;
}

static void device_close(device *d)
{
    free(d);
}

static berlu_status device_alloc(device *d, void **out, memory_kind kind, size_t bytes, const char *what)
{
    guarded *g = (guarded *)d;
    if (kind == MEMORY_HOST)
        return inner(g)->alloc(d, out, kind, bytes, what);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
    for (int i = 0; i < BLOCKS; i++)
        if (!g->blocks[i].memory) {
            void *memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED)
                return berlu_fail_memory(bytes, what);
            g->blocks[i] = (block){memory, size};
            *out = memory;
            return BERLU_OK;
        }
    abort(); /* more blocks than an engine has */
}

static void device_release(device *d, memory_kind kind, void *memory)
{
    guarded *g = (guarded *)d;
    if (kind == MEMORY_HOST)
        free(memory);
    for (int i = 0; i < BLOCKS && kind == MEMORY_DEVICE && memory; i++)
        if (g->blocks[i].memory == memory) {
            munmap(memory, g->blocks[i].bytes);
            g->blocks[i] = (block){0};
            return;
        }
}

static berlu_status move(device *d, void *to, const void *from, size_t bytes, const char *what)
{
    berlu_status status = call_count(what);
    if (status != BERLU_OK)
        return status;
    guard_open((guarded *)d);
    memcpy(to, from, bytes);
    guard_close((guarded *)d);
    return BERLU_OK;
}

static berlu_status device_upload(device *d, void *to, const void *from, size_t bytes)
{
    return move(d, to, from, bytes, "upload");
}

static berlu_status device_download(device *d, void *to, const void *from, size_t bytes)
{
    return move(d, to, from, bytes, "download");
}

static berlu_status device_copy(device *d, void *to, const void *from, size_t bytes)
{
    return move(d, to, from, bytes, "copy");
}

/* A list and its device; the CPU's program does the work. */
struct guarded_program {
    program *cpu;
    guarded *device;
};

static berlu_status device_prepare(device *d, program **out, const op_call *calls, int count, const program_options *o)
{
    berlu_status status = call_count("prepare");
    if (status != BERLU_OK)
        return status;
    struct guarded_program *p = calloc(1, sizeof *p);
    if (!p)
        return berlu_fail_memory(sizeof *p, "a list of calls");
    p->device = (guarded *)d;
    status = inner(p->device)->prepare(d, &p->cpu, calls, count, o);
    if (status != BERLU_OK)
        free(p);
    else
        *out = (program *)p;
    return status;
}

static berlu_status device_run(program *q)
{
    struct guarded_program *p = (struct guarded_program *)q;
    berlu_status status = call_count("run");
    if (status != BERLU_OK)
        return status;
    guard_open(p->device);
    status = inner(p->device)->run(p->cpu);
    guard_close(p->device);
    return status;
}

static void device_program_free(program *q)
{
    struct guarded_program *p = (struct guarded_program *)q;
    if (p)
        inner(p->device)->program_free(p->cpu);
    free(p);
}

static void device_seconds(program *q, double *per_call, int reset)
{
    struct guarded_program *p = (struct guarded_program *)q;
    inner(p->device)->seconds(p->cpu, per_call, reset);
}

static berlu_status device_result_push(device *d, const step_result *from)
{
    guarded *g = (guarded *)d;
    berlu_status status = call_count("push");
    if (status != BERLU_OK)
        return status;
    assert(g->results_count < RESULTS);
    guard_open(g);
    g->results[g->results_count++] = *from;
    guard_close(g);
    return BERLU_OK;
}

/* The oldest, once three younger ones are there or somebody waits for it. */
static berlu_status device_result_pop(device *d, step_result *out, int *there, int wait)
{
    guarded *g = (guarded *)d;
    *there = g->results_count > LATE || (wait && g->results_count);
    if (!*there)
        return BERLU_OK;
    *out = g->results[0];
    memmove(g->results, g->results + 1, (size_t)--g->results_count * sizeof *g->results);
    return BERLU_OK;
}

static backend make(const backend *over)
{
    backend b = *over;
    b.name = over == cpu_f64_backend() ? "guarded-f64" : "guarded";
    b.host_memory = 0;
    b.asynchronous = 1;
    b.open = device_open;
    b.close = device_close;
    b.alloc = device_alloc;
    b.release = device_release;
    b.upload = device_upload;
    b.download = device_download;
    b.copy = device_copy;
    b.prepare = device_prepare;
    b.run = device_run;
    b.program_free = device_program_free;
    b.seconds = device_seconds;
    b.result_push = device_result_push;
    b.result_pop = device_result_pop;
    return b;
}

const backend *guarded_backend(void)
{
    static backend b;
    if (!b.name)
        b = make(cpu_backend());
    return &b;
}

const backend *guarded_f64_backend(void)
{
    static backend b;
    if (!b.name) {
        b = make(cpu_f64_backend());
        b.data = cpu_f64_backend();
    }
    return &b;
}

const backend *guarded_backend_at(int index)
{
    return index == 0 ? guarded_backend() : NULL;
}
