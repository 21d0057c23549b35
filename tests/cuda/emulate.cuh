/* emulate.cuh - the words of CUDA that our kernels use, on the host. SPDX-License-Identifier: MIT
 *
 * Every thread of a block is a fiber; blocks run one after the other. Shuffles, ldmatrix and mma
 * write what they take into a slot per lane, meet the warp at a barrier, and read what they need,
 * exactly as the instruction set defines it. Shared memory starts as NaN, so that a value used
 * before it is written shows. Misaligned vector accesses abort. Asynchronous copies and products
 * happen as late as the device may let them in one launch, and at once in the next: a read that does
 * not wait shows in the first, a place that is written while others still read it in the second.
 *
 * cuda/prim.cuh includes this where CUDA_EMULATED is defined; tests/cuda/CMakeLists.txt builds
 * test_cuda_kernels that way a second time. */
#ifndef EMULATE_CUH
#define EMULATE_CUH

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <vector>

#include <ucontext.h>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __launch_bounds__
#undef __align__
#define __global__
#define __device__
#define __host__
#define __shared__ static /* one block runs at a time */
#define __launch_bounds__(...)
#define __align__(N) alignas(N)
#undef __forceinline__
#undef __grid_constant__
#define __forceinline__ inline
#define __grid_constant__
#define __builtin_assume(CONDITION) ((void)0)
#define _Alignas(N) __attribute__((aligned(N))) /* simd/vec_scalar.h is C */
#define DEVICE static inline

struct emulate_fiber {
    ucontext_t context; /* to start; jumps switch from then on, since swapcontext() calls the kernel each time */
    jmp_buf place;
    bool started;
    std::vector<char> stack;
    bool done;
};
struct emulate_warp {
    char slot[32][64];
    int arrived, generation;
};

static dim3 threadIdx, blockIdx, blockDim, gridDim;
static unsigned char *emulate_shared;
static std::vector<emulate_fiber> emulate_fibers;
static std::vector<emulate_warp> emulate_warps;
static ucontext_t emulate_main;
static jmp_buf emulate_scheduler;
static std::function<void()> emulate_body;
static int emulate_arrived, emulate_generation;
static bool emulate_at_once; /* asynchronous work of this launch */
static int emulate_named_arrived[16], emulate_named_generation[16];
static long emulate_arrivals; /* at any barrier, and ends of fibers */

/* Bytes of shared memory that a block may have: what GPUs of compute capability 8.6 and 8.9 give
 * it. 8.0 has 163 KiB, 9.0 227; a test that means these says so. One for all files of a test. */
inline size_t emulate_shared_most = 99 * 1024;

/* Of sizes that no machine has time for a test can ask how many threads a launch has: 1: kernels do
 * not run. */
inline int emulate_counts_only;
inline int64_t emulate_threads; /* of the last launch */

#define SHARED_BYTES(NAME) unsigned char *NAME = emulate_shared

static inline void emulate_yield()
{
    unsigned me = threadIdx.x;
    if (!_setjmp(emulate_fibers[me].place))
        _longjmp(emulate_scheduler, 1);
    threadIdx.x = me;
}

static void emulate_entry()
{
    unsigned me = threadIdx.x;
    emulate_body();
    emulate_fibers[me].done = true;
    emulate_arrivals++;
    _longjmp(emulate_scheduler, 1);
}

static void emulate_resume(int thread)
{
    emulate_fiber &f = emulate_fibers[thread];
    threadIdx.x = thread;
    if (_setjmp(emulate_scheduler))
        return;
    if (f.started)
        _longjmp(f.place, 1);
    f.started = true;
    setcontext(&f.context);
}

static void emulate_fail(const char *what)
{
    fprintf(stderr, "emulated block %u, thread %u: %s\n", blockIdx.x, threadIdx.x, what);
    abort();
}

static void __syncthreads()
{
    int g = emulate_generation;
    emulate_arrivals++;
    if (++emulate_arrived == (int)blockDim.x) {
        emulate_arrived = 0;
        emulate_generation++;
        return;
    }
    while (emulate_generation == g)
        emulate_yield();
}

static void barrier_arrive(int id, int threads)
{
    emulate_arrivals++;
    if (++emulate_named_arrived[id] == threads) {
        emulate_named_arrived[id] = 0;
        emulate_named_generation[id]++;
    }
}

