/* test_cuda_kernels.cu - norm, attention and rows kernels against doubles, over shapes and dtypes.
 * SPDX-License-Identifier: MIT
 *
 * Every case runs twice with equal bytes, and nothing is written outside the outputs. Inputs are
 * numbers that the dtype holds, so they carry no error. Bounds, with u = 2^-8, half a unit of
 * bf16's 8 bits:
 *
 *   f32        1e-5 of the tensor's largest value.
 *              dx of norm is a difference times 1 / sigma, which is large where a row hardly varies: a few
 *              roundings of its terms more.
 *   bf16 norm  the same, and one rounding of the output: u |y|.
 *   attention  tensor cores take p and ds as bf16. y = sum p v then is off by u sum p |v|, dv by u sum p |dy|. The rounded
 *              p also enters delta = sum p dp, which is off by u D with D = sum p |dp|, and ds = p (dp - delta) scale, which
 *              is rounded itself: off by u scale p (2 |dp - delta| + D). dq and dk are sums of ds times |k| or |q|.
 *              Terms of second order are below a hundredth of these, which the bounds add. Then the output is rounded.
 *              Where the gradient is given y, delta = sum y dy is of exact numbers, and D is 0.
 *
 *   rows       rows_check.cuh
 *   linear, residual and norm in one kernel: linear_norm_check.cuh
 *
 * Exit 77 without a GPU. The same file with CUDA_EMULATED runs the kernels on the host
 * (emulate.cuh), with fewer and smaller shapes. By hand, with
 * objects of src/cuda/linear_norm.cu, src/cuda/attention_wide.cu and of src/cuda/rows.cu for berlu
 * and gelu (src/cuda/CMakeLists.txt):
 *   nvcc -std=c++20 -arch=sm_90 --fmad=false -DKERNELS_ALONE -Isrc -Iinclude -Itests/cuda tests/cuda/test_cuda_kernels.cu \
 *       src/cuda/norm.cu src/cuda/attention.cu src/cuda/columns.cu linear_norm.o attention_wide.o rows_berlu.o \
 *       rows_gelu.o -o test_cuda_kernels */
#include "cuda/norm_ahead.cuh"
#include "kernel_check.cuh"
#include "linear_norm_check.cuh"
#include "rows_check.cuh"

static const double BF16_UNIT = 1.01 / 256;

static std::string dtype_text(tensor_dtype d)
{
    return d == DTYPE_BF16 ? "bf16" : "f32";
}

/* ---- norm ------------------------------------------------------------------------------------ */

static void norm_statistics(const test_tensor &x, double eps, test_tensor *stat)
{
    for (int64_t r = 0; r < x.rows; r++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < x.channels; i++)
            mean += x.value[r * x.channels + i] / x.channels;
        for (int64_t i = 0; i < x.channels; i++)
            square += pow(x.value[r * x.channels + i] - mean, 2) / x.channels;
        stat->value[2 * r] = mean;
        stat->value[2 * r + 1] = 1 / sqrt(square + eps);
    }
}

static void norm_case(int64_t rows, int64_t width, tensor_dtype tx, tensor_dtype ty, bool given, bool in_place)
{
    char name[100];
    snprintf(name, sizeof name, "norm %lld x %lld %s to %s%s%s", (long long)rows, (long long)width,
             dtype_text(tx).c_str(), dtype_text(ty).c_str(), given ? ", recomputed" : "", in_place ? ", in place" : "");
    test_tensor x(rows, width, tx), w(1, width, DTYPE_F32), b(1, width, DTYPE_F32), y(rows, width, ty),
        stat(rows, 2, DTYPE_F32);
    x.fill(0.7, 1.5);
    w.fill(1, 0.3);
    b.fill(0, 0.5);
    norm_statistics(x, 1e-6, &stat);
    if (given)
        stat.put();
    call_runner c(OP_NORM);
    c.attr.eps = 1e-6f;
    c.in(0, &x), c.in(1, &w), c.in(2, &b);
    given ? c.in(3, &stat) : c.out(1, &stat);
    c.out(0, in_place ? &x : &y);
    std::vector<double> want(y.size());
    for (int64_t i = 0; i < rows * width; i++)
        want[i] = (x.value[i] - stat.value[i / width * 2]) * stat.value[i / width * 2 + 1] * w.value[i % width] +
                  b.value[i % width];
    c.run(name, cuda_norm, NULL, in_place ? &x : NULL);
    compare(name, (in_place ? x : y).raw(name), want, ty, NULL);
    if (!given)
        compare(std::string(name) + " statistics", stat.raw(name), stat.value, DTYPE_F32, NULL);
}

