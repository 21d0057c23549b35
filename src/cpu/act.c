/* act.c - activation sites that are not fused: one library call over the whole tensor.
 * SPDX-License-Identifier: MIT
 *
 * The workspace query checks the calls; inside a step they cannot fail. */
#include <assert.h>
#include <stdint.h>

#include "cpu/kernels.h"
#include "cpu/site.h"

static berlu_act_op op_of(const op_call *c)
{
    if (c->op == OP_ACT)
        return BERLU_ACT_FORWARD;
    return c->op == OP_ACT_GRAD ? BERLU_ACT_BACKWARD : BERLU_ACT_BACKWARD_FROM_OUTPUT;
}

static berlu_act_call call_make(const op_call *c)
{
    int forward = c->op == OP_ACT;
    berlu_act_call call = site_call(c, forward ? 1 : 2, c->in[0].rows, c->in[0].channels);
    call.hint = BERLU_HINT_AUTO;
    if (forward) {
        call.x = c->in[0].data;
        call.y = c->out[0].data;
        return call;
    }
    call.dy = c->in[0].data;
    call.dx = c->out[0].data;
    if (c->op == OP_ACT_GRAD)
        call.x = c->in[1].data;
    else
        call.y = c->in[1].data;
    for (int i = 0; i < c->attr->act_params; i++)
        call.param[c->attr->act_param[i]].grad = c->out[1 + i].data;
    return call;
}

size_t cpu_act_workspace(const op_call *c)
{
    float dummy = 0; /* any non-NULL address: only that is checked */
    berlu_act_call call = call_make(c);
    for (int i = 0; i < c->attr->act_params; i++) { /* pointers are only compared with NULL */
        call.param[c->attr->act_param[i]].value = &dummy;
        if (c->op != OP_ACT)
            call.param[c->attr->act_param[i]].grad = &dummy;
    }
    return berlu_act_workspace(c->attr->act, op_of(c), &call);
}

static void run(const op_call *c)
{
    berlu_act_call call = call_make(c);
    call.workspace = c->workspace;
    call.workspace_bytes = SIZE_MAX / 2; /* the engine allocated the requested size */
    berlu_status status = berlu_act_run(c->attr->act, op_of(c), &call, &(berlu_exec){.threads = c->threads});
    assert(status == BERLU_OK);
    (void)status;
}

void cpu_act(const op_call *c)
{
    run(c);
}

void cpu_act_grad(const op_call *c)
{
    run(c);
}
