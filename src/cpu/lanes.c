/* lanes.c - one table per instruction set; compiled for each. SPDX-License-Identifier: MIT */
#include "cpu/lanes_inside.h"

extern const lanes LANES(table);
const lanes LANES(table) = {
    .isa = V_ISA_TEXT,
    .width = V_LANES,
    .norm_rows = LANES(norm_rows),
    .norm_grad_rows = LANES(norm_grad_rows),
    .finish_rows = LANES(finish_rows),
    .column_sums = LANES(column_sums),
    .add = LANES(add),
    .scale_rows = LANES(scale_rows),
    .scale_grad_rows = LANES(scale_grad_rows),
    .softmax_columns = LANES(softmax_columns),
    .weights_columns = LANES(weights_columns),
    .softmax_grad_columns = LANES(softmax_grad_columns),
    .product = LANES(product),
    .transpose = LANES(transpose),
    .heads_forward = LANES(heads_forward),
    .heads_backward = LANES(heads_backward),
    .depthwise = LANES(depthwise),
    .depthwise_dw = LANES(depthwise_dw),
    .adamw = LANES(adamw),
    .square_sum = LANES(square_sum),
};