struct norm_grad_want {
    std::vector<double> dx, dx_slack, dw, db, sums, sums_slack;
};

static norm_grad_want norm_grad_reference(const test_tensor &dy, const test_tensor &x, const test_tensor &w,
                                          const test_tensor &stat, const test_tensor *residual)
{
    int64_t n = x.channels;
    norm_grad_want want = {std::vector<double>(x.size()), std::vector<double>(x.size()), std::vector<double>(n),
                           std::vector<double>(n),        std::vector<double>(n),        std::vector<double>(n)};
    for (int64_t r = 0; r < x.rows; r++) {
        double mean = stat.value[2 * r], scale = stat.value[2 * r + 1], sum = 0, dot = 0;
        for (int64_t i = 0; i < n; i++) {
            double g = dy.value[r * n + i], h = (x.value[r * n + i] - mean) * scale;
            want.dw[i] += g * h;
            want.db[i] += g;
            sum += g * w.value[i] / n;
            dot += g * w.value[i] * h / n;
        }
        for (int64_t i = 0; i < n; i++) {
            double g = dy.value[r * n + i] * w.value[i], h = (x.value[r * n + i] - mean) * scale;
            want.dx_slack[r * n + i] = ldexp(scale * (fabs(g) + fabs(sum) + fabs(h * dot)), -22);
            want.dx[r * n + i] = scale * (g - sum - h * dot) + (residual ? residual->value[r * n + i] : 0);
            want.sums[i] += want.dx[r * n + i];
            want.sums_slack[i] +=
                want.dx_slack[r * n + i] + fabs(want.dx[r * n + i]) * (x.dtype == DTYPE_BF16 ? 0x1p-8 : 0);
        }
    }
    return want;
}

/* place: 0 dx apart, 1 over dy, 2 over the residual */
static void norm_grad_case(int64_t rows, int64_t width, tensor_dtype tx, tensor_dtype td, bool add, int place,
                           op_kernel kernel = cuda_norm_grad)
{
    char name[100];
    snprintf(name, sizeof name, "norm_grad %lld x %lld %s, dy %s%s, place %d", (long long)rows, (long long)width,
             dtype_text(tx).c_str(), dtype_text(td).c_str(), add ? ", residual" : "", place);
    test_tensor dy(rows, width, td), x(rows, width, tx), w(1, width, DTYPE_F32), stat(rows, 2, DTYPE_F32);
    test_tensor residual(rows, width, tx), dx(rows, width, tx), dw(1, width, DTYPE_F32), db(1, width, DTYPE_F32);
    test_tensor sums(1, width, DTYPE_F32);
    bool with_sums = rows != 1 && width != 48, with_y = rows != 5; /* further results, which may be wanted or not */
    bool with_copy = tx == DTYPE_F32 && rows != 1;
    test_tensor b(1, width, DTYPE_F32), y(rows, width, td), copy(rows, width, DTYPE_BF16);
    b.fill(0, 0.5);
    dy.fill(0.1, 1);
    x.fill(-0.3, 2);
    w.fill(1, 0.3);
    residual.fill(0, 1);
    norm_statistics(x, 1e-6, &stat);
    stat.put();
    norm_grad_want want = norm_grad_reference(dy, x, w, stat, add ? &residual : NULL);
    test_tensor *to = place == 1 ? &dy : place == 2 ? &residual : &dx;
    call_runner c(OP_NORM_GRAD);
    c.in(0, &dy), c.in(1, &x), c.in(2, &w), c.in(3, &stat), c.in(4, add ? &residual : NULL);
    c.out(0, to), c.out(1, &dw), c.out(2, &db), c.out(3, with_sums ? &sums : NULL);
    c.in(5, with_y ? &b : NULL), c.out(4, with_y ? &y : NULL), c.out(5, with_copy ? &copy : NULL);
    for (int64_t i = 0; i < rows * width; i++)
        y.value[i] = (x.value[i] - stat.value[i / width * 2]) * stat.value[i / width * 2 + 1] * w.value[i % width] +
                     b.value[i % width];
    c.run(name, kernel, cuda_norm_grad_workspace, place ? to : NULL);
    compare(std::string(name) + " dx", to->raw(name), want.dx, tx, want.dx_slack.data());
    compare(std::string(name) + " dw", dw.raw(name), want.dw, DTYPE_F32, NULL);
    compare(std::string(name) + " db", db.raw(name), want.db, DTYPE_F32, NULL);
    if (with_copy)
        compare(std::string(name) + " dx in bf16", copy.raw(name), want.dx, DTYPE_BF16, want.dx_slack.data());
    if (with_y)
        compare(std::string(name) + " y", y.raw(name), y.value, td, NULL);
    if (with_sums)
        compare(std::string(name) + " sums", sums.raw(name), want.sums, DTYPE_F32, want.sums_slack.data());
}

