/* ref_act.c - activation sites by the reference formula in double, one element at a time.
 * SPDX-License-Identifier: MIT
 *
 * For the reference backend. The fast one uses the vector kernels of act/ instead (cpu/act.c). */

#include "cpu/real.h"

/* The parameters of the activation, learned ones from the node. */
static void params_at(const op_call *c, int first, int64_t channel, double params[BERLU_ACT_PARAMS])
{
    size_t count = berlu_act_param_count(c->attr->act);
    for (size_t i = 0; i < count; i++) {
        berlu_act_param_info info = {0};
        berlu_act_param(c->attr->act, i, &info);
        params[i] = (double)(float)info.value; /* as the kernels have it */
    }
    for (int i = 0; i < c->attr->act_params; i++) {
        const real *learned = c->in[first + i].data;
        params[c->attr->act_param[i]] = learned[c->in[first + i].channels > 1 ? channel : 0];
    }
}

void REF(act)(const op_call *c)
{
    const real *x = c->in[0].data;
    real *y = c->out[0].data;
    double params[BERLU_ACT_PARAMS] = {0};
    int64_t n = c->in[0].channels;
    for (int64_t channel = 0; channel < n; channel++) {
        params_at(c, 1, channel, params);
        for (int64_t r = 0; r < c->in[0].rows; r++)
            y[r * n + channel] = (real)berlu_act_at(c->attr->act, x[r * n + channel], params).value;
    }
}

/* x with f(x) = y by bisection: f is monotone where a slope follows from the output. 200 halvings
 * reach the last bit. */
static double input_from(const berlu_act *act, double y, const double *params)
{
    double low = -1e30, high = 1e30;
    for (int i = 0; i < 200; i++) {
        double middle = low / 2 + high / 2;
        if (berlu_act_at(act, middle, params).value < y)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void gradients(const op_call *c, int from_output)
{
    const real *dy = c->in[0].data, *held = c->in[1].data;
    real *dx = c->out[0].data;
    double params[BERLU_ACT_PARAMS] = {0}, sum[ACT_PARAMS] = {0};
    int64_t n = c->in[0].channels;
    for (int64_t channel = 0; channel < n; channel++) {
        params_at(c, 2, channel, params);
        for (int i = 0; i < c->attr->act_params; i++)
            sum[i] = c->in[2 + i].channels > 1 ? 0 : sum[i];
        for (int64_t r = 0; r < c->in[0].rows; r++) {
            int64_t at = r * n + channel;
            double x = from_output ? input_from(c->attr->act, held[at], params) : held[at], d = dy[at];
            berlu_act_point point = berlu_act_at(c->attr->act, x, params);
            dx[at] = (real)(d * point.slope);
            for (int i = 0; i < c->attr->act_params; i++)
                sum[i] += d * point.param[c->attr->act_param[i]];
        }
        for (int i = 0; i < c->attr->act_params; i++)
            ((real *)c->out[1 + i].data)[c->in[2 + i].channels > 1 ? channel : 0] = (real)sum[i];
    }
}

void REF(act_grad)(const op_call *c)
{
    gradients(c, 0);
}

void REF(act_grad_out)(const op_call *c)
{
    gradients(c, 1);
}
