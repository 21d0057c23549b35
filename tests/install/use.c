/* use.c - a program of someone else, built against the installed library by install.sh.
 * SPDX-License-Identifier: MIT */
#include <berlu/berlu.h>
#include <stdio.h>
#include <string.h>

/* By its bits, since the project may be compiled with -ffast-math, to which no number is NaN. */
static int nan_stays(void)
{
    const uint64_t nan = 0x7ff8000000000000, magnitude = 0x7fffffffffffffff, infinity = 0x7ff0000000000000;
    uint64_t bits;
    double x;
    berlu_act *act;
    if (berlu_act_make(&act, "sigmoid") != BERLU_OK)
        return 0;
    memcpy(&x, &nan, sizeof x);
    berlu_act_point at = berlu_act_at(act, x, NULL);
    memcpy(&bits, &at.value, sizeof bits);
    berlu_act_free(act);
    return (bits & magnitude) > infinity;
}

int main(void)
{
    const float x[3] = {-2.0f, 0.0f, 2.0f};
    float y[3] = {0};
    berlu_act *act;
    if (berlu_act_make(&act, "berlu:alpha=0.125,eps=1") != BERLU_OK ||
        berlu_act_forward(act, BERLU_F32, y, x, 3) != BERLU_OK) {
        fprintf(stderr, "%s\n", berlu_last_error());
        return 1;
    }
    berlu_act_free(act);
    printf("berlu %s: %g %g %g\n", berlu_version(), (double)y[0], (double)y[1], (double)y[2]);
    return y[0] == -0.25f && y[1] == 0.21875f && y[2] == 2.0f && nan_stays() ? 0 : 1; /* middle: (1 - alpha) eps / 4 */
}
