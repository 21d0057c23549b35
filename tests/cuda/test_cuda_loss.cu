/* test_cuda_loss.cu - losses and their gradients against their definition in double. SPDX-License-Identifier: MIT
 *
 * Fewer classes than a warp has lanes and more, batches that no block divides, rows without a label, none with one, smoothing,
 * rows of probabilities, both distillations; logits that are not finite, and a teacher's that tie or are NaN, of which the CPU
 * takes the first of the largest (cpu/ref_loss.c). Each case runs twice with equal bytes, and nothing is written outside the
 * outputs. Sums are in double, so results are one rounding from the definition.
 *
 * Exit 77 without a GPU. With CUDA_EMULATED the kernels run on the host (emulate.cuh). By hand:
 *   nvcc -std=c++20 -arch=sm_90 --fmad=false -DKERNELS_ALONE -Isrc -Iinclude -Itests/cuda tests/cuda/test_cuda_loss.cu \
 *       src/cuda/loss.cu src/cuda/columns.cu -o test_cuda_loss */
#include "kernel_check.cuh"

/* A call with the values of a step and its result in device memory. */
struct loss_runner : call_runner {
    engine_step step = {};
    step_result *result = (step_result *)device_alloc(sizeof *result);
    engine_step *there = (engine_step *)device_alloc(sizeof *there);

    loss_runner(op_id op, int64_t images) : call_runner(op)
    {
        step.smoothing = 0.1, step.distill_alpha = 0.3, step.distill_tau = 3, step.loss_scale = 0.5;
        call.batch = (int)images;
        call.step = there, call.result = result;
    }
    ~loss_runner()
    {
        device_free(result);
        device_free(there);
    }
    step_result go(const std::string &name, op_kernel kernel)
    {
        step_result r = {};
        device_copy(result, &r, sizeof r);
        device_copy(there, &step, sizeof step);
        run(name, kernel, cuda_loss_workspace, NULL);
        device_copy(&r, result, sizeof r);
        return r;
    }
};

static void compare_loss(const std::string &name, const step_result &r, int part, double want)
{
    double got = r.loss_part[part];
    if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want))) && !(isnan(got) && isnan(want)))
        fail(name + ": the loss is " + std::to_string(got) + ", not " + std::to_string(want));
    if (r.fault != !isfinite(want))
        fail(name + ": fault is " + std::to_string(r.fault));
}

/* The log of the sum of exp(z / tau); NaN where the sum is. */
static double log_sum(const double *z, int64_t classes, double tau)
{
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++)
        top = z[k] / tau > top ? z[k] / tau : top;
    for (int64_t k = 0; k < classes; k++)
        sum += exp(z[k] / tau - top);
    return top + log(sum);
}

static int64_t argmax(const double *z, int64_t classes)
{
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++)
        best = z[k] > z[best] ? k : best;
    return best;
}

/* Labels as a tensor: -1 is a row that does not count. */
struct label_tensor {
    std::vector<int32_t> value;
    void *data;

    label_tensor(int64_t images, int64_t classes, int left_out) : value((size_t)images)
    {
        for (size_t i = 0; i < value.size(); i++)
            value[i] = left_out && (left_out > 1 || i % 3 == 1) ? -1 : (int32_t)(i * 7 % (size_t)classes);
        data = device_alloc(value.size() * 4);
        device_copy(data, value.data(), value.size() * 4);
    }
    ~label_tensor()
    {
        device_free(data);
    }
};

/* left_out: 1: some rows have no label, 2: none has one. bad: a number that is not finite among the logits of the last row. */
static void cross_entropy_case(int64_t images, int64_t classes, tensor_dtype type, int soft, int left_out, double bad)
{
    std::string name = std::to_string(images) + " x " + std::to_string(classes) + (soft ? " soft" : " labels") +
                       (left_out ? ", rows left out" : "") + ", a logit of " + std::to_string(bad);
    test_tensor z(images, classes, type), p(images, classes, DTYPE_F32), dz(images, classes, DTYPE_F32);
    test_tensor targets(images, classes, DTYPE_F32);
    label_tensor labels(images, classes, left_out);
    z.fill(0, 3), targets.fill(0.2, 0.1);
    if (bad != 0)
        z.value.back() = bad, z.put();
    loss_runner c(OP_CROSS_ENTROPY, images);
    c.attr.soft = soft;
    c.in(0, &z), c.in(1, &targets), c.out(0, &p);
    if (!soft)
        c.call.in[1].data = labels.data, c.call.in[1].dtype = DTYPE_I32;
    step_result r = c.go(name, cuda_cross_entropy);

    double loss = 0, counted = 0;
    std::vector<double> want(z.size()), gradient(z.size());
    for (int64_t i = 0; i < images; i++) {
        const double *row = &z.value[i * classes];
        double sum = log_sum(row, classes, 1), all = 0;
        bool counts = soft || labels.value[i] >= 0;
        counted += counts;
        auto target = [&](int64_t k) {
            double low = c.step.smoothing / (double)classes;
            return soft ? targets.value[i * classes + k] : low + (labels.value[i] == k ? 1 - c.step.smoothing : 0);
        };
        for (int64_t k = 0; k < classes; k++) {
            want[i * classes + k] = exp(row[k] - sum);
            loss += counts && target(k) != 0 ? target(k) * (sum - row[k]) : 0;
            all += target(k);
        }
        for (int64_t k = 0; k < classes; k++)
            gradient[i * classes + k] = counts ? (float)want[i * classes + k] * all - target(k) : 0;
        loss = counts && isnan(sum) ? NAN : loss;
    }
    counted = counted > 0 ? counted : 1;
    compare_loss(name, r, 0, loss / counted);
    if (bad != 0)
        return;
    compare(name + " softmax", p.raw(name), want, DTYPE_F32, NULL);
    for (double &g : gradient)
        g *= c.step.loss_scale / counted;
    loss_runner d(OP_CROSS_ENTROPY_GRAD, images);
    d.attr.soft = soft;
    d.in(0, &p), d.in(1, &targets), d.out(0, &dz);
    if (!soft)
        d.call.in[1] = c.call.in[1];
    d.go(name, cuda_cross_entropy_grad);
    compare(name + " gradient", dz.raw(name), gradient, DTYPE_F32, NULL);
}

