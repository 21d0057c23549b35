/* simd_product.c - small products for attention, where a matrix library's packing costs more than
 * the product. SPDX-License-Identifier: MIT
 *
 * c = a b with b's rows as vectors and a's elements broadcast to all lanes: six rows of c times
 * four vectors stay in registers while k runs, two vectors where there are sixteen registers. a is
 * read by two strides, so its transpose costs nothing. Where b itself has to be transposed (k q^T),
 * transpose() does so first, once for all rows. Nothing is packed per call. */
#include "cpu/simd_internal.h"

#ifdef V_FEW_REGISTERS
enum { ROWS = 6, VECTORS = 2 };
#else
enum { ROWS = 6, VECTORS = 4 };
#endif

/* rows x vectors of c, all constant at the call, so that the compiler keeps `sum` in registers;
 * `left` columns are real. */
V_FN void tile(float *c, int64_t stride_c, const float *a, int64_t row, int64_t column, const float *b,
               int64_t stride_b, int64_t k, int rows, int vectors, int64_t left, int add)
{
    v_f32 sum[ROWS][VECTORS];
    int64_t tail = left - (vectors - 1) * V_LANES; /* columns in the last vector */
    V_FOR(int i = 0; i < rows; i++)
        V_FOR(int j = 0; j < vectors; j++)
            sum[i][j] = !add              ? v_zero()
                        : j < vectors - 1 ? v_load(c + i * stride_c + j * V_LANES)
                                          : load_up_to(c + i * stride_c + j * V_LANES, tail);
    for (int64_t l = 0; l < k; l++) {
        v_f32 right[VECTORS];
        V_FOR(int j = 0; j < vectors; j++)
            right[j] = j < vectors - 1 ? v_load(b + l * stride_b + j * V_LANES)
                                       : load_up_to(b + l * stride_b + j * V_LANES, tail);
        V_FOR(int i = 0; i < rows; i++) {
            v_f32 spread = v_set(a[i * row + l * column]);
            V_FOR(int j = 0; j < vectors; j++)
                sum[i][j] = v_fma(spread, right[j], sum[i][j]);
        }
    }
    V_FOR(int i = 0; i < rows; i++)
        V_FOR(int j = 0; j < vectors; j++)
            if (j < vectors - 1)
                v_store(c + i * stride_c + j * V_LANES, sum[i][j]);
            else
                store_up_to(c + i * stride_c + j * V_LANES, sum[i][j], tail);
}

V_FN void rows_of_tiles(const simd_product *p, float *c, const float *b, int vectors, int64_t left, int64_t i, int rows)
{
    tile(c + i * p->stride_c, p->stride_c, p->a + i * p->row, p->row, p->column, b, p->stride_b, p->k, rows, vectors,
         left, p->add);
}

V_FN void strip(const simd_product *p, float *c, const float *b, int vectors, int64_t left)
{
    int64_t i = 0;
    for (; i + ROWS <= p->m; i += ROWS)
        rows_of_tiles(p, c, b, vectors, left, i, ROWS);
    for (; i + 3 <= p->m; i += 3)
        rows_of_tiles(p, c, b, vectors, left, i, 3);
    for (; i < p->m; i++)
        rows_of_tiles(p, c, b, vectors, left, i, 1);
}

void SIMD_FN(product)(const simd_product *p)
{
    for (int64_t j = 0; j < p->n; j += VECTORS * V_LANES) {
        int64_t left = p->n - j < VECTORS * V_LANES ? p->n - j : VECTORS * V_LANES;
        int64_t vectors = (left + V_LANES - 1) / V_LANES;
        if (vectors == VECTORS)
            strip(p, p->c + j, p->b + j, VECTORS, left);
        else if (vectors == 1)
            strip(p, p->c + j, p->b + j, 1, left);
        else if (VECTORS > 2 && vectors == 2)
            strip(p, p->c + j, p->b + j, 2, left);
        else if (VECTORS > 3)
            strip(p, p->c + j, p->b + j, 3, left);
    }
}

/* Sixteen rows at a time: their cache lines stay in L1. */
void SIMD_FN(transpose)(float *to, int64_t stride_to, const float *from, int64_t stride, int64_t rows, int64_t columns)
{
    enum { BLOCK = 16 };
    int64_t i = 0;
    for (; i + BLOCK <= rows; i += BLOCK)
        for (int64_t j = 0; j < columns; j++) {
            float *line = to + j * stride_to + i;
            const float *first = from + i * stride + j;
            V_FOR(int r = 0; r < BLOCK; r++)
                line[r] = first[r * stride];
        }
    for (; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * stride_to + i] = from[i * stride + j];
}
