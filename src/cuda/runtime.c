/* runtime.c - cuda_api.h over the CUDA runtime. SPDX-License-Identifier: MIT
 *
 * The runtime is linked statically and loads the driver at the first call, so a program that
 * contains this starts on any machine. Errors carry CUDA's own words; a failed call's error is
 * cleared so that the next one starts clean. */
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "cuda/cuda_api.h"

static berlu_status fail(cudaError_t error, const char *what)
{
    cudaGetLastError();
    berlu_status status = error == cudaErrorMemoryAllocation ? BERLU_ERR_MEMORY : BERLU_ERR_DEVICE;
    return berlu_fail(status, "CUDA: %s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

static berlu_status check(cudaError_t error, const char *what)
{
    return error == cudaSuccess ? BERLU_OK : fail(error, what);
}

/* ---- devices --------------------------------------------------------------------------------- */

static berlu_status fail_driver(void)
{
    int driver = 0, needed = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&needed);
    cudaGetLastError();
    if (!driver)
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: there is no NVIDIA driver on this machine");
    return berlu_fail(
        BERLU_ERR_DEVICE,
        "CUDA: the NVIDIA driver is too old: it knows CUDA %d.%d, this build needs %d.%d; install a newer "
        "driver",
        driver / 1000, driver % 1000 / 10, needed / 1000, needed % 1000 / 10);
}

berlu_status gpu_count(int *out)
{
    cudaError_t error = cudaGetDeviceCount(out);
    if (error == cudaErrorInsufficientDriver)
        return fail_driver();
    if (error == cudaErrorNoDevice || (error == cudaSuccess && *out == 0)) {
        cudaGetLastError();
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: this machine has no GPU that can be used");
    }
    return check(error, "counting GPUs");
}

berlu_status gpu_describe(gpu_properties *out, int index)
{
    struct cudaDeviceProp p;
    cudaError_t error = cudaGetDeviceProperties(&p, index);
    if (error != cudaSuccess)
        return fail(error, "asking for a GPU's properties");
    *out = (gpu_properties){.major = p.major, .minor = p.minor, .processors = p.multiProcessorCount};
    out->memory = p.totalGlobalMem;
    snprintf(out->name, sizeof out->name, "%.127s", p.name);
    return BERLU_OK;
}

berlu_status gpu_use(int index)
{
    return check(cudaSetDevice(index), "choosing a GPU");
}

berlu_status gpu_memory(size_t *free_bytes)
{
    size_t total;
    return check(cudaMemGetInfo(free_bytes, &total), "asking for free memory");
}

/* ---- memory, streams, events ----------------------------------------------------------------- */

berlu_status gpu_alloc(void **out, size_t bytes)
{
    return check(cudaMalloc(out, bytes ? bytes : 1), "allocating memory");
}

void gpu_free(void *memory)
{
    cudaFree(memory);
}

berlu_status gpu_host_alloc(void **out, size_t bytes)
{
    return check(cudaMallocHost(out, bytes ? bytes : 1), "allocating pinned memory");
}

void gpu_host_free(void *memory)
{
    cudaFreeHost(memory);
}

berlu_status gpu_stream_create(cuda_stream *out)
{
    return check(cudaStreamCreateWithFlags(out, cudaStreamNonBlocking), "creating a stream");
}

void gpu_stream_destroy(cuda_stream s)
{
    if (s)
        cudaStreamDestroy(s);
}

berlu_status gpu_stream_wait(cuda_stream s)
{
    return check(cudaStreamSynchronize(s), "waiting for the GPU");
}

berlu_status gpu_copy(void *to, const void *from, size_t bytes, gpu_direction direction, cuda_stream s)
{
    static const enum cudaMemcpyKind kinds[] = {[GPU_UPLOAD] = cudaMemcpyHostToDevice,
                                                [GPU_DOWNLOAD] = cudaMemcpyDeviceToHost,
                                                [GPU_WITHIN] = cudaMemcpyDeviceToDevice};
    static const char *const names[] = {[GPU_UPLOAD] = "copying to the GPU",
                                        [GPU_DOWNLOAD] = "copying from the GPU",
                                        [GPU_WITHIN] = "copying within the GPU"};
    return check(cudaMemcpyAsync(to, from, bytes, kinds[direction], s), names[direction]);
}

berlu_status gpu_zero(void *memory, size_t bytes, cuda_stream s)
{
    return check(cudaMemsetAsync(memory, 0, bytes, s), "clearing memory");
}

berlu_status gpu_event_create(cuda_event *out, int timed)
{
    return check(cudaEventCreateWithFlags(out, timed ? cudaEventDefault : cudaEventDisableTiming), "creating an event");
}

void gpu_event_destroy(cuda_event e)
{
    if (e)
        cudaEventDestroy(e);
}

berlu_status gpu_event_record(cuda_event e, cuda_stream s)
{
    return check(cudaEventRecord(e, s), "recording an event");
}

berlu_status gpu_stream_after(cuda_stream s, cuda_event e)
{
    return check(cudaStreamWaitEvent(s, e, 0), "ordering two streams");
}

berlu_status gpu_event_wait(cuda_event e)
{
    return check(cudaEventSynchronize(e), "waiting for the GPU");
}

berlu_status gpu_event_done(cuda_event e, int *done)
{
    cudaError_t error = cudaEventQuery(e);
    *done = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return BERLU_OK;
    }
    return check(error, "asking for an event");
}

berlu_status gpu_event_seconds(double *out, cuda_event from, cuda_event to)
{
    float milliseconds = 0;
    berlu_status status = check(cudaEventElapsedTime(&milliseconds, from, to), "timing");
    *out = milliseconds * 1e-3;
    return status;
}

/* ---- capture --------------------------------------------------------------------------------- */

berlu_status gpu_capture_begin(cuda_stream s)
{
    return check(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed), "capturing a step");
}

berlu_status gpu_capture_end(cuda_stream s, cuda_graph *out)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamEndCapture(s, &graph);
    if (error == cudaSuccess && out)
        error = cudaGraphInstantiate(out, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    return check(error, "capturing a step");
}

berlu_status gpu_graph_launch(cuda_graph g, cuda_stream s)
{
    return check(cudaGraphLaunch(g, s), "starting a captured step");
}

void gpu_graph_free(cuda_graph g)
{
    if (g)
        cudaGraphExecDestroy(g);
}

berlu_status gpu_launch_status(void)
{
    return check(cudaGetLastError(), "starting a kernel");
}