/* Few blocks of two warps: all stages are used many times. */
template <typename TX, typename TD, int WIDTH, int STAGES, int DEEP> static void norm_grad_few(const op_call *c)
{
    norm_grad_args a = norm_grad_args_of(c);
    norm_ahead_launch<TX, TD, WIDTH, norm_fill<2, 1, STAGES, DEEP>>(a, 2, cuda_device_of(c)->stream);
    cuda_launched(c);
    norm_grad_end(a, c);
}

static void norm_ahead_all()
{
    typedef __nv_bfloat16 bf16;
    const tensor_dtype f = DTYPE_F32, b = DTYPE_BF16;
    for (int place = 0; place < 3; place++) {
        norm_grad_case(1201, 24, b, b, true, place, norm_grad_few<bf16, bf16, 24, 2, 2>);
        norm_grad_case(131, 192, b, b, place != 1, place, norm_grad_few<bf16, bf16, 192, 2, 2>);
        norm_grad_case(97, 192, b, b, true, place, norm_grad_few<bf16, bf16, 192, 3, 2>);
        norm_grad_case(66, 192, b, b, true, place, norm_grad_few<bf16, bf16, 192, 3, 1>);
        norm_grad_case(64, 384, b, b, true, place, norm_grad_few<bf16, bf16, 384, 4, 1>);
        norm_grad_case(41, 768, b, b, true, place, norm_grad_few<bf16, bf16, 768, 3, 1>);
    }
    norm_grad_case(263, 48, b, b, true, 0, norm_grad_few<bf16, bf16, 48, 2, 2>);
    norm_grad_case(151, 96, f, b, true, 2, norm_grad_few<float, bf16, 96, 3, 1>);
    norm_grad_case(61, 192, f, b, true, 2, norm_grad_few<float, bf16, 192, 3, 1>);
    norm_grad_case(59, 192, b, f, true, 0, norm_grad_few<bf16, float, 192, 3, 1>);
    norm_grad_case(47, 384, f, f, true, 0, norm_grad_few<float, float, 384, 2, 1>);
    norm_grad_case(29, 768, f, b, false, 0, norm_grad_few<float, bf16, 768, 2, 1>);
}