/* `threads` of the block meet at one of its further barriers. */
static void barrier_wait(int id, int threads)
{
    int g = emulate_named_generation[id];
    barrier_arrive(id, threads);
    while (emulate_named_generation[id] == g)
        emulate_yield();
}

static void __syncwarp()
{
    emulate_warp &w = emulate_warps[threadIdx.x / 32];
    int g = w.generation;
    emulate_arrivals++;
    if (++w.arrived == 32) {
        w.arrived = 0;
        w.generation++;
        return;
    }
    while (w.generation == g)
        emulate_yield();
}

static void emulate_start(int thread)
{
    emulate_fiber &f = emulate_fibers[thread];
    f.stack.resize(128 << 10);
    f.done = f.started = false;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = &emulate_main;
    makecontext(&f.context, emulate_entry, 0);
}

/* Runs the fibers in turn until all are done, up and down in alternation, and the other way round
 * in some launches: a missing barrier shows as other results. Where barriers do not match, all wait
 * and nobody arrives any more, or somebody has arrived at a barrier for nobody. */
static void emulate_block(int threads, int first_way)
{
    for (long round = 0;; round++) {
        int left = 0;
        long before = emulate_arrivals;
        for (int i = 0; i < threads; i++) {
            int t = (round + first_way) % 2 ? threads - 1 - i : i;
            if (!emulate_fibers[t].done) {
                left++;
                emulate_resume(t);
            }
        }
        if (!left)
            break;
        if (emulate_arrivals == before)
            emulate_fail("barriers do not match");
    }
    for (int arrived : emulate_named_arrived)
        if (arrived)
            emulate_fail("a barrier was left before all had arrived");
}

