/* test_landscape.c - spectra of a run, curvature of known functions, the loss around a network's
 * weights. SPDX-License-Identifier: MIT */
#include <math.h>

#include "../train/runs.h"
#include "analyze/contour.h"
#include "analyze/landscape.h"
#include "analyze/spectrum.h"
#include "train/eval_run.h"

static char trained[FOLDER_PATH], smooth[FOLDER_PATH]; /* with berlu; with gelu */

static int run_make(void **state)
{
    (void)state;
    static const char *const gelu[] = {"act=gelu", "epochs=1", NULL};
    run_whole(run_place(trained, "analyze_landscape"), NULL);
    run_whole(run_place(smooth, "analyze_smooth"), gelu);
    return 0;
}

static void open_run(opened *o, const char *run, int threads)
{
    const opened_options options = {.name = run, .images = 1 << 20, .test = 1, .batch = 8, .threads = threads};
    if (opened_make(o, &options) != BERLU_OK || opened_checkpoint(o) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
}

/* ---- eigenvalues ----------------------------------------------------------------------------- */

/* The second difference matrix of n points: 2 - 2 cos(k pi / (n + 1)). */
static void a_small_matrix_has_its_known_eigenvalues(void **state)
{
    (void)state;
    enum { N = 12 };
    double a[N * N] = {0}, copy[N * N], values[N], vectors[N * N];
    for (int i = 0; i < N; i++) {
        a[i * N + i] = 2;
        if (i + 1 < N)
            a[i * N + i + 1] = a[(i + 1) * N + i] = -1;
    }
    memcpy(copy, a, sizeof a);
    symmetric_eigen(copy, N, values, vectors);
    for (int k = 0; k < N; k++) {
        assert_true(fabs(values[k] - (2 - 2 * cos((N - k) * acos(-1) / (N + 1)))) < 1e-14);
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int j = 0; j < N; j++)
                sum += a[i * N + j] * vectors[k * N + j];
            assert_true(fabs(sum - values[k] * vectors[k * N + i]) < 1e-14);
        }
    }
}

enum { SIZE = 40 };

/* f = x' A x / 2 + bend * sum x^3 / 6 with A = Q D Q, Q a reflection: the eigenvalues at 0 are
 * D. */
typedef struct bowl {
    double d[SIZE], u[SIZE], bend;
    size_t gradients;
} bowl;

static void reflect(const bowl *b, const double *x, double *out)
{
    double along = 0;
    for (int i = 0; i < SIZE; i++)
        along += b->u[i] * x[i];
    for (int i = 0; i < SIZE; i++)
        out[i] = x[i] - 2 * along * b->u[i];
}

static berlu_status bowl_evaluate(void *context, const double *x, double *loss, double *gradient)
{
    bowl *b = context;
    double y[SIZE], z[SIZE];
    reflect(b, x, y);
    for (int i = 0; i < SIZE; i++)
        y[i] *= b->d[i];
    reflect(b, y, z);
    *loss = 0;
    for (int i = 0; i < SIZE; i++) {
        *loss += x[i] * z[i] / 2 + b->bend * x[i] * x[i] * x[i] / 6;
        if (gradient)
            gradient[i] = z[i] + b->bend * x[i] * x[i] / 2;
    }
    b->gradients += gradient != NULL;
    return BERLU_OK;
}

static bowl bowl_make(double bend)
{
    bowl b = {.bend = bend};
    double length = 0;
    for (int i = 0; i < SIZE; i++) {
        b.d[i] = i < 3 ? 10 - 3 * i : 1 - 0.1 * i; /* 10, 7, 4, then 0.7 down to -2.9 */
        b.u[i] = sin(i + 1.0);
        length += b.u[i] * b.u[i];
    }
    for (int i = 0; i < SIZE; i++)
        b.u[i] /= sqrt(length);
    return b;
}

static void count(void *context, size_t gradients)
{
    *(size_t *)context = gradients;
}

