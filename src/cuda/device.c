/* device.c - opens a GPU, gives out its memory, keeps the first failure of a run.
 * SPDX-License-Identifier: MIT
 *
 * Kernels return nothing, so a failed launch is kept in the device (cuda_device_fail) and run.c
 * returns it after the list of calls. Opening goes from options to GPU, stream, transfers and
 * products; closing takes any half-open device. Out of memory is reported with how much was
 * wanted and how much is free. */
#include "cuda/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels.h"

/* ---- failures -------------------------------------------------------------------------------- */

void cuda_device_fail(cuda_device *d, berlu_status status, const char *format, ...)
{
    va_list args;
    if (d->failed != BERLU_OK)
        return;
    d->failed = status;
    va_start(args, format);
    vsnprintf(d->failure, sizeof d->failure, format, args);
    va_end(args);
}

void cuda_launched(const op_call *c)
{
    berlu_status status = gpu_launch_status();
    if (status != BERLU_OK)
        cuda_device_fail(cuda_device_of(c), status, "%s: %s", op_rules[c->op].name, berlu_last_error());
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Reads one of the words of an option; NULL is the first. */
static berlu_status word_of(int *out, const char *option, const char *value, const char *const *words, int count)
{
    *out = 0;
    if (!value)
        return BERLU_OK;
    for (int i = 0; i < count; i++)
        if (strcmp(value, words[i]) == 0) {
            *out = i;
            return BERLU_OK;
        }
    return berlu_fail(BERLU_ERR_ARG, "%s '%s' is unknown; %s, %s%s%s are possible", option, value, words[0], words[1],
                      count > 2 ? ", " : "", count > 2 ? words[2] : "");
}

static berlu_status options_read(cuda_device *d, const device_options *o)
{
    static const char *const precisions[] = {
        [PRECISION_F32] = "f32", [PRECISION_TF32] = "tf32", [PRECISION_BF16] = "bf16"};
    static const char *const residuals[] = {"bf16", "f32"};
    int precision;
    berlu_status status = word_of(&precision, "precision", o->precision, precisions, 3);
    if (status == BERLU_OK)
        status = word_of(&d->residual_f32, "residual", o->residual, residuals, 2);
    d->precision = (cuda_precision)precision;
    return status;
}

static berlu_status gpu_choose(cuda_device *d, int index)
{
    int count = 0;
    TRY(gpu_count(&count));
    if (index < 0 || index >= count)
        return berlu_fail(BERLU_ERR_ARG, "CUDA: there is no GPU %d: this machine has %d, counted from 0", index, count);
    d->index = index;
    TRY(gpu_describe(&d->gpu, index));
    TRY(gpu_use(index));
    if (d->gpu.major < 8)
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: %s has compute capability %d.%d; 8.0 is the least that is supported",
                          d->gpu.name, d->gpu.major, d->gpu.minor);
    if (!cuda_kernels_usable())
        return berlu_fail(BERLU_ERR_DEVICE,
                          "CUDA: this build has no code for %s (compute capability %d.%d); configure with "
                          "-DBERLU_CUDA_ARCHITECTURES=%d%d",
                          d->gpu.name, d->gpu.major, d->gpu.minor, d->gpu.major, d->gpu.minor);
    return BERLU_OK;
}

berlu_status cuda_open(device **out, const backend *b, const device_options *o)
{
    cuda_device *d = calloc(1, sizeof *d);
    if (!d)
        return berlu_fail_memory(sizeof *d, "a device");
    d->base.backend = b;
    d->second_stream = o->second_stream;
    berlu_status status;
    TRY_DONE(options_read(d, o));
    TRY_DONE(gpu_choose(d, o->index));
    TRY_DONE(gpu_stream_create(&d->stream));
    TRY_DONE(cuda_transfer_open(d));
    TRY_DONE(cuda_gemm_open(d, o->algorithms));
    *out = (device *)d;
    return BERLU_OK;
done:
    cuda_close((device *)d);
    return status;
}

berlu_status cuda_side_open(cuda_device *d, const op_call *like)
{
    if (d->side_workspace)
        return BERLU_OK;
    if (!d->side)
        TRY(gpu_stream_create(&d->side));
    return cuda_take(d, &d->side_workspace, MEMORY_DEVICE, cuda_gemm_library(like), "cuBLASLt's second workspace");
}

void cuda_close(device *opened)
{
    cuda_device *d = cuda_device_at(opened);
    if (!d)
        return;
    if (d->stream) {
        gpu_use(d->index);
        gpu_stream_wait(d->stream);
    }
    cuda_gemm_close(d);
    cuda_transfer_close(d);
    cuda_release(opened, MEMORY_DEVICE, d->side_workspace);
    gpu_stream_destroy(d->side);
    gpu_stream_destroy(d->stream);
    free(d);
}

void cuda_dtypes(const device *opened, tensor_dtype of_role[ROLE_COUNT])
{
    const cuda_device *d = cuda_device_at(opened);
    for (int i = 0; i < ROLE_COUNT; i++)
        of_role[i] = DTYPE_F32;
    if (d->precision != PRECISION_BF16)
        return;
    of_role[ROLE_BRANCH] = DTYPE_BF16;
    of_role[ROLE_RESIDUAL] = d->residual_f32 ? DTYPE_F32 : DTYPE_BF16;
}

/* ---- memory ---------------------------------------------------------------------------------- */

berlu_status cuda_take(cuda_device *d, void **out, memory_kind kind, size_t bytes, const char *what)
{
    void *memory = NULL;
    size_t left = 0;
    TRY(gpu_use(d->index));
    berlu_status status = kind == MEMORY_HOST ? gpu_host_alloc(&memory, bytes) : gpu_alloc(&memory, bytes);
    if (status == BERLU_OK)
        *out = memory;
    if (status != BERLU_ERR_MEMORY)
        return status; /* a failure has CUDA's own words */
    if (kind == MEMORY_HOST)
        return berlu_fail(status, "%s: %.1f MiB of pinned host memory could not be had", what, (double)bytes / 0x1p20);
    TRY(gpu_memory(&left));
    return berlu_fail(status, "%s: %.1f MiB of GPU memory are needed, %.1f MiB are free; use a smaller batch", what,
                      (double)bytes / 0x1p20, (double)left / 0x1p20);
}

berlu_status cuda_alloc(device *opened, void **out, memory_kind kind, size_t bytes, const char *what)
{
    cuda_device *d = cuda_device_at(opened);
    void *memory = NULL;
    TRY(cuda_take(d, &memory, kind, bytes, what));
    berlu_status status = BERLU_OK;
    if (kind == MEMORY_HOST)
        memset(memory, 0, bytes);
    else
        status = gpu_zero(memory, bytes, d->stream);
    if (status == BERLU_OK)
        *out = memory;
    else
        gpu_free(memory);
    return status;
}

void cuda_release(device *opened, memory_kind kind, void *memory)
{
    if (!memory)
        return;
    gpu_use(cuda_device_at(opened)->index);
    if (kind == MEMORY_HOST)
        gpu_host_free(memory);
    else
        gpu_free(memory);
}

size_t cuda_free_bytes(device *opened)
{
    size_t left = 0;
    if (gpu_use(cuda_device_at(opened)->index) != BERLU_OK || gpu_memory(&left) != BERLU_OK)
        return 0;
    return left;
}

void cuda_describe(const device *opened, char *out, size_t size)
{
    char library[64];
    cuda_gemm_describe(cuda_device_at(opened), library, sizeof library);
    snprintf(out, size, "%s, %s", cuda_device_at(opened)->gpu.name, library);
}
