/* emulate_rows.cuh - emulate.cuh for the further products of cuda/wgmma_rows.cuh.
 * SPDX-License-Identifier: MIT */
#ifndef EMULATE_ROWS_CUH
#define EMULATE_ROWS_CUH

#include "emulate.cuh"

template <bool ADD> DEVICE void product_packed(float (*d)[4], const uint32_t *a, uint32_t b, int add)
{
    product_held(d, a, b | EMULATE_BY_ROWS, ADD && add);
    emulate_products[threadIdx.x].back().back().columns = 64;
}

template <int N> DEVICE void product_first(float (*d)[4], uint32_t a, uint32_t b)
{
    product<N>(d, a, b, 0);
}

template <int N, bool ADD> DEVICE void product_across(float (*d)[4], uint32_t a, uint32_t b, int add)
{
    product<N>(d, a | EMULATE_BY_ROWS, b | (N == 64 ? EMULATE_BY_ROWS : 0), ADD && add);
}

/* stmatrix: lane 8 m + r says where row r of matrix m goes. */
DEVICE void matrix_store(void *row, const uint32_t *in)
{
    emulate_warp &w = emulate_warps[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    if ((uintptr_t)row % 16)
        emulate_fail("misaligned stmatrix");
    memcpy(w.slot[lane], &row, sizeof row);
    __syncwarp();
    for (int m = 0; m < 4; m++) {
        char *to;
        memcpy(&to, w.slot[8 * m + lane / 4], sizeof to);
        memcpy(to + lane % 4 * 4, &in[m], 4);
    }
    __syncwarp();
}

#endif