static void norm_all()
{
    const tensor_dtype types[] = {DTYPE_F32, DTYPE_BF16};
    const int64_t widths[] = {24, 48, 96, 192, 384, 768, 1, 7, 33, 64, 100, 1000};
    for (int64_t width : widths)
        for (int64_t rows : {1, 5, 67})
            for (int mix = 0; mix < 4; mix++) {
                tensor_dtype a = types[mix / 2], b = types[mix % 2];
                norm_case(rows, width, a, b, rows == 5, rows == 67 && a == b);
                norm_grad_case(rows, width, a, b, rows != 5, rows == 67 ? a == b ? 1 : 2 : 0);
            }
    norm_ahead_all();
    /* more rows than one round of all blocks takes */
    norm_grad_case(4300, 24, DTYPE_BF16, DTYPE_BF16, true, 0);
    norm_grad_case(8700, 192, DTYPE_BF16, DTYPE_BF16, true, 1);
    for (int64_t width : {24, 192, 250})
        for (int mix = 0; mix < 4 && large_shapes(); mix++) {
            norm_case(70001, width, types[mix / 2], types[mix % 2], false, false);
            norm_grad_case(70001, width, types[mix / 2], types[mix % 2], true, 0);
        }
}

/* ---- attention ------------------------------------------------------------------------------- */

struct attention_shape {
    int64_t groups, tokens, heads, width;
    bool apart;
    tensor_dtype dtype;
    bool given = false; /* the gradient is handed y */
    bool wide = false;  /* on a GPU of compute capability 9.0, for the kernels by warpgroups; another one otherwise */
    bool sums = true;   /* column sums are wanted */
};

struct attention_data {
    test_tensor qkv, v, dy, logsum, kept; /* kept: y as the gradient reads it */
    std::vector<double> y, y_slack, dqkv, dqkv_slack, dv, dv_slack;
    attention_data(const attention_shape &s)
        : qkv(s.groups * s.tokens, s.heads * s.width * (s.apart ? 2 : 3), s.dtype),
          v(s.groups * s.tokens, s.heads * s.width, s.dtype), dy(s.groups * s.tokens, s.heads * s.width, s.dtype),
          logsum(s.groups * s.tokens, s.heads, DTYPE_F32), kept(s.groups * s.tokens, s.heads * s.width, s.dtype),
          y(dy.size()), y_slack(dy.size()), dqkv(qkv.size()), dqkv_slack(qkv.size()), dv(v.size()), dv_slack(v.size())
    {
        for (test_tensor *t : {&qkv, &v, &dy})
            t->info.size[0] = s.tokens;
        qkv.fill(0, 1.3);
        v.fill(0.2, 1);
        dy.fill(0, 1);
    }
};

/* One head of one group, by rows of p; offsets into the arrays. */
struct head_rows {
    const attention_shape *s;
    attention_data *d;
    int64_t group, head, dim, wide;
    size_t q(int64_t t, int64_t c) const
    {
        return (size_t)((group * s->tokens + t) * wide + head * s->width + c);
    }
    size_t y(int64_t t, int64_t c) const
    {
        return (size_t)((group * s->tokens + t) * dim + head * s->width + c);
    }
    double key(int64_t t, int64_t c) const
    {
        return d->qkv.value[q(t, c) + dim];
    }
    double value(int64_t t, int64_t c) const
    {
        return s->apart ? d->v.value[y(t, c)] : d->qkv.value[q(t, c) + 2 * dim];
    }
    double &dv(int64_t t, int64_t c, bool slack) const
    {
        if (s->apart)
            return (slack ? d->dv_slack : d->dv)[y(t, c)];
        return (slack ? d->dqkv_slack : d->dqkv)[q(t, c) + 2 * dim];
    }
};

