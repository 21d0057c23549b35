/* berlu/act.h - activation functions: accurate, deterministic, at the speed of memory.
 * SPDX-License-Identifier: MIT
 *
 *     #include <berlu/berlu.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float x[4] = {-1, -0.005f, 0.005f, 1}, y[4], dy[4] = {1, 1, 1, 1}, dx[4];
 *         berlu_act *act;
 *         if (berlu_act_make(&act, "berlu:alpha=0.01,eps=0.01") != BERLU_OK) {
 *             fprintf(stderr, "%s\n", berlu_last_error());
 *             return 1;
 *         }
 *         berlu_act_forward(act, BERLU_F32, y, x, 4);       // y[i]  = f(x[i])
 *         berlu_act_backward(act, BERLU_F32, dx, dy, x, 4); // dx[i] = dy[i] f'(x[i])
 *         for (int i = 0; i < 4; i++)
 *             printf("f(%g) = %g, f' = %g\n", x[i], y[i], dx[i]);
 *         berlu_act_free(act);
 *         return 0;
 *     }
 *
 * Read on in this order: what an activation is and how to name it; the simple calls above; the full
 * call with bias, learned parameters and their gradients; values in double; properties of an
 * activation.
 *
 * Guarantees of every call. Values and derivatives of x are within stated bounds of a few ULP,
 * tails included (berlu_act_ulp(); smoothed functions, and derivatives from the output, have
 * absolute ones). A result is the same to the last bit on every instruction set and with any number
 * of threads, sums included (a NaN's payload and sign aside). No call that computes allocates
 * memory, except for parameters per channel without a workspace. 16-bit storage holds the f32
 * result rounded once. NaN in x gives NaN in the value, in every derivative and in every parameter
 * derivative; a NaN parameter gives NaN for every x; infinities give the limits of the function
 * (where its definition names a product alpha * x, alpha = 0 at -inf is 0 * inf = NaN). Subnormal
 * numbers are kept. All of this holds in the floating-point environment in which a program starts:
 * rounding to nearest, nothing flushed to zero.
 *
 * fork() is safe: a process that was forked from one with threads (Python's multiprocessing, a
 * server that forks its workers) computes on one thread whatever is requested, with the same bits.
 * OpenMP's threads do not survive a fork, and a parallel call in such a child would wait for them
 * forever. A child that calls exec, or that was forked before its parent had a second thread, uses
 * all cores as usual. */
#ifndef BERLU_ACT_H
#define BERLU_ACT_H

#include <stddef.h>
#include <stdint.h>

#include <berlu/smooth.h>
#include <berlu/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. An activation ------------------------------------------------------------------------ */

/** An activation function: its name and fixed parameters. Immutable once made, so threads may share
 *  it. */
typedef struct berlu_act berlu_act;

/** Makes an activation from a text NAME[:key=value,...]:
 *
 *      identity relu relu2 relu6 hard_tanh hard_sigmoid hard_swish gelu gelu_tanh silu quick_gelu
 *      mish selu softplus sigmoid tanh
 *      leaky_relu:alpha=0.01   prelu:alpha=0.25   elu:alpha=1   celu:alpha=1   smelu:beta=1
 *      berlu:alpha=0.01,eps=0.01,degree=2
 *      smooth(kinks=-3,3; slopes=0,1,0; eps=0.1; degree=4)   any piecewise-linear function:
 *                                                            see berlu/smooth.h
 *
 *  (the numbers are the defaults). alpha is finite (celu: 2^-100 <= |alpha| <= 2^100), eps and beta
 *  lie in [2^-60, 2^60], (1 - alpha) / eps is finite in f32, degree is 2 to 16; an odd degree is
 *  the even one below. Three keys belong to every activation:
 *
 *      learn=none|alpha|eps|alpha+eps   the parameters that training changes; prelu and berlu
 *                                       learn alpha by default, the others nothing. It changes
 *                                       no value; engines and bindings ask for it
 *      scale=k                          f(k x) / k, k finite and not 0; where k x overflows,
 *                                       the limit of f over k
 *      center=1                         f - f(0)
 *
 *  The best instruction set of this machine is chosen here, once (the environment variable
 *  BERLU_ISA comes first). Returns BERLU_ERR_ARG with a message that names the key and the nearest
 *  right name; BERLU_ERR_UNSUPPORTED for a smooth(...) of more than 8 kinks or with one off the
 *  centre of its transition, and where this machine lacks what BERLU_ISA names; BERLU_ERR_MEMORY;
 *  *out is then NULL. The caller frees the activation with berlu_act_free(). */
