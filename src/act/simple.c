/* simple.c - the calls for one array: each is one line over berlu_act_run().
 * SPDX-License-Identifier: MIT */
#include <stdint.h>

#include <berlu/act.h>

berlu_status berlu_act_forward_exec(const berlu_act *act, berlu_dtype dtype, void *y, const void *x, size_t count,
                                    const berlu_exec *exec)
{
    return berlu_act_run(act, BERLU_ACT_FORWARD,
                         &(berlu_act_call){.dtype = dtype, .rows = count, .channels = 1, .x = x, .y = y}, exec);
}

berlu_status berlu_act_backward_exec(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy, const void *x,
                                     size_t count, const berlu_exec *exec)
{
    return berlu_act_run(act, BERLU_ACT_BACKWARD,
                         &(berlu_act_call){.dtype = dtype, .rows = count, .channels = 1, .x = x, .dy = dy, .dx = dx},
                         exec);
}

berlu_status berlu_act_backward_from_output_exec(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy,
                                                 const void *y, size_t count, const berlu_exec *exec)
{
    berlu_act_call call = {.dtype = dtype, .rows = count, .channels = 1, .dy = dy, .dx = dx};
    call.y = (void *)(uintptr_t)y; /* only read by this op */
    return berlu_act_run(act, BERLU_ACT_BACKWARD_FROM_OUTPUT, &call, exec);
}

berlu_status berlu_act_second_exec(const berlu_act *act, berlu_dtype dtype, void *d2y, const void *x, size_t count,
                                   const berlu_exec *exec)
{
    return berlu_act_run(act, BERLU_ACT_SECOND,
                         &(berlu_act_call){.dtype = dtype, .rows = count, .channels = 1, .x = x, .y = d2y}, exec);
}

berlu_status berlu_act_forward(const berlu_act *act, berlu_dtype dtype, void *y, const void *x, size_t count)
{
    return berlu_act_forward_exec(act, dtype, y, x, count, NULL);
}

berlu_status berlu_act_backward(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy, const void *x,
                                size_t count)
{
    return berlu_act_backward_exec(act, dtype, dx, dy, x, count, NULL);
}

berlu_status berlu_act_backward_from_output(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy,
                                            const void *y, size_t count)
{
    return berlu_act_backward_from_output_exec(act, dtype, dx, dy, y, count, NULL);
}

berlu_status berlu_act_second(const berlu_act *act, berlu_dtype dtype, void *d2y, const void *x, size_t count)
{
    return berlu_act_second_exec(act, dtype, d2y, x, count, NULL);
}