static void a_quadratic_function_gives_its_known_eigenvalues(void **state)
{
    (void)state;
    bowl b = bowl_make(0);
    const surface s = {.count = SIZE, .evaluate = bowl_evaluate, .context = &b};
    double zero[SIZE] = {0};
    eigenvalue found[3];
    size_t have = 0, seen = 0;
    const hessian_options o = {.wanted = 3, .steps = SIZE, .step = 0.5, .seed = 1, .tick = count, .context = &seen};
    assert_int_equal(hessian_largest(found, &have, &s, zero, &o), BERLU_OK);
    assert_int_equal(have, 3);
    assert_int_equal(seen, b.gradients);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(found[i].value - b.d[i]) < 1e-12 && found[i].error < 1e-10);
}

/* Some eigenvalue lies within the error, whether Lanczos has converged or not. */
static void the_error_holds_before_lanczos_has_converged(void **state)
{
    (void)state;
    bowl b = bowl_make(0);
    const surface s = {.count = SIZE, .evaluate = bowl_evaluate, .context = &b};
    double zero[SIZE] = {0};
    for (size_t steps = 2; steps <= 12; steps++) {
        eigenvalue found[2];
        size_t have;
        const hessian_options o = {.wanted = 2, .steps = steps, .seed = steps};
        assert_int_equal(hessian_largest(found, &have, &s, zero, &o), BERLU_OK);
        for (size_t k = 0; k < have; k++) {
            double nearest = INFINITY;
            for (int i = 0; i < SIZE; i++)
                nearest = fmin(nearest, fabs(found[k].value - b.d[i]));
            assert_true(nearest <= found[k].error + 1e-10);
        }
        if (steps == 2)
            assert_true(found[0].error > 1e-3); /* it is no formality */
    }
}

/* Central differences are exact for a cubic function: no error from its third derivative. */
static void differences_are_of_second_order(void **state)
{
    (void)state;
    bowl b = bowl_make(2);
    const surface s = {.count = SIZE, .evaluate = bowl_evaluate, .context = &b};
    double zero[SIZE] = {0};
    eigenvalue found;
    size_t have;
    const hessian_options o = {.wanted = 1, .steps = 20, .step = 0.25};
    assert_int_equal(hessian_largest(&found, &have, &s, zero, &o), BERLU_OK);
    assert_true(fabs(found.value - 10) < 1e-10);
}

static void one_weight_and_a_flat_surface_have_eigenvalues_too(void **state)
{
    (void)state;
    bowl b = bowl_make(0);
    memset(b.d, 0, sizeof b.d);
    const surface flat = {.count = SIZE, .evaluate = bowl_evaluate, .context = &b};
    double zero[SIZE] = {0};
    eigenvalue found[2];
    size_t have;
    const hessian_options o = {.wanted = 2, .steps = 8};
    assert_int_equal(hessian_largest(found, &have, &flat, zero, &o), BERLU_OK);
    assert_int_equal(have, 1); /* the space of a vector and its image ends at once */
    assert_true(found[0].value == 0 && found[0].error == 0);
}

/* ---- directions and the landscape ------------------------------------------------------------ */

static double length_of(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i] * v[i];
    return sqrt(sum);
}

static void filters_keep_their_lengths(void **state)
{
    (void)state;
    opened o;
    open_run(&o, trained, 1);
    double *w = calloc(4 * o.parameters, sizeof *w), *d = w + o.parameters, *again = d + o.parameters,
           *other = again + o.parameters;
    assert_int_equal(opened_get(&o, w), BERLU_OK);
    const graph *g = o.model->graph;
    direction_draw(d, g, w, 3, 0);
    direction_draw(again, g, w, 3, 0);
    direction_draw(other, g, w, 3, 1);
    assert_memory_equal(d, again, o.parameters * sizeof *d);
    size_t at = 0, filters = 0;
    for (int i = 0; i < graph_param_count(g); i++) {
        const tensor_info *t = graph_tensor(g, graph_param(g, i));
        size_t elements = (size_t)tensor_elements(t), rows = t->decay ? (size_t)t->size[0] : 1, width = elements / rows;
        for (size_t r = 0; r < rows; r++, filters += t->decay) {
            const double *row = d + at + r * width;
            double want = t->decay ? length_of(w + at + r * width, width) : 0;
            assert_true(fabs(length_of(row, width) - want) <= 1e-14 * want);
            if (t->decay)
                assert_true(memcmp(row, other + at + r * width, width * sizeof *row) != 0);
        }
        at += elements;
    }
    assert_int_equal(at, o.parameters);
    assert_true(filters > 1000);
    free(w);
    opened_free(&o);
}