BERLU_API berlu_status berlu_act_make(berlu_act **out, const char *spec);

/** The same; a name that is none of the above is looked up in `names` (may be NULL) before it is
 *  refused; the message names the nearest name of either. The activation keeps no reference to the
 *  registry. */
BERLU_API berlu_status berlu_act_make_in(berlu_act **out, const char *spec, const berlu_registry *names);

/** Makes an activation from a smoothed function of at most 8 kinks, each at the centre of its
 *  transition, and not of curves; `f` is copied. `name` follows the rule of berlu_registry_add():
 *  no built-in name, no `smooth`. */
BERLU_API berlu_status berlu_act_make_smooth(berlu_act **out, const char *name, const berlu_smooth *f);

BERLU_API void berlu_act_free(berlu_act *act); /* NULL is allowed */

/* ---- 2. Simple calls ------------------------------------------------------------------------- */

/** Storage type of an array. Computation is always in f32. The values are fixed. */
typedef enum berlu_dtype { BERLU_F32 = 0, BERLU_BF16 = 1, BERLU_F16 = 2 } berlu_dtype;

/** y[i] = f(x[i]) for `count` elements, on all cores for large arrays.
 *
 *  y, x   aligned to an element (multiples of 4 bytes for f32, of 2 else). y may equal x; any other
 *         overlap is an error of the caller.
 *  count  may be 0; then nothing is touched and the pointers may be NULL.
 *
 *  Accuracy in f32 (see berlu_act_ulp()): those with an exponential 2 ULP (gelu_tanh 2.5),
 *  hard_swish 3, the piecewise-linear ones 1; berlu and smelu are exact for x > eps, one rounding
 *  for x < -eps, and between 5 (degree 2), 12 (degrees 4, 6) or 20 (above) ULP of the larger of
 *  line and bump. (Not of the result: the knee crosses zero.) Smoothed functions, scale and center
 *  have absolute bounds: see berlu_act_ulp().
 *
 *  Returns BERLU_ERR_ARG when act or a needed pointer is NULL, dtype is unknown or the size
 *  overflows; y is unchanged. */
BERLU_API berlu_status berlu_act_forward(const berlu_act *act, berlu_dtype dtype, void *y, const void *x, size_t count);

/** dx[i] = dy[i] f'(x[i]). dx may equal dy or x. The derivative is within berlu_act_slope_ulp();
 *  near a zero of f' within 2 * 2^-24 absolute (gelu, gelu_tanh, silu, quick_gelu, mish,
 *  hard_swish), for berlu with alpha < 0 within that many times max(1, |alpha|) 2^-24. */
BERLU_API berlu_status berlu_act_backward(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy,
                                          const void *x, size_t count);

/** dx[i] = dy[i] f'(x[i]) from y[i] = f(x[i]) alone, so x need not be kept and y may overwrite it.
 *  Only for activations where berlu_act_has_from_output() is true, else BERLU_ERR_UNSUPPORTED. dx
 *  may equal dy or y. For a finite f32 y of berlu_act_forward() the derivative is within 8 * 2^-24
 *  max(1, |alpha|, |f'|) of f'(x): where f is nearly level y does not tell x, and tails have no
 *  digits. */
BERLU_API berlu_status berlu_act_backward_from_output(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy,
                                                      const void *y, size_t count);

/** d2y[i] = f''(x[i]). At a kink the side that holds the point decides; BerLU's joins belong to the
 *  transition. */
BERLU_API berlu_status berlu_act_second(const berlu_act *act, berlu_dtype dtype, void *d2y, const void *x,
                                        size_t count);

/** Numbers of 16 bits from and to f32, rounded to nearest, ties to even. NaN stays NaN (quiet);
 *  what is too large becomes an infinity; f16 keeps subnormal numbers. */
BERLU_API uint16_t berlu_to_bf16(float value);
BERLU_API float berlu_from_bf16(uint16_t bits);
BERLU_API uint16_t berlu_to_f16(float value);
BERLU_API float berlu_from_f16(uint16_t bits);

