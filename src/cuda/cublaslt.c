/* cublaslt.c - the part of cuda_api.h that stands for cuBLASLt. SPDX-License-Identifier: MIT
 *
 * The library is loaded when a device is opened, not when the program starts: the command runs on
 * machines without it, and says what it looked for. Types and constants are those of the header we
 * are built with; functions are found by name. Only algorithms whose sums have a fixed order are
 * requested: no split along the depth, or one whose parts are added from the workspace in the type
 * of the computation. */
#include <cublasLt.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda_api.h"

#ifndef BERLU_CUBLASLT_FOLDER
#define BERLU_CUBLASLT_FOLDER "" /* where the toolkit of this build has it */
#endif

/* Every function that we call. */
/* clang-format off */
#define LT_FUNCTIONS(F)                                                                                                \
    F(Create) F(Destroy) F(GetVersion) F(Matmul) F(MatmulAlgoCheck) F(MatmulAlgoGetHeuristic) F(MatmulDescCreate)      \
    F(MatmulDescDestroy) F(MatmulDescSetAttribute) F(MatrixLayoutCreate) F(MatrixLayoutDestroy)                        \
    F(MatmulPreferenceCreate) F(MatmulPreferenceDestroy) F(MatmulPreferenceSetAttribute) F(GetStatusName)
/* clang-format on */

struct lt_library {
    void *loaded;
    cublasLtHandle_t handle;
#define F(name) __typeof__(&cublasLt##name) name;
    LT_FUNCTIONS(F)
#undef F
};

struct lt_plan {
    lt_library *lt;
    lt_product product;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
};

_Static_assert(sizeof(cublasLtMatmulAlgo_t) == LT_ALGORITHM_BYTES, "an algorithm is 64 opaque bytes");

static berlu_status fail(const lt_library *lt, cublasStatus_t status, const char *what)
{
    berlu_status code = status == CUBLAS_STATUS_ALLOC_FAILED ? BERLU_ERR_MEMORY : BERLU_ERR_DEVICE;
    return berlu_fail(code, "cuBLASLt: %s: %s", what, lt->GetStatusName(status));
}

/* ---- the library ----------------------------------------------------------------------------- */

static void *library_load(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        BERLU_CUBLASLT_FOLDER "/libcublasLt.so.13",
                                        BERLU_CUBLASLT_FOLDER "/libcublasLt.so.12"};
    void *loaded = NULL;
    for (size_t i = 0; i < COUNT(names) && !loaded; i++)
        loaded = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return loaded;
}