static const landscape_options small = {
    .directions = 2, .points = 5, .grid = 5, .radius = 0.5, .eigenvalues = 2, .steps = 6, .rho = 0.05, .seed = 7};

static void at_distance_zero_the_loss_is_the_runs_loss(void **state)
{
    (void)state;
    opened o;
    landscape l;
    score s;
    open_run(&o, trained, 1);
    assert_int_equal(landscape_find(&l, &o, &small), BERLU_OK);
    const eval_request request = {.run = trained, .which = "last", .batch = 8, .threads = 1};
    assert_int_equal(eval_run(&request, &s), BERLU_OK);
    assert_true(fabs(l.loss - score_loss(&s)) <= 1e-6 * l.loss);
    for (int d = 0; d < 2; d++)
        assert_true(l.line[d * 5 + 2] == l.loss && l.t[2] == 0 && l.t[0] == -l.t[4]);
    for (int i = 0; i < 5; i++) { /* the axes of the plane are the lines */
        assert_true(l.plane[2 * 5 + i] == l.line[i]);
        assert_true(l.plane[i * 5 + 2] == l.line[5 + i]);
    }
    double after;
    assert_int_equal(opened_loss(&o, &after, NULL), BERLU_OK);
    assert_true(after == l.loss); /* the weights are as they were */
    landscape_free(&l);
    opened_free(&o);
}

/* Near the weights the loss of a smooth network is a parabola along each direction, and no
 * direction bends more than the largest eigenvalue. */
static void curvature_sharpness_and_eigenvalues_agree(void **state)
{
    (void)state;
    opened o;
    landscape l;
    landscape_options settings = small;
    settings.grid = 0, settings.points = 3, settings.radius = 0.05, settings.steps = 20;
    open_run(&o, smooth, 1);
    assert_int_equal(landscape_find(&l, &o, &settings), BERLU_OK);
    double *w = calloc(2 * o.parameters, sizeof *w), *d = w + o.parameters;
    assert_int_equal(opened_get(&o, w), BERLU_OK);
    for (uint32_t k = 0; k < 2; k++) {
        const double *line = l.line + 3 * k;
        double bend = (line[0] + line[2] - 2 * line[1]) / (0.05 * 0.05);
        direction_draw(d, o.model->graph, w, settings.seed, k);
        double length = length_of(d, o.parameters);
        assert_true(fabs(bend - l.curvature[k]) <= 0.05 * fabs(bend) + 0.005); /* f32 loses 1e-6 of the loss / 0.0025 */
        assert_true(l.curvature[k] / (length * length) <= l.eigen[0].value + l.eigen[0].error);
    }
    assert_true(l.found == 2 && l.eigen[0].value >= l.eigen[1].value && l.eigen[0].value > 0);
    assert_true(l.eigen[0].error >= 0 && l.eigen[0].error < l.eigen[0].value);
    /* rho |g| + rho^2 / 2 times a curvature of at most the largest eigenvalue */
    double most = settings.rho * l.gradient + settings.rho * settings.rho / 2 * (l.eigen[0].value + l.eigen[0].error);
    assert_true(l.sharpness > 0 && l.sharpness <= 1.05 * most);
    free(w);
    landscape_free(&l);
    opened_free(&o);
}