/** The same for arrays: out[i] = in[i] in another storage type. `out` and `in` must not overlap,
 *  unless they are the same array of the same dtype. From one 16-bit type to the other by way of
 *  f32. Returns BERLU_ERR_ARG for NULL (with a count above 0) and unknown dtypes. */
BERLU_API berlu_status berlu_convert(berlu_dtype to, void *out, berlu_dtype from, const void *in, size_t count);

/* ---- 3. The full call: rows x channels, bias, parameters and their gradients ----------------- */

/** The operation of a call. z = x + bias, element by element, one bias per channel (absent: 0). */
typedef enum berlu_act_op {
    BERLU_ACT_FORWARD = 0,              /* y = f(z) */
    BERLU_ACT_BACKWARD = 1,             /* dx = dy f'(z); the requested gradients; y = f(z) too when y is not NULL */
    BERLU_ACT_BACKWARD_FROM_OUTPUT = 2, /* dx = dy f'(f^-1(y)); the requested gradients; x and bias are not read */
    BERLU_ACT_SLOPE = 3,                /* y = f'(z) */
    BERLU_ACT_SECOND = 4,               /* y = f''(z) */
    BERLU_ACT_PARAM_SLOPE = 5           /* y = df/dp (z) for parameter number call->param_index */
} berlu_act_op;

/** Cache hint for the output: REUSE for a reader that follows soon (ordinary stores), STREAM for
 *  one that comes after the data has left the cache (non-temporal stores). The default depends on
 *  size, op and threads, as measured. It changes no bit. */
typedef enum berlu_hint { BERLU_HINT_AUTO = 0, BERLU_HINT_REUSE = 1, BERLU_HINT_STREAM = 2 } berlu_hint;

enum { BERLU_ACT_PARAMS = 4 }; /* the most parameters that a call can pass */

/** One parameter of a call, by its number (berlu_act_param()). All zero means: the activation's own
 *  value, no gradient. Values are not checked; a finite one outside of the parameter's range gives
 *  meaningless results. */
typedef struct berlu_act_param_arg {
    const float *value; /* NULL: the activation's own value; else 1 element, or `channels` with stride 1 */
    size_t stride;      /* 0: one value for all; 1: one per channel */
    float *grad; /* NULL, or the target of sum(dy df/dp): 1 element (stride 0) or `channels` (stride 1); overwritten */
} berlu_act_param_arg;

/** A call. Set the fields that are needed and leave the rest zero:
 *
 *      berlu_act_call call = {0};
 *      call.rows = n; call.channels = c; ...            // in C also
 *      berlu_act_call call = {.rows = n, .channels = c, .x = x, .y = y};
 *
 *  x, y, dy, dx are row-major [rows, channels] of `dtype` (with `inner` above 1 [rows, channels,
 *  inner], such as NCHW), aligned to an element. y may equal x; dx may equal dy, x or y-as-input;
 *  in BERLU_ACT_BACKWARD with y both outputs must be distinct, and each may equal one input. Bias,
 *  parameters and all gradients are f32 whatever the dtype, aligned to 4 bytes.
 *
 *  Gradients are sums in a fixed order. One value per layer: element i of the flat array belongs to
 *  block i / 4096 and lane i mod 16; a lane adds in f32 (fused multiply-add), lanes and blocks are
 *  joined by a binary tree in double. Per channel, and for dbias: rows in blocks of 64 are added in
 *  order in f32, blocks by a tree in double. With `inner` above 1 and a parameter per channel: each
 *  run of `inner` elements is cut into blocks and lanes like a layer; the blocks of a channel, row
 *  after row, are joined by the tree; for one value per layer those of all channels, channel after
 *  channel. */
typedef struct berlu_act_call {
    berlu_dtype dtype;
    berlu_hint hint;
    size_t rows, channels; /* without bias and per-channel parameters only their product matters; channels 0
                            * is an error unless rows is 0, too */
    const void *x;
    void *y;
    const void *dy;
    void *dx;
    const float *bias; /* NULL or `channels` elements */
    float *dbias;      /* NULL, or `channels` elements: column sums of dx before it is rounded to dtype; overwritten */
    berlu_act_param_arg param[BERLU_ACT_PARAMS];
    int param_index;        /* for BERLU_ACT_PARAM_SLOPE */
    void *workspace;        /* berlu_act_workspace() bytes, any alignment; NULL where that is 0, or where no
                             * gradient is asked for: then the call allocates its constants per channel itself */
    size_t workspace_bytes; /* size of the workspace */
    size_t inner; /* 0 means 1: channel of element i is (i / inner) mod channels. Above 1: no bias, no dbias */
} berlu_act_call;