static void emulate_launch(int64_t blocks, int threads, size_t shared, std::function<void()> body)
{
    static uint32_t launches;
    int first_way = (int)(++launches * 2654435761u >> 31);
    emulate_at_once = launches % 2 == 0;
    if (threads % 32 || threads > 1024 || shared > emulate_shared_most || blocks < 1)
        emulate_fail("no such launch on the device");
    emulate_threads = blocks * threads;
    if (emulate_counts_only)
        return;
    std::vector<unsigned char> memory(shared + 256);
    emulate_shared = (unsigned char *)(((uintptr_t)memory.data() + 127) / 128 * 128);
    emulate_body = body;
    emulate_fibers.resize(threads);
    blockDim.x = threads;
    gridDim.x = (unsigned)blocks;
    for (int64_t b = 0; b < blocks; b++) {
        blockIdx.x = (unsigned)b;
        memset(emulate_shared, 0xff, shared);
        emulate_warps.assign(threads / 32, emulate_warp());
        emulate_arrived = emulate_generation = 0;
        for (int t = 0; t < threads; t++)
            emulate_start(t);
        emulate_block(threads, first_way);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

DEVICE float __uint_as_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

DEVICE uint32_t __float_as_uint(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

DEVICE uint32_t emulate_bf16(float f)
{
    uint32_t u = __float_as_uint(f);
    return f != f ? 0x7fffu : (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
}

DEVICE uint32_t bf16_pair(float low, float high)
{
    return emulate_bf16(low) | emulate_bf16(high) << 16;
}

DEVICE void vector_store(void *to, uint4 v)
{
    *(uint4 *)to = v;
}

DEVICE void vector_store(void *to, uint2 v)
{
    *(uint2 *)to = v;
}

DEVICE float exp2_fast(float x)
{
    return exp2f(x);
}

template <typename T> DEVICE T __ldg(const T *p)
{
    return *p;
}

/* ---- collectives of a warp ------------------------------------------------------------------- */

/* What lane `from` of the warp has. */
template <typename T> DEVICE T emulate_lane(T v, int from)
{
    emulate_warp &w = emulate_warps[threadIdx.x / 32];
    T r;
    memcpy(w.slot[threadIdx.x % 32], &v, sizeof v);
    __syncwarp();
    memcpy(&r, w.slot[from], sizeof r);
    __syncwarp();
    return r;
}

template <typename T> DEVICE T __shfl_sync(unsigned, T v, int from)
{
    return emulate_lane(v, from);
}

template <typename T> DEVICE T __shfl_xor_sync(unsigned, T v, int mask)
{
    return emulate_lane(v, (int)(threadIdx.x % 32) ^ mask);
}

template <typename T> DEVICE T __shfl_down_sync(unsigned, T v, int step)
{
    int lane = threadIdx.x % 32;
    return emulate_lane(v, lane + step < 32 ? lane + step : lane);
}

/* A copy happens when its group is waited for, or at once. */
struct emulate_copy {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
};

DEVICE void emulate_do(const emulate_copy &c)
{
    if (c.from)
        memcpy(c.to, c.from, c.bytes);
    else
        memset(c.to, 0, c.bytes);
}

static std::vector<std::vector<emulate_copy>> emulate_copies[1024]; /* per thread, the last group not committed */

template <int BYTES> DEVICE void copy_async(void *to, const void *from, bool there)
{
    auto &mine = emulate_copies[threadIdx.x];
    if ((uintptr_t)to % BYTES || (uintptr_t)from % BYTES)
        emulate_fail("misaligned asynchronous copy");
    if (mine.empty())
        mine.emplace_back();
    const emulate_copy copy = {to, there ? from : NULL, BYTES};
    if (emulate_at_once)
        emulate_do(copy);
    else
        mine.back().push_back(copy);
}

DEVICE void copy_commit()
{
    auto &mine = emulate_copies[threadIdx.x];
    if (mine.empty())
        mine.emplace_back();
    mine.emplace_back();
}

template <int LEFT> DEVICE void copy_wait()
{
    auto &mine = emulate_copies[threadIdx.x];
    while ((int)mine.size() > LEFT + 1) {
        for (const emulate_copy &c : mine.front())
            emulate_do(c);
        mine.erase(mine.begin());
    }
}

/* COUNT 8 x 8 matrices; row r of matrix m lies where lane 8 m + r says. A lane gets row lane / 4,
 * columns 2 (lane % 4) and the next, of each; transposed, those of the transposed matrix. */
template <int COUNT, bool TRANS> DEVICE void matrix_load(uint32_t *out, const uint16_t *row)
{
    emulate_warp &w = emulate_warps[threadIdx.x / 32];
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (lane < 8 * COUNT && (uintptr_t)row % 16)
        emulate_fail("misaligned ldmatrix");
    memcpy(w.slot[lane], &row, sizeof row);
    __syncwarp();
    for (int m = 0; m < COUNT; m++) {
        const uint16_t *r[8];
        for (int i = 0; i < 8; i++)
            memcpy(&r[i], w.slot[8 * m + i], sizeof r[i]);
        uint32_t a = TRANS ? r[2 * t][g] : r[g][2 * t], b = TRANS ? r[2 * t + 1][g] : r[g][2 * t + 1];
        out[m] = a | b << 16;
    }
    __syncwarp();
}

DEVICE uint32_t shared_address(const void *p)
{
    return (uint32_t)((const unsigned char *)p - emulate_shared);
}

template <bool TRANS> DEVICE void matrix_load_at(uint32_t *out, uint32_t row)
{
    matrix_load<4, TRANS>(out, (const uint16_t *)(emulate_shared + row));
}

DEVICE float emulate_half(uint32_t pair, int high)
{
    return __uint_as_float(high ? pair & 0xffff0000u : pair << 16);
}

/* d += a b for a 16 x DEPTH, b DEPTH x 8; registers as the instruction lays them out. */
template <int DEPTH> DEVICE void emulate_mma(float *d, const uint32_t *a, const uint32_t *b)
{
    emulate_warp &w = emulate_warps[threadIdx.x / 32];
    constexpr int NA = DEPTH / 4, NB = DEPTH / 8;
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    memcpy(w.slot[lane], a, NA * 4);
    memcpy(w.slot[lane] + 16, b, NB * 4);
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        int row = g + i / 2 * 8, col = 2 * t + i % 2;
        float sum = 0;
        for (int k = 0; k < DEPTH; k++) {
            uint32_t av, bv;
            memcpy(&av, w.slot[(row % 8) * 4 + k % 8 / 2] + 4 * (row / 8 + 2 * (k / 8)), 4);
            memcpy(&bv, w.slot[col * 4 + k % 8 / 2] + 16 + 4 * (k / 8), 4);
            sum += emulate_half(av, k % 2) * emulate_half(bv, k % 2);
        }
        d[i] += sum;
    }
    __syncwarp();
}

DEVICE void mma16(float *d, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    const uint32_t b[2] = {b0, b1};
    emulate_mma<16>(d, a, b);
}

DEVICE void mma8(float *d, uint32_t a0, uint32_t a1, uint32_t b)
{
    const uint32_t a[2] = {a0, a1};
    emulate_mma<8>(d, a, &b);
}

/* ---- products of warpgroups (cuda/wgmma.cuh) ------------------------------------------------- */

DEVICE void shared_publish()
{
}

/* A product happens when it is waited for, or when its group is complete. */
struct emulate_product {
    float (*d)[4];
    uint32_t a, b;
    int columns, add;
    const uint32_t *held; /* A in registers: those of the thread, read when the product happens */
};
static std::vector<std::vector<emulate_product>> emulate_products[1024]; /* per thread, the last one being issued */

DEVICE void product_begin()
{
}

template <int N> DEVICE void product(float (*d)[4], uint32_t a, uint32_t b, int add)
{
    auto &mine = emulate_products[threadIdx.x];
    if (mine.empty())
        mine.emplace_back();
    mine.back().push_back({d, a, b, N, add, NULL});
}

DEVICE void product_held(float (*d)[4], const uint32_t *a, uint32_t b, int add)
{
    auto &mine = emulate_products[threadIdx.x];
    if (mine.empty())
        mine.emplace_back();
    mine.back().push_back({d, 0, b, 192, add, a});
}

template <int WORDS> DEVICE void product_hold(uint32_t *)
{
}

DEVICE int warp_uniform(int v)
{
    return v;
}

/* Element (row, k) of an operand: rows of 128 bytes, chunks of 16 bytes permuted by bits 7 to 9 of
 * the address. */
static const uint32_t EMULATE_BY_ROWS = 1u << 31; /* in an operand, where the device has nothing: k counts its rows */

DEVICE float emulate_element(uint32_t operand, int row, int k)
{
    bool by_rows = operand & EMULATE_BY_ROWS;
    uint32_t start = (operand & 0x3fff) << 4, apart = (operand >> 16 & 0x3fff) << 4; /* of blocks of 64 channels */
    uint32_t at = start + (by_rows ? row / 64 * apart + k * 128 + row % 64 * 2 : row * 128 + k * 2);
    uint16_t bits;
    if ((start & 0x3ff) >= 128)
        emulate_fail("an operand that does not begin at a multiple of 1024 bytes");
    memcpy(&bits, emulate_shared + (at ^ (at >> 7 & 7) << 4), 2);
    return __uint_as_float((uint32_t)bits << 16);
}

/* A lies in the warp's registers as mma takes it. */
DEVICE void emulate_multiply_held(const emulate_product &p)
{
    emulate_warp &w = emulate_warps[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    memcpy(w.slot[lane], p.held, 16);
    __syncwarp();
    float a[2][16];
    for (int below = 0; below < 2; below++)
        for (int k = 0; k < 16; k++) {
            uint32_t pair;
            memcpy(&pair, w.slot[lane / 4 * 4 + k % 8 / 2] + 4 * (below + 2 * (k / 8)), 4);
            a[below][k] = emulate_half(pair, k % 2);
        }
    for (int n = 0; n < p.columns / 8; n++)
        for (int i = 0; i < 4; i++) {
            float sum = p.add ? p.d[n][i] : 0;
            for (int k = 0; k < 16; k++)
                sum += a[i / 2][k] * emulate_element(p.b, n * 8 + lane % 4 * 2 + i % 2, k);
            p.d[n][i] = sum;
        }
    __syncwarp();
}

DEVICE void emulate_multiply(const emulate_product &p)
{
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    for (int n = 0; n < p.columns / 8; n++)
        for (int i = 0; i < 4; i++) {
            float sum = p.add ? p.d[n][i] : 0;
            for (int k = 0; k < 16; k++)
                sum += emulate_element(p.a, row + i / 2 * 8, k) * emulate_element(p.b, n * 8 + lane % 4 * 2 + i % 2, k);
            p.d[n][i] = sum;
        }
}

DEVICE void emulate_products_do(int left)
{
    auto &mine = emulate_products[threadIdx.x];
    while ((int)mine.size() > left + 1) {
        std::vector<emulate_product> group = mine.front(); /* a warp may be switched within a product */
        mine.erase(mine.begin());
        for (const emulate_product &p : group)
            if (p.held)
                emulate_multiply_held(p);
            else
                emulate_multiply(p);
    }
}

DEVICE void product_end()
{
    emulate_products[threadIdx.x].emplace_back();
    if (emulate_at_once)
        emulate_products_do(0);
}

template <int N, int LEFT> DEVICE void product_wait(float (*)[4])
{
    emulate_products_do(LEFT);
}

#endif
