/* list.h - the activations of berlu, one line each, in the order people see them.
 * SPDX-License-Identifier: MIT
 *
 * The only list: it gives the build the kernels to compile (CMakeLists.txt) and act.c its table.
 * ACT(name) stands for act/formulas/name.h (the formula), act/formulas/name.c (`act_name`) and one
 * table of kernels per instruction set. */
ACT(identity)
ACT(relu)
ACT(leaky_relu)
ACT(prelu)
ACT(relu2)
ACT(relu6)
ACT(hard_tanh)
ACT(hard_sigmoid)
ACT(hard_swish)
ACT(elu)
ACT(celu)
ACT(selu)
ACT(gelu)
ACT(gelu_tanh)
ACT(silu)
ACT(quick_gelu)
ACT(mish)
ACT(softplus)
ACT(sigmoid)
ACT(tanh)
ACT(smelu)
ACT(berlu)
ACT(smoothed) /* of smooth(...) and registered names; no name of its own, so it stays last */