/** Instruction sets. BERLU_ISA_BEST is the one chosen when the activation was made. */
typedef enum berlu_isa {
    BERLU_ISA_BEST = 0,
    BERLU_ISA_SCALAR = 1,
    BERLU_ISA_AVX2 = 2,
    BERLU_ISA_AVX512 = 3,
    BERLU_ISA_NEON = 4
} berlu_isa;

/** Instruction set and threads of a call. Neither field changes a bit of the result. */
typedef struct berlu_exec {
    berlu_isa isa;
    int threads; /* at most this many, and at most 64 or four per core; 0: all cores. Small arrays use fewer */
} berlu_exec;

/** Runs a call. `exec` NULL means {BERLU_ISA_BEST, 0}. Checked before anything is touched: NULL
 *  pointers that are needed, sizes that overflow, strides other than 0 and 1, a workspace that is
 *  missing or too small (BERLU_ERR_ARG); an instruction set this machine lacks, an op this
 *  activation lacks (BERLU_ERR_UNSUPPORTED); constants per channel that find no memory
 *  (BERLU_ERR_MEMORY). */
BERLU_API berlu_status berlu_act_run(const berlu_act *act, berlu_act_op op, const berlu_act_call *call,
                                     const berlu_exec *exec);

/** The simple calls of section 2 with an instruction set and a number of threads; `exec` may be
 *  NULL. */
BERLU_API berlu_status berlu_act_forward_exec(const berlu_act *act, berlu_dtype dtype, void *y, const void *x,
                                              size_t count, const berlu_exec *exec);
BERLU_API berlu_status berlu_act_backward_exec(const berlu_act *act, berlu_dtype dtype, void *dx, const void *dy,
                                               const void *x, size_t count, const berlu_exec *exec);
BERLU_API berlu_status berlu_act_backward_from_output_exec(const berlu_act *act, berlu_dtype dtype, void *dx,
                                                           const void *dy, const void *y, size_t count,
                                                           const berlu_exec *exec);
BERLU_API berlu_status berlu_act_second_exec(const berlu_act *act, berlu_dtype dtype, void *d2y, const void *x,
                                             size_t count, const berlu_exec *exec);

/** Bytes of workspace that a call needs; they depend on rows, channels, strides and on the
 *  requested gradients, not on threads or dtype. 0 when no gradient sum and no per-channel
 *  parameter is involved; 0 with an error message when the sizes overflow (then berlu_act_run()
 *  fails too). Pointers are only compared with NULL. */
BERLU_API size_t berlu_act_workspace(const berlu_act *act, berlu_act_op op, const berlu_act_call *call);

/* ---- 4. In double ---------------------------------------------------------------------------- */

/** Value and derivatives at one point, in double over the C library: for analyses and plots, and as
 *  the reference of the kernels. */
typedef struct berlu_act_point {
    double value, slope, second;
    double param[BERLU_ACT_PARAMS]; /* df/dp by the number of the parameter; 0 for those that do not exist */
} berlu_act_point;

/** Evaluates at x. `params` NULL: the activation's own values, in double as they were written
 *  (kernels have them rounded to f32); else one value per parameter that a call can pass, in order.
 *  A NULL activation gives NaN. */
BERLU_API berlu_act_point berlu_act_at(const berlu_act *act, double x, const double *params);

/** out[i] = f(x[i]) (BERLU_ACT_FORWARD), f' (BERLU_ACT_SLOPE), f'' (BERLU_ACT_SECOND) or df/dp of
 *  the parameter number `param_index` (BERLU_ACT_PARAM_SLOPE) for `count` doubles, each as
 *  berlu_act_at() computes it. out may equal x. At most `threads` threads, 0: all cores; they
 *  change no bit. Returns BERLU_ERR_ARG for NULL, another op or no such parameter. */
BERLU_API berlu_status berlu_act_eval_f64(const berlu_act *act, berlu_act_op op, int param_index, double *out,
                                          const double *x, size_t count, int threads);

/* ---- 5. Properties --------------------------------------------------------------------------- */

/** A parameter. Numbers 0 to berlu_act_param_count() - 1 are real parameters and index
 *  berlu_act_call.param; settings that no call can change (degree) come after them, with learnable
 *  0. */