static berlu_status functions_find(lt_library *lt)
{
#define F(name)                                                                                                        \
    *(void **)&lt->name = dlsym(lt->loaded, "cublasLt" #name);                                                         \
    if (!lt->name)                                                                                                     \
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: the cuBLASLt found has no cublasLt%s; install 12 or 13", #name);
    LT_FUNCTIONS(F)
#undef F
    return BERLU_OK;
}

berlu_status lt_open(lt_library **out)
{
    lt_library *lt = calloc(1, sizeof *lt);
    if (!lt)
        return berlu_fail_memory(sizeof *lt, "cuBLASLt");
    berlu_status status = BERLU_OK;
    lt->loaded = library_load();
    if (!lt->loaded)
        status =
            berlu_fail(BERLU_ERR_DEVICE, "CUDA: cuBLASLt is missing (libcublasLt.so.13 or .12 was looked for); install "
                                         "it, or name its folder in LD_LIBRARY_PATH");
    if (status == BERLU_OK)
        status = functions_find(lt);
    cublasStatus_t created = status == BERLU_OK ? lt->Create(&lt->handle) : CUBLAS_STATUS_SUCCESS;
    if (created != CUBLAS_STATUS_SUCCESS)
        status = fail(lt, created, "starting");
    if (status != BERLU_OK) {
        lt_close(lt);
        return status;
    }
    *out = lt;
    return BERLU_OK;
}

void lt_close(lt_library *lt)
{
    if (!lt)
        return;
    if (lt->handle)
        lt->Destroy(lt->handle);
    free(lt); /* the library stays loaded: it has threads and device code of its own, and the next device reuses it */
}

void lt_version(const lt_library *lt, char out[32])
{
    size_t v = lt->GetVersion(); /* 130100 is 13.1.0 */
    snprintf(out, 32, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static cudaDataType_t type_of(int bf16)
{
    return bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasStatus_t operation_set(lt_plan *plan)
{
    const lt_product *p = &plan->product;
    const lt_library *lt = plan->lt;
    cublasOperation_t a = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, b = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = p->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    cublasStatus_t s = lt->MatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt->MatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt->MatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    return s;
}

/* Column-major and without gaps: A is stored m x k, or k x m where it is transposed; B and D
 * likewise. */
static cublasStatus_t plan_fill(lt_plan *plan)
{
    const lt_product *p = &plan->product;
    const lt_library *lt = plan->lt;
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
    uint64_t a_rows = p->transpose_a ? k : m, b_rows = p->transpose_b ? n : k;
    cublasStatus_t s =
        lt->MatmulDescCreate(&plan->operation, p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = operation_set(plan);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt->MatrixLayoutCreate(&plan->a, type_of(p->in_bf16), a_rows, p->transpose_a ? m : k, (int64_t)a_rows);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt->MatrixLayoutCreate(&plan->b, type_of(p->in_bf16), b_rows, p->transpose_b ? k : n, (int64_t)b_rows);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt->MatrixLayoutCreate(&plan->d, type_of(p->out_bf16), m, n, (int64_t)m);
    return s;
}

berlu_status lt_plan_make(lt_plan **out, lt_library *lt, const lt_product *p)
{
    lt_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return berlu_fail_memory(sizeof *plan, "a product");
    *plan = (lt_plan){.lt = lt, .product = *p};
    cublasStatus_t s = plan_fill(plan);
    if (s != CUBLAS_STATUS_SUCCESS) {
        lt_plan_free(plan);
        return fail(lt, s, "describing a product");
    }
    *out = plan;
    return BERLU_OK;
}

void lt_plan_free(lt_plan *plan)
{
    if (!plan)
        return;
    if (plan->operation)
        plan->lt->MatmulDescDestroy(plan->operation);
    cublasLtMatrixLayout_t layouts[] = {plan->a, plan->b, plan->d};
    for (size_t i = 0; i < COUNT(layouts); i++)
        if (layouts[i])
            plan->lt->MatrixLayoutDestroy(layouts[i]);
    free(plan);
}

/* ---- algorithms ------------------------------------------------------------------------------ */

static cublasStatus_t preference_set(const lt_plan *plan, cublasLtMatmulPreference_t wish, size_t workspace)
{
    const lt_library *lt = plan->lt;
    uint32_t align = (uint32_t)plan->product.align, schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasStatus_t s =
        lt->MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt->MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                             sizeof schemes);
    for (size_t i = 0; i < COUNT(aligned) && s == CUBLAS_STATUS_SUCCESS; i++)
        s = lt->MatmulPreferenceSetAttribute(wish, aligned[i], &align, sizeof align);
    return s;
}

int lt_offers(lt_plan *plan, size_t workspace_bytes, lt_algorithm *out, int most)
{
    enum { OFFERS = 32 };
    cublasLtMatmulHeuristicResult_t found[OFFERS];
    cublasLtMatmulPreference_t wish = NULL;
    int count = 0, taken = 0;
    cublasStatus_t s = plan->lt->MatmulPreferenceCreate(&wish);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = preference_set(plan, wish, workspace_bytes);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = plan->lt->MatmulAlgoGetHeuristic(plan->lt->handle, plan->operation, plan->a, plan->b, plan->d, plan->d,
                                             wish, OFFERS, found, &count);
    if (wish)
        plan->lt->MatmulPreferenceDestroy(wish);
    for (int i = 0; s == CUBLAS_STATUS_SUCCESS && i < count && taken < most; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= workspace_bytes)
            memcpy(out[taken++].bytes, &found[i].algo, LT_ALGORITHM_BYTES);
    return taken;
}

int lt_accepts(lt_plan *plan, const lt_algorithm *a, size_t workspace_bytes)
{
    cublasLtMatmulAlgo_t algorithm;
    cublasLtMatmulHeuristicResult_t about;
    memcpy(&algorithm, a->bytes, sizeof algorithm);
    memset(&about, 0, sizeof about);
    cublasStatus_t s = plan->lt->MatmulAlgoCheck(plan->lt->handle, plan->operation, plan->a, plan->b, plan->d, plan->d,
                                                 &algorithm, &about);
    return s == CUBLAS_STATUS_SUCCESS && about.workspaceSize <= workspace_bytes;
}

berlu_status lt_run(lt_plan *plan, const lt_algorithm *a, const lt_pointers *p, cuda_stream stream)
{
    cublasLtMatmulAlgo_t algorithm;
    float one = 1, beta = plan->product.add ? 1 : 0;
    cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
    memcpy(&algorithm, a->bytes, sizeof algorithm);
    if (plan->product.bias)
        s = plan->lt->MatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias,
                                             sizeof p->bias);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = plan->lt->Matmul(plan->lt->handle, plan->operation, &one, p->a, plan->a, p->b, plan->b, &beta,
                             p->c ? p->c : p->d, plan->d, p->d, plan->d, &algorithm, p->workspace, p->workspace_bytes,
                             stream);
    return s == CUBLAS_STATUS_SUCCESS ? BERLU_OK : fail(plan->lt, s, "a product");
}