static void threads_change_no_bit_of_a_landscape(void **state)
{
    (void)state;
    landscape l[2];
    for (int i = 0; i < 2; i++) {
        opened o;
        open_run(&o, trained, i + 1);
        assert_int_equal(landscape_find(&l[i], &o, &small), BERLU_OK);
        opened_free(&o);
    }
    assert_memory_equal(l[0].plane, l[1].plane, 25 * sizeof *l[0].plane);
    assert_memory_equal(l[0].eigen, l[1].eigen, 2 * sizeof *l[0].eigen);
    assert_true(l[0].sharpness == l[1].sharpness);
    landscape_free(&l[0]);
    landscape_free(&l[1]);
}

/* ---- level lines ----------------------------------------------------------------------------- */

static void level_lines_lie_on_the_level(void **state)
{
    (void)state;
    enum { N = 41 };
    double side[N], bowl_values[N * N], saddle[N * N];
    arena memory = {0};
    contour c;
    for (int i = 0; i < N; i++)
        side[i] = -2 + 4.0 * i / (N - 1);
    for (int b = 0; b < N; b++)
        for (int a = 0; a < N; a++) {
            bowl_values[b * N + a] = side[a] * side[a] + 2 * side[b] * side[b];
            saddle[b * N + a] = side[a] * side[b];
        }
    assert_int_equal(contour_find(&c, &memory, bowl_values, side, N, 1), BERLU_OK);
    double widest = 0, tallest = 0;
    for (size_t i = 0; i < c.count; i++)
        if (!isnan(c.x[i])) {
            assert_true(fabs(c.x[i] * c.x[i] + 2 * c.y[i] * c.y[i] - 1) < 0.01); /* linear over cells of 0.1 */
            widest = fmax(widest, c.x[i]);
            tallest = fmax(tallest, c.y[i]);
        }
    assert_true(fabs(widest - 1) < 0.01 && fabs(tallest - sqrt(0.5)) < 0.01);
    assert_int_equal(contour_find(&c, &memory, saddle, side, N, 1e-3), BERLU_OK);
    for (size_t i = 0; i < c.count; i++) /* both branches in their own quarters, no piece across the axes */
        assert_true(isnan(c.x[i]) || c.x[i] * c.y[i] > 0);
    assert_int_equal(contour_find(&c, &memory, bowl_values, side, N, 100), BERLU_OK);
    assert_int_equal(c.count, 0);
    bowl_values[0] = INFINITY;
    assert_int_equal(contour_find(&c, &memory, bowl_values, side, N, 11), BERLU_OK);
    assert_int_equal(c.count % 3, 0);
    arena_free(&memory);
}

/* ---- spectra --------------------------------------------------------------------------------- */

static void spectra_hold_the_weights_and_their_gradients(void **state)
{
    (void)state;
    opened o;
    spectrum s;
    open_run(&o, trained, 1);
    assert_int_equal(spectrum_find(&s, &o, 2), BERLU_OK);
    assert_true(s.states == 2 && s.sites == 4);
    assert_int_equal(s.matrices, 1 + 4 * 4 + 1); /* patches, four a block, head */
    for (size_t i = 0; i < s.matrices; i++) {
        const spectrum_matrix *m = &s.matrix[i];
        float *values; /* the checkpoint's weights are still set */
        const tensor_info *info;
        double squares = 0, sum = 0;
        assert_int_equal(opened_parameter(&o, ARRAY_WEIGHT, m->name, &values, &info), BERLU_OK);
        assert_int_equal(m->rows * m->columns, (size_t)tensor_elements(info));
        for (size_t k = 0; k < m->rows * m->columns; k++)
            squares += (double)values[k] * values[k];
        for (size_t k = 0; k < m->count; k++) {
            sum += m->singular[SPECTRUM_TRAINED][k] * m->singular[SPECTRUM_TRAINED][k];
            assert_true(k == 0 || m->singular[0][k] <= m->singular[0][k - 1]);
        }
        assert_true(fabs(sum - squares) <= 1e-12 * squares);
        double rank = stable_rank(m->singular[0], m->count);
        assert_true(rank >= 1 && rank <= (double)m->count && m->gradient[0] > 0 && m->gradient[1] > 0);
        free(values);
    }
    double loss, *g = calloc(o.parameters, sizeof *g), all = 0;
    assert_int_equal(opened_loss(&o, &loss, g), BERLU_OK);
    for (size_t i = 0; i < s.matrices; i++)
        all += s.matrix[i].gradient[1] * s.matrix[i].gradient[1];
    assert_true(loss == s.loss[1] && all > 0 && sqrt(all) < length_of(g, o.parameters));
    double growth = s.site[0].gradient[0] / s.site[3].gradient[0];
    assert_true(fabs(pow(s.growth[0], 3) - growth) <= 1e-12 * growth);
    free(g);
    spectrum_free(&s);
    opened_free(&o);
}