static void head_row(const head_rows &h, int64_t t)
{
    const attention_shape &s = *h.s;
    attention_data &d = *h.d;
    double scale = 1 / sqrt((double)s.width), top = -INFINITY, sum = 0, delta = 0, far = 0;
    double unit = s.dtype == DTYPE_BF16 ? BF16_UNIT : 0;
    std::vector<double> p(s.tokens), dp(s.tokens);
    for (int64_t j = 0; j < s.tokens; j++) {
        for (int64_t c = 0; c < s.width; c++) {
            p[j] += scale * d.qkv.value[h.q(t, c)] * h.key(j, c);
            dp[j] += d.dy.value[h.y(t, c)] * h.value(j, c);
        }
        top = fmax(top, p[j]);
    }
    for (int64_t j = 0; j < s.tokens; j++)
        sum += exp(p[j] - top);
    d.logsum.value[(h.group * s.tokens + t) * s.heads + h.head] = top + log(sum);
    for (int64_t j = 0; j < s.tokens; j++) {
        p[j] = exp(p[j] - top) / sum;
        delta += p[j] * dp[j];
        far += p[j] * fabs(dp[j]);
    }
    for (int64_t c = 0; c < s.width; c++) {
        for (int64_t j = 0; j < s.tokens; j++) {
            d.y[h.y(t, c)] += p[j] * h.value(j, c);
            d.y_slack[h.y(t, c)] += unit * p[j] * fabs(h.value(j, c));
        }
        d.kept.value[h.y(t, c)] = bf16_value(bf16_of((float)d.y[h.y(t, c)]));
    }
    if (s.given) { /* delta then is a sum of numbers that the dtype holds */
        delta = far = 0;
        for (int64_t c = 0; c < s.width; c++)
            delta += d.dy.value[h.y(t, c)] * d.kept.value[h.y(t, c)];
    }
    for (int64_t j = 0; j < s.tokens; j++) {
        double ds = scale * p[j] * (dp[j] - delta), off = unit * scale * p[j] * (2 * fabs(dp[j] - delta) + far);
        for (int64_t c = 0; c < s.width; c++) {
            double q = d.qkv.value[h.q(t, c)], k = h.key(j, c), dy = d.dy.value[h.y(t, c)];
            d.dqkv[h.q(t, c)] += ds * k;
            d.dqkv_slack[h.q(t, c)] += off * fabs(k);
            d.dqkv[h.q(j, c) + h.dim] += ds * q;
            d.dqkv_slack[h.q(j, c) + h.dim] += off * fabs(q);
            h.dv(j, c, false) += p[j] * dy;
            h.dv(j, c, true) += unit * p[j] * fabs(dy);
        }
    }
}

/* The sums over rows of a gradient, and of what its elements may be off by, its rounding
 * included. */
static void column_sums_compare(const std::string &name, const test_tensor &got, const std::vector<double> &d,
                                const std::vector<double> &slack, tensor_dtype dtype)
{
    std::vector<double> want(got.size()), within(got.size());
    for (size_t i = 0; i < d.size(); i++) {
        want[i % got.size()] += d[i];
        within[i % got.size()] +=
            slack[i] + (dtype == DTYPE_BF16 ? ldexp(fabs(d[i]) + slack[i], -8) : 1e-6 * fabs(d[i]));
    }
    compare(name, got.raw(name), want, DTYPE_F32, within.data());
}

#ifdef CUDA_EMULATED
enum { ATTENTION_PROCESSORS = 2 }; /* blocks that take one head after the other */
#else
enum { ATTENTION_PROCESSORS = 100 };
#endif

