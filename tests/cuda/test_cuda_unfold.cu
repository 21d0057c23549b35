/* test_cuda_unfold.cu - windows as rows, and back, against their definition. SPDX-License-Identifier: MIT
 *
 * Maps whose sides windows divide and do not divide, channels that fill no vector, patches, padding, strides and tiles, and
 * every mix of dtypes: shapes with a kernel of their own and shapes without. Elements are copied, so results are exact, or one
 * rounding to bf16. Each case runs twice with equal bytes, and nothing is written outside the outputs.
 *
 * Exit 77 without a GPU. With CUDA_EMULATED the kernels run on the host (emulate.cuh). By hand:
 *   nvcc -std=c++20 -arch=sm_90 --fmad=false -DKERNELS_ALONE -Isrc -Iinclude -Itests/cuda tests/cuda/test_cuda_unfold.cu \
 *       src/cuda/unfold.cu src/cuda/columns.cu -o test_cuda_unfold */
#include "kernel_check.cuh"

struct shape {
    int images, channels, height, width;
    bool planar;
    unfold_spec spec;
};

struct layout {
    int down, across, row; /* as the rows' tensor has them */
};

static layout layout_of(const shape &s)
{
    const unfold_spec &u = s.spec;
    int row = s.channels * u.kernel * u.kernel;
    if (!u.tile)
        return layout{(s.height + 2 * u.padding - u.kernel) / u.stride + 1,
                      (s.width + 2 * u.padding - u.kernel) / u.stride + 1, row};
    int side = u.leak ? u.tile / u.stride : (u.tile + 2 * u.padding - u.kernel) / u.stride + 1;
    return layout{s.height / u.tile * (s.width / u.tile), side * side, row};
}

struct map_tensor : test_tensor {
    map_tensor(const shape &s, tensor_dtype type)
        : test_tensor((int64_t)s.images * s.channels * s.height * s.width / (s.planar ? s.width : s.channels),
                      s.planar ? s.width : s.channels, type)
    {
        info.rank = 3;
        info.size[0] = s.planar ? s.channels : s.height;
        info.size[1] = s.planar ? s.height : s.width;
        info.size[2] = s.planar ? s.width : s.channels;
    }
};

struct rows_tensor : test_tensor {
    rows_tensor(const shape &s, const layout &l, tensor_dtype type)
        : test_tensor((int64_t)s.images * l.down * l.across, l.row, type)
    {
        info.rank = 3;
        info.size[0] = l.down, info.size[1] = l.across, info.size[2] = l.row;
    }
};

/* The element of the map that element `at` of the rows is; -1: a zero. */
static int64_t source_of(const shape &s, const layout &l, int64_t at)
{
    const unfold_spec &u = s.spec;
    int64_t r = at / l.row % (l.down * l.across), image = at / l.row / (l.down * l.across), k = at % l.row;
    int64_t kx = k % u.kernel, ky = k / u.kernel % u.kernel, c = k / u.kernel / u.kernel;
    int64_t y, x, y0 = 0, x0 = 0, y1 = s.height, x1 = s.width;
    if (!u.tile) {
        y = r / l.across * u.stride - u.padding + ky;
        x = r % l.across * u.stride - u.padding + kx;
    } else {
        int64_t side = (int64_t)sqrt((double)l.across), tile = r / l.across, place = r % l.across;
        int64_t top = tile / (s.width / u.tile) * u.tile, left = tile % (s.width / u.tile) * u.tile;
        y = top + place / side * u.stride - u.padding + ky;
        x = left + place % side * u.stride - u.padding + kx;
        if (!u.leak)
            y0 = top, x0 = left, y1 = top + u.tile, x1 = left + u.tile;
    }
    if (y < y0 || y >= y1 || x < x0 || x >= x1)
        return -1;
    return s.planar ? ((image * s.channels + c) * s.height + y) * s.width + x
                    : ((image * s.height + y) * s.width + x) * s.channels + c;
}

static void unfold_case(const shape &s, const std::string &name, tensor_dtype from, tensor_dtype to)
{
    layout l = layout_of(s);
    map_tensor map(s, from);
    rows_tensor rows(s, l, to);
    map.fill(0, 1);
    std::vector<double> want(rows.size());
    for (size_t i = 0; i < want.size(); i++)
        want[i] = source_of(s, l, (int64_t)i) < 0 ? 0 : map.value[source_of(s, l, (int64_t)i)];
    call_runner c(OP_UNFOLD);
    c.attr.planar = s.planar, c.attr.unfold = s.spec;
    c.in(0, &map), c.out(0, &rows);
    c.run(name, cuda_unfold, NULL, NULL);
    compare(name, rows.raw(name), want, to, NULL);
}

