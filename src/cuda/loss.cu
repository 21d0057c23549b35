/* loss.cu - cross entropy and distillation. SPDX-License-Identifier: MIT
 *
 * A warp has an image; classes are few beside the network, so all is in double as on the CPU
 * (cpu/ref_loss.c, which also has the meanings). Each image leaves its loss in the workspace, one
 * block adds them in a fixed order and writes the mean into the step's result. A loss that is not
 * finite sets result->fault: updates then change nothing. */
#include <math.h>

#include "cuda/prim.cuh"

namespace
{

constexpr int WARPS = THREADS / 32;
constexpr unsigned ALL = 0xffffffffu;

struct losses {
    array logits, targets, out; /* targets: probabilities, or the teacher's logits */
    const int32_t *labels;      /* NULL: targets are rows of probabilities */
    const engine_step *step;
    int64_t batch, classes;
    int kind; /* of distillation */
};

/* Both butterflies pair equal operands in every lane, so all lanes have the same bits. */
__device__ double warp_sum(double x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(ALL, x, step);
    return x;
}

__device__ double warp_max(double x)
{
    for (int step = 16; step > 0; step /= 2) {
        double other = __shfl_xor_sync(ALL, x, step);
        x = other > x ? other : x;
    }
    return x;
}

/* The log of the sum of exp(z / tau); NaN where the sum is. */
__device__ double log_sum(const array &z, int64_t base, int64_t classes, double tau)
{
    int lane = threadIdx.x % 32;
    double top = -INFINITY, sum = 0;
    for (int64_t k = lane; k < classes; k += 32) {
        double v = load(z, base + k) / tau;
        top = v > top ? v : top;
    }
    top = warp_max(top);
    for (int64_t k = lane; k < classes; k += 32)
        sum += exp(load(z, base + k) / tau - top);
    return top + log(warp_sum(sum));
}

__device__ double softmax_store(const losses &l, int64_t base, double tau)
{
    double logsum = log_sum(l.logits, base, l.classes, tau);
    for (int64_t k = threadIdx.x % 32; k < l.classes; k += 32)
        store(l.out, base + k, (float)exp(load(l.logits, base + k) / tau - logsum));
    return logsum;
}

/* The first of the largest; every lane has the result. As on the CPU, NaN is larger than nothing,
 * and nothing is larger than a NaN that comes first. */
__device__ int64_t argmax(const array &z, int64_t base, int64_t classes)
{
    int lane = threadIdx.x % 32;
    int64_t best = lane < classes ? lane : 0;
    float value = load(z, base + best);
    value = best > 0 && isnan(value) ? -INFINITY : value;
    for (int64_t k = best + 32; k < classes; k += 32) {
        float v = load(z, base + k);
        best = v > value ? k : best;
        value = v > value ? v : value;
    }
    for (int step = 16; step > 0; step /= 2) {
        float v = __shfl_down_sync(ALL, value, step);
        int64_t at = __shfl_down_sync(ALL, best, step);
        bool take = v > value || (v == value && at < best);
        best = take ? at : best;
        value = take ? v : value;
    }
    return __shfl_sync(ALL, best, 0);
}

__device__ bool counted(const losses &l, int64_t i)
{
    return !l.labels || l.labels[i] >= 0;
}

__device__ double target(const losses &l, int64_t i, int64_t k)
{
    if (!l.labels)
        return load(l.targets, i * l.classes + k);
    return l.step->smoothing / (double)l.classes + (l.labels[i] == k ? 1 - l.step->smoothing : 0);
}

/* How many images count, at least 1; for whole warps. */
__device__ double images_counted(const losses &l)
{
    double mine = 0;
    for (int64_t i = threadIdx.x % 32; i < l.batch; i += 32)
        mine += counted(l, i);
    double all = warp_sum(mine);
    return all > 0 ? all : 1;
}

__device__ int64_t warp_index(void)
{
    return (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
}

__global__ void __launch_bounds__(THREADS) cross_entropy(losses l, double *image_loss)
{
    int64_t i = warp_index();
    if (i >= l.batch)
        return;
    double logsum = softmax_store(l, i * l.classes, 1), sum = 0;
    for (int64_t k = threadIdx.x % 32; k < l.classes && counted(l, i); k += 32) {
        double t = target(l, i, k);
        sum += t != 0 ? t * (logsum - load(l.logits, i * l.classes + k)) : 0;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        image_loss[i] = !counted(l, i) ? 0 : isnan(logsum) ? logsum : sum;
}

__global__ void __launch_bounds__(THREADS) cross_entropy_grad(losses l, int distilled)
{
    int64_t i = warp_index();
    if (i >= l.batch)
        return;
    const engine_step *s = l.step;
    double factor = s->loss_scale * (distilled ? 1 - s->distill_alpha : 1) / images_counted(l), sum = 0;
    for (int64_t k = threadIdx.x % 32; k < l.classes; k += 32)
        sum += target(l, i, k);
    sum = warp_sum(sum);
    for (int64_t k = threadIdx.x % 32; k < l.classes; k += 32) {
        double d = factor * (load(l.logits, i * l.classes + k) * sum - target(l, i, k));
        store(l.out, i * l.classes + k, counted(l, i) ? (float)d : 0.0f);
    }
}

/* ---- distillation ---------------------------------------------------------------------------- */

__device__ double temperature(const losses &l)
{
    return l.kind == DISTILL_HARD ? 1 : l.step->distill_tau;
}

/* What the soft loss is divided by, as in DeiT. */
__device__ double soft_count(const losses &l)
{
    return (double)(l.batch * l.classes);
}

__global__ void __launch_bounds__(THREADS) distill(losses l, double *image_loss)
{
    int64_t i = warp_index();
    if (i >= l.batch)
        return;
    int64_t base = i * l.classes;
    double tau = temperature(l), logsum = softmax_store(l, base, tau), loss = 0;
    if (l.kind == DISTILL_HARD) {
        int64_t best = argmax(l.targets, base, l.classes);
        loss = (logsum - load(l.logits, base + best)) / (double)l.batch;
    } else {
        double other = log_sum(l.targets, base, l.classes, tau);
        for (int64_t k = threadIdx.x % 32; k < l.classes; k += 32) {
            double q = load(l.targets, base + k) / tau - other;
            loss += exp(q) * (q - (load(l.logits, base + k) / tau - logsum));
        }
        loss = tau * tau * warp_sum(loss) / soft_count(l);
    }
    if (threadIdx.x % 32 == 0)
        image_loss[i] = loss;
}

__global__ void __launch_bounds__(THREADS) distill_grad(losses l)
{
    int64_t i = warp_index(), base = i * l.classes;
    if (i >= l.batch)
        return;
    bool hard = l.kind == DISTILL_HARD;
    double tau = temperature(l), weight = l.step->loss_scale * l.step->distill_alpha;
    double factor = weight * (hard ? 1 / (double)l.batch : tau / soft_count(l));
    double other = hard ? 0 : log_sum(l.targets, base, l.classes, tau);
    int64_t best = hard ? argmax(l.targets, base, l.classes) : 0;
    for (int64_t k = threadIdx.x % 32; k < l.classes; k += 32) {
        double q = hard ? (double)(k == best) : exp(load(l.targets, base + k) / tau - other);
        store(l.out, base + k, (float)(factor * (load(l.logits, base + k) - q)));
    }
}

/* One block: the sum of all images' losses in a fixed order; `mean`: over those that count. */
__global__ void __launch_bounds__(THREADS)
    loss_join(losses l, const double *image_loss, step_result *result, int part, int mean)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < l.batch; i += THREADS)
        sum += image_loss[i];
    sum = block_sum(sum);
    double images = mean ? images_counted(l) : 1;
    if (threadIdx.x > 0)
        return;
    result->loss_part[part] = sum / images;
    if (!isfinite(sum))
        result->fault = 1;
}

losses losses_of(const op_call *c)
{
    int labels = (c->op == OP_CROSS_ENTROPY || c->op == OP_CROSS_ENTROPY_GRAD) && !c->attr->soft;
    return losses{array_of(&c->in[0]),
                  labels ? array{} : array_of(&c->in[1]),
                  array_of(&c->out[0]),
                  labels ? (const int32_t *)c->in[1].data : nullptr,
                  c->step,
                  c->batch,
                  c->in[0].channels,
                  c->attr->distill};
}

int64_t blocks_of(const op_call *c)
{
    return (c->batch + WARPS - 1) / WARPS;
}

} // namespace

