/* test_cuda_tokens.cu - gradients of the tokens in front, and of the positions, against doubles. SPDX-License-Identifier: MIT
 *
 * One token in front (ViT), two (DeiT), with and without positions; batches of one image and of more than a chunk of rows.
 * The partial sums of one call are added after all its kernels, as in a program (ends.c). Each case runs twice with equal
 * bytes, and nothing is written outside the outputs.
 *
 * Exit 77 without a GPU. With CUDA_EMULATED the kernels run on the host (emulate.cuh). By hand:
 *   nvcc -std=c++20 -arch=sm_90 --fmad=false -DKERNELS_ALONE -Isrc -Iinclude -Itests/cuda tests/cuda/test_cuda_tokens.cu \
 *       src/cuda/tokens.cu src/cuda/columns.cu -o test_cuda_tokens */
#include "kernel_check.cuh"

static void tokens_grad_case(int64_t images, int front, int64_t patches, int64_t channels, bool positions,
                             tensor_dtype type)
{
    int64_t all = front + patches;
    std::string name = std::to_string(images) + " images of " + std::to_string(front) + " + " +
                       std::to_string(patches) + " tokens x " + std::to_string(channels) +
                       (type == DTYPE_BF16 ? ", bf16" : ", f32");
    test_tensor dy(images * all, channels, type), dx(images * patches, channels, type);
    test_tensor dpos(all, channels, DTYPE_F32), dcls(1, channels, DTYPE_F32), ddist(1, channels, DTYPE_F32);
    dy.fill(0.1, 1);
    call_runner c(OP_TOKENS_GRAD);
    c.call.batch = images;
    c.in(0, &dy);
    c.out(0, &dx);
    c.out(1, positions ? &dpos : NULL);
    c.out(2, &dcls);
    c.out(3, front > 1 ? &ddist : NULL);
    c.run(name, cuda_tokens_grad, cuda_tokens_grad_workspace, NULL);

    std::vector<double> rows(dx.size()), sums(all * channels), slack(all * channels);
    for (int64_t i = 0; i < images * all * channels; i++) {
        int64_t image = i / (all * channels), at = i % (all * channels), patch = at / channels - front;
        sums[at] += dy.value[i];
        slack[at] += 1e-6 * fabs(dy.value[i]);
        if (patch >= 0)
            rows[(image * patches + patch) * channels + at % channels] = dy.value[i];
    }
    compare(name + " dx", dx.raw(name), rows, type, NULL);
    if (positions)
        compare(name + " dpos", dpos.raw(name), sums, DTYPE_F32, slack.data());
    compare(name + " dcls", dcls.raw(name), std::vector<double>(sums.begin(), sums.begin() + channels), DTYPE_F32,
            slack.data());
    if (front > 1)
        compare(name + " ddist", ddist.raw(name),
                std::vector<double>(sums.begin() + channels, sums.begin() + 2 * channels), DTYPE_F32,
                slack.data() + channels);
}

int main(void)
{
    if (!device_there()) {
        printf("no GPU: skipped\n");
        return 77;
    }
    for (tensor_dtype type : {DTYPE_F32, DTYPE_BF16})
        for (int front = 1; front <= 2; front++)
            for (int64_t images : {1, 3, 700})
                for (int64_t channels : {6, 24})
                    tokens_grad_case(images, front, 4, channels, images != 3, type);
    printf("tokens: %d wrong\n", faults);
    return faults != 0;
}