static void fold_case(const shape &s, const std::string &name, tensor_dtype from, tensor_dtype to)
{
    layout l = layout_of(s);
    map_tensor map(s, to);
    rows_tensor rows(s, l, from);
    rows.fill(0, 1);
    std::vector<double> want(map.size());
    for (size_t i = 0; i < rows.size(); i++)
        want[source_of(s, l, (int64_t)i)] = rows.value[i];
    call_runner c(OP_FOLD);
    c.attr.planar = s.planar, c.attr.unfold = s.spec;
    c.in(0, &rows), c.out(0, &map);
    c.run(name, cuda_fold, NULL, NULL);
    compare(name, map.raw(name), want, to, NULL);
}

#ifdef CUDA_EMULATED
/* Kernels without a loop have a thread for each of their vectors of `each` elements, in whatever
 * batch: nothing is run, so nothing needs to lie at the addresses. */
static void threads_case(op_id op, op_kernel kernel, const shape &s, int each)
{
    layout l = layout_of(s);
    int64_t elements = (int64_t)s.images * l.down * l.across * l.row;
    shape one = s;
    one.images = 1;
    map_tensor map(one, DTYPE_F32);
    rows_tensor rows(one, l, DTYPE_F32);
    map.rows *= s.images, rows.rows *= s.images;
    call_runner c(op);
    c.attr.planar = s.planar, c.attr.unfold = s.spec;
    c.in(0, op == OP_UNFOLD ? (test_tensor *)&map : &rows), c.out(0, op == OP_UNFOLD ? (test_tensor *)&rows : &map);
    emulate_counts_only = 1;
    kernel(&c.call);
    emulate_counts_only = 0;
    if (emulate_threads * each < elements)
        fail("a batch of " + std::to_string(s.images) + ": " + std::to_string(emulate_threads) + " threads");
}
#endif

int main(void)
{
    if (!device_there()) {
        printf("no GPU: skipped\n");
        return 77;
    }
    const shape shapes[] = {
        {3, 8, 6, 4, false, {2, 2}},    {2, 96, 4, 8, false, {2, 2}},     {2, 7, 6, 4, false, {2, 2}},
        {3, 8, 7, 5, false, {2, 2}},    {2, 5, 6, 6, false, {3, 3}},      {2, 3, 8, 8, true, {4, 4}},
        {1, 3, 32, 16, true, {16, 16}}, {2, 3, 12, 10, true, {4, 4}},     {2, 3, 9, 9, true, {1, 1}},
        {2, 3, 8, 8, true, {7, 2, 3}},  {2, 3, 8, 8, true, {7, 1, 3, 4}}, {2, 3, 8, 8, true, {7, 2, 3, 4, 1}}};
    for (const shape &s : shapes)
        for (int mix = 0; mix < 4; mix++) {
            tensor_dtype from = mix / 2 ? DTYPE_BF16 : DTYPE_F32, to = mix % 2 ? DTYPE_BF16 : DTYPE_F32;
            char text[120];
            snprintf(text, sizeof text, "%d maps of %d x %d x %d, window %d, stride %d, tile %d, %d to %d bytes",
                     s.images, s.channels, s.height, s.width, s.spec.kernel, s.spec.stride, s.spec.tile,
                     mix / 2 ? 2 : 4, mix % 2 ? 2 : 4);
            unfold_case(s, std::string("unfold, ") + text, from, to);
            if (!s.planar)
                fold_case(s, std::string("fold, ") + text, from, to);
        }
#ifdef CUDA_EMULATED
    threads_case(OP_UNFOLD, cuda_unfold, {8192, 3, 224, 224, true, {16, 16}}, 4);
    threads_case(OP_UNFOLD, cuda_unfold, {16384, 96, 56, 56, false, {2, 2}}, 16);
    threads_case(OP_FOLD, cuda_fold, {16384, 96, 56, 56, false, {2, 2}}, 16);
#endif
    printf("unfold: %d wrong\n", faults);
    return faults ? 1 : 0;
}