static void attention_case(const attention_shape &s)
{
    char text[100];
    snprintf(text, sizeof text, "attention %lld x %lld, %lld heads of %lld, %s%s%s%s", (long long)s.groups,
             (long long)s.tokens, (long long)s.heads, (long long)s.width, dtype_text(s.dtype).c_str(),
             s.apart ? ", v apart" : "", s.given ? ", y given" : "", s.wide ? ", by warpgroups" : "");
    std::string name = text;
    attention_data d(s);
    for (int64_t i = 0; i < s.groups * s.heads; i++)
        for (int64_t t = 0; t < s.tokens; t++)
            head_row(head_rows{&s, &d, i / s.heads, i % s.heads, s.heads * s.width, d.qkv.channels}, t);
    test_tensor y(d.dy.rows, d.dy.channels, s.dtype), again(d.dy.rows, d.dy.channels, s.dtype);
    test_tensor dqkv(d.qkv.rows, d.qkv.channels, s.dtype), dv(d.v.rows, d.v.channels, s.dtype);
    call_runner f(OP_ATTENTION), r(OP_ATTENTION), b(OP_ATTENTION_GRAD);
    f.attr.heads = r.attr.heads = b.attr.heads = (int)s.heads;
    if (s.wide)
        f.dev.gpu = r.dev.gpu = b.dev.gpu = {"", 9, 0, ATTENTION_PROCESSORS, 0};
    test_tensor *v = s.apart ? &d.v : NULL;
    f.in(0, &d.qkv), f.in(1, v), f.out(0, &y), f.out(1, &d.logsum);
    f.run(name, cuda_attention, cuda_attention_workspace, NULL);
    compare(name + " y", y.raw(name), d.y, s.dtype, d.y_slack.data());
    compare(name + " log-sums", d.logsum.raw(name), d.logsum.value, DTYPE_F32, NULL);
    r.in(0, &d.qkv), r.in(1, v), r.in(2, &d.logsum), r.out(0, &again);
    r.run(name, cuda_attention, cuda_attention_workspace, NULL);
    if (y.raw(name) != again.raw(name))
        fail(name + ": other bytes when recomputed");
    d.logsum.put(), d.kept.put();
    b.in(0, &d.dy), b.in(1, &d.qkv), b.in(2, v), b.in(3, &d.logsum), b.in(4, s.given ? &d.kept : NULL);
    b.out(0, &dqkv), b.out(1, s.apart ? &dv : NULL);
    test_tensor sums(1, d.qkv.channels, DTYPE_F32), sums_v(1, d.v.channels, DTYPE_F32);
    bool with_sums = s.sums && s.tokens != 16; /* may be wanted or not, and either of two where v lies apart */
    b.out(2, with_sums && s.tokens != 50 ? &sums : NULL), b.out(3, with_sums && s.apart ? &sums_v : NULL);
    b.run(name, cuda_attention_grad, cuda_attention_grad_workspace, NULL);
    compare(name + " dqkv", dqkv.raw(name), d.dqkv, s.dtype, d.dqkv_slack.data());
    if (s.apart)
        compare(name + " dv", dv.raw(name), d.dv, s.dtype, d.dv_slack.data());
    if (b.call.out[2].data)
        column_sums_compare(name + " sums", sums, d.dqkv, d.dqkv_slack, s.dtype);
    if (b.call.out[3].data)
        column_sums_compare(name + " sums of dv", sums_v, d.dv, d.dv_slack, s.dtype);
}

static void attention_all()
{
    const tensor_dtype types[] = {DTYPE_F32, DTYPE_BF16};
    for (tensor_dtype t : types) {
        attention_case({2, 16, 4, 6, true, t});  /* TNT's pixels */
        attention_case({3, 16, 4, 6, false, t}); /* and a block that is half empty */
        attention_case({1, 5, 2, 4, false, t});
        attention_case({3, 9, 1, 8, true, t});
        attention_case({2, 16, 4, 10, true, t});
        attention_case({2, 16, 2, 12, false, t});
        attention_case({2, 1, 1, 5, false, t}); /* widths that nothing fast takes */
        attention_case({1, 37, 2, 7, true, t});
        attention_case({1, 33, 1, 70, false, t});
        attention_case({1, 20, 1, 130, true, t});
        attention_case({2, 65, 3, 64, false, t}); /* ViT-Tiny/4 */
        attention_case({1, 197, 1, 64, false, t});
    }
    for (int64_t width : {32, 64})
        for (int64_t tokens : {1, 2, 8, 16, 17, 24, 25, 40, 41, 50, 56, 57, 64, 66, 71, 72, 73, 80})
            attention_case({tokens % 3 == 0 ? 2 : 1, tokens, tokens % 2 ? 2 : 1, width, tokens % 5 == 0, DTYPE_BF16});
    for (int64_t width : {16, 48, 80, 96, 128})
        for (int64_t tokens : {1, 16, 50, 130})
            attention_case({1, tokens, 2, width, tokens == 50, DTYPE_BF16, tokens == 130});
    for (int64_t tokens : {96, 128, 129, 257, 300})
        attention_case({1, tokens, 1, 64, tokens == 129, DTYPE_BF16, tokens == 300});
    for (int64_t width : {32, 64}) /* the gradient of a whole head on chip: one round, and two */
        for (int64_t tokens : {73, 80, 100, 128, 197, 208, 224, 225, 256}) {
            bool more = tokens == 73 || tokens == 197; /* heads than blocks at a time */
            attention_case({more ? 2 : 1, tokens, more ? 3 : 1, width, tokens % 5 == 0, DTYPE_BF16, true});
        }
    if (!large_shapes())
        return;
    attention_case({150, 197, 3, 64, false, DTYPE_BF16, true});
    attention_case({300, 80, 2, 64, true, DTYPE_BF16, true});
    attention_case({40, 65, 3, 64, false, DTYPE_BF16});
    attention_case({700, 16, 4, 6, true, DTYPE_BF16});
    attention_case({9, 197, 3, 64, false, DTYPE_BF16});
}