typedef struct berlu_act_param_info {
    const char *name;
    double value, initial; /* of this activation; the default of its name */
    double low, high;      /* the range that a spec allows, ends included (±inf: any finite number) */
    int setting;           /* 1: a setting such as degree */
    int learnable;         /* it has a derivative, so it can be learned */
    int learned;           /* `learn=` or the default lets training change it */
} berlu_act_param_info;

BERLU_API size_t berlu_act_param_count(const berlu_act *act);   /* real parameters; 0 for NULL */
BERLU_API size_t berlu_act_setting_count(const berlu_act *act); /* settings, numbered after them */
BERLU_API berlu_status berlu_act_param(const berlu_act *act, size_t index, berlu_act_param_info *out);
BERLU_API int berlu_act_param_find(const berlu_act *act, const char *name); /* its number, -1 when there is none */

/** "berlu"; the text that makes this activation again, with every key; and the formula of its name
 *  in one line, without scale and center. Valid as long as the activation; "" for NULL. */
BERLU_API const char *berlu_act_name(const berlu_act *act);
BERLU_API const char *berlu_act_spec(const berlu_act *act);
BERLU_API const char *berlu_act_about(const berlu_act *act);

/** Whether the derivative can be computed from the output alone. For berlu: degree 2 and alpha > 0;
 *  leaky_relu, prelu, elu, celu: alpha > 0. The caller must keep a learned alpha positive (2^-7 or
 *  more in 16-bit storage, 0.001 in f32). hard_sigmoid, sigmoid, tanh: in f32 only, since 16 bits
 *  of a saturated y do not fix the derivative; a 16-bit call returns BERLU_ERR_UNSUPPORTED. */
BERLU_API int berlu_act_has_from_output(const berlu_act *act);

/** The exact Lipschitz constant with the activation's own parameters (INFINITY where there is
 *  none). */
BERLU_API double berlu_act_lipschitz(const berlu_act *act);

/** The bounds that the f32 kernels hold over all floats: of the value and of the derivative, in
 *  ULP. For berlu and smelu the unit is the ULP of the larger of line and bump.
 *
 *  Smoothed functions: INFINITY, since a line that crosses zero away from a kink has no relative
 *  bound. With kinks and eps as f32 numbers (the eps of transitions that touch shrink by what the
 *  kinks lose there), u = 2^-24, S the largest |slope|, c the distance to the nearest kink, y the
 *  value and J the jump of the slope there, the value is within 4 u (|y| + S c) + u (12 J + S) eps,
 *  the derivative within 12 u S + 2 u J c / eps.
 *
 *  scale=k and center=1 are not included. k x is rounded before f sees it (and overflows where it
 *  exceeds f32), and f(0) is subtracted in f32: near 0 an error of the order of |f(0)| 2^-24
 *  remains, however small the result. Altogether g(x) = (f(k x) - f(0)) / k is within ((2 ulp + 2)
 *  (F + |f(0)|) + L |k x|) 2^-24 / |k|, where F is |f(k x)| (for berlu and smelu the larger of line
 *  and bump), L the Lipschitz constant, and f(0) counts only with center=1; and because k x, f(k x)
 *  and g may be subnormal numbers, within (ulp + L) 2^-149 / |k| + 2^-150 more. */
BERLU_API double berlu_act_ulp(const berlu_act *act);
BERLU_API double berlu_act_slope_ulp(const berlu_act *act);

/** The names of the built-in activations, index 0, 1, ...; NULL after the last. */
BERLU_API const char *berlu_act_builtin(size_t index);

/** "f32", "bf16", "f16"; "scalar", "avx2", "avx512", "neon", "best". NULL for other numbers. */
BERLU_API const char *berlu_dtype_name(berlu_dtype dtype);
BERLU_API size_t berlu_dtype_size(berlu_dtype dtype); /* 4, 2, 2; 0 for other numbers */
BERLU_API const char *berlu_isa_name(berlu_isa isa);

/** The instruction set behind BERLU_ISA_BEST for this activation, and whether a given one can run
 *  here. */
BERLU_API berlu_isa berlu_act_isa(const berlu_act *act);
BERLU_API int berlu_act_can_run(const berlu_act *act, berlu_isa isa);

#ifdef __cplusplus
}
#endif
#endif