extern "C" {

size_t cuda_loss_workspace(const op_call *c)
{
    return (size_t)c->batch * sizeof(double);
}

void cuda_cross_entropy(const op_call *c)
{
    cuda_stream s = cuda_device_of(c)->stream;
    losses l = losses_of(c);
    kernel_launch(s, cross_entropy, blocks_of(c), THREADS, 0, l, (double *)c->workspace);
    kernel_launch(s, loss_join, 1, THREADS, 0, l, (const double *)c->workspace, c->result, 0, 1);
    cuda_launched(c);
}

void cuda_cross_entropy_grad(const op_call *c)
{
    kernel_launch(cuda_device_of(c)->stream, cross_entropy_grad, blocks_of(c), THREADS, 0, losses_of(c),
                  c->attr->distill);
    cuda_launched(c);
}

void cuda_distill(const op_call *c)
{
    cuda_stream s = cuda_device_of(c)->stream;
    losses l = losses_of(c);
    kernel_launch(s, distill, blocks_of(c), THREADS, 0, l, (double *)c->workspace);
    kernel_launch(s, loss_join, 1, THREADS, 0, l, (const double *)c->workspace, c->result, 1, 0);
    cuda_launched(c);
}

void cuda_distill_grad(const op_call *c)
{
    kernel_launch(cuda_device_of(c)->stream, distill_grad, blocks_of(c), THREADS, 0, losses_of(c));
    cuda_launched(c);
}
}