/* The kernels by warpgroups: every number of keys that they are compiled for, tiles that are full,
 * partly full and empty, and heads that the blocks do not share evenly. */
static void attention_wide_all()
{
    for (int64_t tokens : {73, 112, 113, 128, 129, 144, 145, 160, 197, 208, 256})
        attention_case({1, tokens, tokens % 2 ? 2 : 1, 64, tokens % 3 == 0, DTYPE_BF16, true, true});
    attention_case({3, 197, 3, 64, false, DTYPE_BF16, true, true});
    attention_case({2, 197, 2, 64, true, DTYPE_BF16, true, true});
    attention_case({5, 128, 1, 64, false, DTYPE_BF16, true, true});
    attention_case({2, 140, 3, 64, true, DTYPE_BF16, true, true});
    attention_case({2, 197, 3, 64, false, DTYPE_BF16, true, true, false});
    attention_case({3, 120, 1, 64, true, DTYPE_BF16, true, true, false});
    attention_case({1, 197, 1, 64, false, DTYPE_BF16, false, true}); /* no y: the streaming one */
    if (!large_shapes())
        return;
    for (int64_t tokens : {80, 127, 177, 192, 193, 209, 255})
        attention_case({2, tokens, 3, 64, tokens % 3 == 0, DTYPE_BF16, true, true});
    attention_case({150, 197, 3, 64, false, DTYPE_BF16, true, true});
    attention_case({300, 80, 2, 64, true, DTYPE_BF16, true, true});
    attention_case({101, 176, 1, 64, true, DTYPE_BF16, true, true});
}

#ifdef CUDA_EMULATED
/* The paths of GPUs with less shared memory (emulate_shared_most): heads in more rounds or
 * streamed, streams of the widest heads plain. */
static void attention_small_gpu()
{
    for (int64_t tokens : {65, 130, 197, 256})
        for (int64_t width : {32, 64, 96, 128})
            attention_case({1, tokens, 1, width, tokens == 130, DTYPE_BF16, tokens != 65});
}
#endif

/* test_cuda_kernels [norm|attention|rows]: all of them, or one */
int main(int argc, char **argv)
{
    auto wanted = [&](const char *name) { return argc < 2 || !strcmp(argv[1], name); };
    if (argc > 1 && !wanted("norm") && !wanted("attention") && !wanted("rows")) {
        printf("%s: norm, attention or rows\n", argv[1]);
        return 2;
    }
    if (!device_there()) {
        printf("no GPU: skipped\n");
        return 77;
    }
    if (wanted("norm"))
        norm_all();
    printf("norm: %d wrong\n", faults);
#ifdef CUDA_EMULATED
    if (wanted("attention"))
        attention_small_gpu();
    emulate_shared_most = 227 * 1024; /* compute capability 9.0 from here on */
#endif
    if (wanted("attention")) {
        attention_all();
        if (rows_there())
            attention_wide_all();
    }
    printf("attention: %d wrong\n", faults);
    if (wanted("rows") && rows_there())
        rows_all(), linear_norm_all();
    printf("all: %d wrong\n", faults);
    return faults ? 1 : 0;
}
