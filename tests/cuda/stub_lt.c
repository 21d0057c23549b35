/* stub_lt.c - cuBLASLt of the GPU made of malloc: products by plain loops, algorithms that differ
 * in cost alone. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/stub_internal.h"

struct lt_library {
    int dummy;
};
struct lt_plan {
    lt_product product;
};

berlu_status lt_open(lt_library **out)
{
    if (stub.no_library)
        return berlu_fail(BERLU_ERR_DEVICE, "CUDA: cuBLASLt is missing");
    *out = calloc(1, sizeof **out);
    stub.allocations += *out != NULL;
    return *out ? BERLU_OK : berlu_fail_memory(sizeof **out, "cuBLASLt");
}

void lt_close(lt_library *lt)
{
    gpu_host_free(lt);
}

void lt_version(const lt_library *lt, char out[32])
{
    (void)lt;
    strcpy(out, stub.version);
}

berlu_status lt_plan_make(lt_plan **out, lt_library *lt, const lt_product *p)
{
    (void)lt;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return berlu_fail_memory(sizeof **out, "a product");
    (*out)->product = *p;
    stub.allocations++;
    return BERLU_OK;
}

void lt_plan_free(lt_plan *plan)
{
    gpu_host_free(plan);
}

int lt_offers(lt_plan *plan, size_t workspace_bytes, lt_algorithm *out, int most)
{
    (void)workspace_bytes;
    if (stub.no_products || (stub.no_bias_epilogue && plan->product.bias))
        return 0;
    int count = stub.offers < most ? stub.offers : most;
    for (int i = 0; i < count; i++)
        out[i] = (lt_algorithm){.bytes = {(unsigned char)i, 0xbe}};
    return count;
}

int lt_accepts(lt_plan *plan, const lt_algorithm *a, size_t workspace_bytes)
{
    (void)plan, (void)workspace_bytes;
    return a->bytes[1] == 0xbe && a->bytes[0] != stub.refused - 1;
}

typedef struct product_work {
    lt_product p;
    lt_pointers at;
} product_work;

static void product_run(const void *data)
{
    const product_work *w = data;
    const lt_product *p = &w->p;
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t i = 0; i < p->m; i++) {
            double sum = p->bias ? element(w->at.bias, p->out_bf16, i) : 0;
            sum += p->add ? element(w->at.c, p->out_bf16, j * p->m + i) : 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += (double)element(w->at.a, p->in_bf16, p->transpose_a ? i * p->k + k : k * p->m + i) *
                       element(w->at.b, p->in_bf16, p->transpose_b ? k * p->n + j : j * p->k + k);
            element_set(w->at.d, p->out_bf16, j * p->m + i, sum);
        }
}

berlu_status lt_run(lt_plan *plan, const lt_algorithm *a, const lt_pointers *p, cuda_stream s)
{
    assert_int_equal(a->bytes[1], 0xbe);
    assert_true(p->workspace && p->workspace_bytes);
    uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | (uintptr_t)p->d | (uintptr_t)p->bias;
    assert_int_equal(all % (uintptr_t)plan->product.align, 0);
    stub.products++;
    stub_clock_add(stub.cost[a->bytes[0]]);
    stub_enqueue(s, product_run, &(product_work){plan->product, *p}, sizeof(product_work));
    return BERLU_OK;
}
