/* test_cuda_quick.c - the bounds that cuda/quick.cuh and cuda/estimate.cuh promise hold.
 * SPDX-License-Identifier: MIT
 *
 * Every guess of quick.cuh encloses the result of the formula. With that, and because rounding and
 * multiplying are monotone, the 16-bit results of the quick kernels are those of the formula. All
 * inputs of both formats, and where there is a parameter seven of it, of both signs. Estimates keep
 * within 2^-13 of the result, in bf16; terms of sums from the output within 2^-19. Prints how much
 * of the bounds is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#ifndef CUDA_EMULATED
#include <cuda_runtime_api.h>
#endif

#include <berlu/act.h>

typedef float check_function(float alpha, berlu_dtype dtype, int slope, int estimate);
check_function quick_check_silu, quick_check_gelu, quick_check_gelu_tanh, quick_check_mish, quick_check_elu,
    quick_check_selu, quick_check_celu, quick_check_berlu, quick_check_prelu, quick_check_relu2, quick_check_smelu;

static const struct {
    const char *name;
    check_function *check;
    int alphas;
} all[] = {{"silu", quick_check_silu, 1},   {"gelu", quick_check_gelu, 1},   {"gelu_tanh", quick_check_gelu_tanh, 1},
           {"mish", quick_check_mish, 1},   {"selu", quick_check_selu, 1},   {"elu", quick_check_elu, 7},
           {"celu", quick_check_celu, 7},   {"berlu", quick_check_berlu, 7}, {"prelu", quick_check_prelu, 7},
           {"relu2", quick_check_relu2, 1}, {"smelu", quick_check_smelu, 7}};

/* The largest share of the bound over the alphas and formats that apply. */
static float worst_share(size_t i, int slope, int estimate)
{
    static const float alphas[] = {1.0f, 0.3f, -0.7f, 5.0f, 1e-3f, -40.0f, 1e20f};
    float worst = 0;
    for (int a = 0; a < all[i].alphas; a++)
        for (berlu_dtype dtype = BERLU_BF16; dtype <= (estimate ? BERLU_BF16 : BERLU_F16); dtype++) {
            float used = all[i].check(alphas[a], dtype, slope, estimate);
            if (used < 0 || used > 1)
                print_error("%s, alpha %g, %s: %g of the bound\n", all[i].name, (double)alphas[a],
                            dtype == BERLU_BF16 ? "bf16" : "f16", (double)used);
            assert_true(used >= 0 && used <= 1);
            worst = used > worst ? used : worst;
        }
    return worst;
}

static void shares_print(int estimate)
{
    static const char *const names[] = {"value", "slope", "by alpha", "slope from output", "parameters from output"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int slope = 0; slope < 5; slope++)
            print_message("%-10s %s: at most %.2f of the bound\n", all[i].name, names[slope],
                          (double)worst_share(i, slope, estimate));
}

static void every_guess_encloses_the_formula(void **state)
{
    (void)state;
    shares_print(0);
}

static void estimates_keep_within_2_13(void **state)
{
    (void)state;
    shares_print(1);
}

int main(void)
{
#ifndef CUDA_EMULATED
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no CUDA device\n");
        return 77;
    }
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_guess_encloses_the_formula),
                                       cmocka_unit_test(estimates_keep_within_2_13)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
