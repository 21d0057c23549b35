/* cuda.c - the backend's table: which kernel runs which op, and what it can do.
 * SPDX-License-Identifier: MIT
 *
 * Products read weights and biases from their bf16 copies (shadow) where branches are bf16. Bias
 * gradients come from the kernels that have the elements in registers (`sums`): the activation's
 * backward for the layer before it, norm_grad for the layer that wrote the residual stream,
 * attention_grad for q, k and v. norm_grad also writes the gradient of an f32 residual stream in
 * bf16 (`copy`), which is what the products after it read (`branch`). Read on: linear.c for
 * products, run.c for how a list of calls becomes one launch. */
#include "cuda/cuda.h"

#include "cuda/kernels.h"
#include "cuda/linear_norm.h"
#include "cuda/mlp.h"

static const op_entry ops[OP_COUNT] = {
    [OP_LINEAR] = {cuda_linear, cuda_linear_workspace, .in_place = 8, .absorbs = 3, .shadow = 2 | 4},
    [OP_NORM] = {cuda_norm, .in_place = 1},
    [OP_ATTENTION] = {cuda_attention, cuda_attention_workspace},
    [OP_ACT] = {cuda_act, cuda_act_workspace, .in_place = 1},
    [OP_UNFOLD] = {cuda_unfold},
    [OP_DEPTHWISE] = {cuda_depthwise},
    [OP_TOKENS] = {cuda_tokens},
    [OP_PIXEL_POS] = {cuda_pixel_pos, .in_place = 1},
    [OP_ADD] = {cuda_add, .in_place = 3},
    [OP_ADD_TOKENS] = {cuda_add_tokens, .in_place = 1},
    [OP_SCALE] = {cuda_scale, .in_place = 5, .absorbs = 2},
    [OP_MEAN] = {cuda_mean},
    [OP_SELECT] = {cuda_select},
    [OP_AVERAGE] = {cuda_average},
    [OP_DROPOUT] = {cuda_dropout, .in_place = 1},
    [OP_DROP_PATH] = {cuda_drop_path, .in_place = 3, .absorbs = 1},
    [OP_CROSS_ENTROPY] = {cuda_cross_entropy, cuda_loss_workspace},
    [OP_DISTILL] = {cuda_distill, cuda_loss_workspace},
    [OP_LINEAR_DX] = {cuda_linear_dx, cuda_linear_workspace, .in_place = 4, .absorbs = 2, .shadow = 2, .branch = 1},
    [OP_LINEAR_DW] = {cuda_linear_dw, cuda_linear_workspace, .branch = 1 | 2},
    [OP_NORM_GRAD] = {cuda_norm_grad, cuda_norm_grad_workspace, .in_place = 1 | 16, .absorbs = 4, .through = 1,
                      .sums = 3, .again = 4, .copy = 5},
    [OP_ATTENTION_GRAD] = {cuda_attention_grad, cuda_attention_grad_workspace, .sums = 2, .output = 73},
    [OP_ACT_GRAD] = {cuda_act_grad, cuda_act_workspace, .in_place = 1, .sums = 4},
    [OP_ACT_GRAD_OUT] = {cuda_act_grad_out, cuda_act_workspace, .in_place = 1, .sums = 4},
    [OP_FOLD] = {cuda_fold},
    [OP_DEPTHWISE_DX] = {cuda_depthwise_dx, .in_place = 4, .absorbs = 2},
    [OP_DEPTHWISE_DW] = {cuda_depthwise_dw, cuda_depthwise_dw_workspace},
    [OP_TOKENS_GRAD] = {cuda_tokens_grad, cuda_tokens_grad_workspace},
    [OP_PIXEL_POS_GRAD] = {cuda_pixel_pos_grad, cuda_pixel_pos_grad_workspace},
    [OP_TAKE_TOKENS] = {cuda_take_tokens},
    [OP_SCALE_GRAD] = {cuda_scale_grad, cuda_scale_grad_workspace, .in_place = 1},
    [OP_MEAN_GRAD] = {cuda_mean_grad},
    [OP_SELECT_GRAD] = {cuda_select_grad},
    [OP_HALF] = {cuda_half, .in_place = 1},
    [OP_CROSS_ENTROPY_GRAD] = {cuda_cross_entropy_grad},
    [OP_DISTILL_GRAD] = {cuda_distill_grad},
    [OP_LINEAR_ACT] = {cuda_linear_act, cuda_linear_act_workspace, .shadow = 2 | 4},
    [OP_LINEAR_DX_ACT] = {cuda_linear_dx_act, cuda_linear_dx_act_workspace, .shadow = 2, .branch = 1, .sums = 4},
    [OP_LINEAR_NORM] = {cuda_linear_norm, cuda_linear_norm_workspace, .in_place = 8, .shadow = 2 | 4,
                        .width = LINEAR_NORM_WIDTH},
    [OP_MLP] = {cuda_mlp, .in_place = 8, .shadow = 2 | 4 | 16 | 32, .takes = cuda_mlp_takes},
    [OP_SCALE_WEIGHT] = {cuda_scale_weight},
    [OP_SCALE_WEIGHT_GRAD] = {cuda_scale_weight_grad},
    [OP_SPREAD_WEIGHT] = {cuda_spread_weight},
    [OP_SPREAD_WEIGHT_GRAD] = {cuda_spread_weight_grad},
    [OP_JOIN_WEIGHT] = {cuda_join_weight},
    [OP_JOIN_WEIGHT_GRAD] = {cuda_join_weight_grad},
    [OP_IMAGES] = {cuda_images},
    [OP_ACCUMULATE] = {cuda_accumulate},
    [OP_GRAD_NORM] = {cuda_grad_norm, cuda_grad_norm_workspace},
    [OP_ADAMW] = {cuda_adamw},
    [OP_SGD] = {cuda_sgd},
    [OP_EMA] = {cuda_ema},
    [OP_SHADOW] = {cuda_shadow},
};

const backend *cuda_backend(void)
{
    static const backend cuda = {.name = "cuda",
                                 .ops = ops,
                                 .alignment = 256,
                                 .asynchronous = 1,
                                 .workspace_ring = (size_t)16 << 20,
                                 .fold_weights = 1,
                                 .open = cuda_open,
                                 .close = cuda_close,
                                 .dtypes = cuda_dtypes,
                                 .alloc = cuda_alloc,
                                 .release = cuda_release,
                                 .upload = cuda_upload,
                                 .download = cuda_download,
                                 .copy = cuda_copy,
                                 .prepare = cuda_prepare,
                                 .run = cuda_run,
                                 .program_free = cuda_program_free,
                                 .seconds = cuda_seconds,
                                 .result_push = cuda_result_push,
                                 .result_pop = cuda_result_pop,
                                 .library = cuda_gemm_library,
                                 .prepared = cuda_prepared,
                                 .linger = cuda_linger,
                                 .free_bytes = cuda_free_bytes,
                                 .memory_piece = GPU_MEMORY_PIECE,
                                 .describe = cuda_describe,
                                 .choices = cuda_algorithms_text};
    return &cuda;
}