static void pass_count(void *context, size_t passes)
{
    assert_int_equal(passes, ++*(size_t *)context);
}

static void a_spectrum_tells_of_every_pass(void **state)
{
    (void)state;
    opened o;
    spectrum s;
    size_t seen = 0;
    open_run(&o, trained, 1);
    o.tick = pass_count;
    o.context = &seen;
    assert_int_equal(spectrum_find(&s, &o, 1), BERLU_OK);
    assert_int_equal(seen, SPECTRUM_STATES * ((o.count + (size_t)o.batch - 1) / (size_t)o.batch));
    spectrum_free(&s);
    opened_free(&o);
}

/* What the trainer recorded at its first batch is of the same weights: the same order by depth. */
static void the_start_of_a_spectrum_is_that_of_the_model(void **state)
{
    (void)state;
    opened run, model_only;
    spectrum a, b;
    static const char *const settings[][2] = {
        {"act", "berlu"}, {"patch", "8"}, {"image_size", "16"}, {"data", "synthetic"}, {"synthetic_images", "64"}};
    const opened_options options = {.name = "vit_micro",
                                    .settings = settings,
                                    .setting_count = 5,
                                    .images = 1 << 20,
                                    .test = 1,
                                    .batch = 8,
                                    .threads = 1};
    open_run(&run, trained, 1);
    assert_int_equal(spectrum_find(&a, &run, 1), BERLU_OK);
    if (opened_make(&model_only, &options) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_int_equal(spectrum_find(&b, &model_only, 1), BERLU_OK);
    assert_int_equal(b.states, 1);
    assert_int_equal(b.matrices, a.matrices);
    for (size_t i = 0; i < a.matrices; i++)
        assert_memory_equal(a.matrix[i].singular[0], b.matrix[i].singular[0], a.matrix[i].count * sizeof(double));
    assert_true(a.loss[0] == b.loss[0] && a.site[2].gradient[0] == b.site[2].gradient[0]);
    spectrum_free(&a);
    spectrum_free(&b);
    opened_free(&run);
    opened_free(&model_only);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_matrix_has_its_known_eigenvalues),
        cmocka_unit_test(a_quadratic_function_gives_its_known_eigenvalues),
        cmocka_unit_test(the_error_holds_before_lanczos_has_converged),
        cmocka_unit_test(differences_are_of_second_order),
        cmocka_unit_test(one_weight_and_a_flat_surface_have_eigenvalues_too),
        cmocka_unit_test(filters_keep_their_lengths),
        cmocka_unit_test(at_distance_zero_the_loss_is_the_runs_loss),
        cmocka_unit_test(curvature_sharpness_and_eigenvalues_agree),
        cmocka_unit_test(threads_change_no_bit_of_a_landscape),
        cmocka_unit_test(level_lines_lie_on_the_level),
        cmocka_unit_test(spectra_hold_the_weights_and_their_gradients),
        cmocka_unit_test(a_spectrum_tells_of_every_pass),
        cmocka_unit_test(the_start_of_a_spectrum_is_that_of_the_model),
    };
    return cmocka_run_group_tests(tests, run_make, NULL);
}