/* Of the teacher's logits element `at` of every row becomes `special`, and so does the one behind it. */
static void distill_case(int64_t images, int64_t classes, int kind, int64_t at, double special)
{
    std::string name = std::to_string(images) + " x " + std::to_string(classes) +
                       (kind == DISTILL_HARD ? " hard" : " soft") + ", a teacher's logit " + std::to_string(at) +
                       " of " + std::to_string(special);
    test_tensor z(images, classes, DTYPE_F32), teacher(images, classes, DTYPE_F32), r(images, classes, DTYPE_F32);
    test_tensor dz(images, classes, DTYPE_F32);
    z.fill(0, 3), teacher.fill(0, 3);
    for (int64_t i = 0; at >= 0 && i < images * classes; i++)
        if (i % classes == at || i % classes == at + 1)
            teacher.value[i] = special;
    teacher.put();
    loss_runner c(OP_DISTILL, images), d(OP_DISTILL_GRAD, images);
    c.attr.distill = d.attr.distill = kind;
    c.in(0, &z), c.in(1, &teacher), c.out(0, &r);
    step_result got = c.go(name, cuda_distill);
    d.in(0, &r), d.in(1, &teacher), d.out(0, &dz);
    d.go(name, cuda_distill_grad);

    bool hard = kind == DISTILL_HARD;
    double tau = hard ? 1 : c.step.distill_tau, loss = 0;
    double factor = c.step.loss_scale * c.step.distill_alpha * (hard ? 1 : tau / (double)classes) / (double)images;
    std::vector<double> want(z.size()), gradient(z.size());
    for (int64_t i = 0; i < images; i++) {
        const double *row = &z.value[i * classes], *other = &teacher.value[i * classes];
        double sum = log_sum(row, classes, tau), sum_other = log_sum(other, classes, tau);
        int64_t best = argmax(other, classes);
        for (int64_t k = 0; k < classes; k++) {
            double q = other[k] / tau - sum_other, share = hard ? k == best : exp(q);
            want[i * classes + k] = exp(row[k] / tau - sum);
            gradient[i * classes + k] = factor * ((float)want[i * classes + k] - share);
            if (!hard)
                loss += tau * tau * exp(q) * (q - (row[k] / tau - sum)) / (double)(images * classes);
        }
        loss += hard ? (sum - row[best]) / (double)images : 0;
    }
    compare_loss(name, got, 1, loss);
    compare(name + " softmax", r.raw(name), want, DTYPE_F32, NULL);
    if (isfinite(loss))
        compare(name + " gradient", dz.raw(name), gradient, DTYPE_F32, NULL);
}

int main(void)
{
    if (!device_there()) {
        printf("no GPU: skipped\n");
        return 77;
    }
    for (int64_t classes : {1, 2, 31, 33, 1000})
        for (int64_t images : {1, 9}) {
            for (int soft = 0; soft < 2; soft++) {
                cross_entropy_case(images, classes, DTYPE_F32, soft, 0, 0);
                cross_entropy_case(images, classes, DTYPE_BF16, soft, 0, 0);
                for (double bad : {(double)NAN, (double)INFINITY})
                    cross_entropy_case(images, classes, DTYPE_F32, soft, 0, bad);
            }
            cross_entropy_case(images, classes, DTYPE_F32, 0, 1, 0);
            cross_entropy_case(images, classes, DTYPE_F32, 0, 2, 0);
            cross_entropy_case(images, classes, DTYPE_F32, 0, 2, NAN); /* of a row that does not count */
            distill_case(images, classes, DISTILL_HARD, -1, 0);
            distill_case(images, classes, DISTILL_SOFT, -1, 0);
            distill_case(images, classes, DISTILL_SOFT, 0, NAN);
            for (int64_t at : {0, 1, 5, 17, 30})
                for (double special : {20.0, (double)NAN, -(double)INFINITY})
                    distill_case(images, classes, DISTILL_HARD, at, special);
        }
    printf("losses: %d wrong\n", faults);
    return faults != 0;
}
