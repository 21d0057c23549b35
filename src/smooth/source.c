/* source.c - the function as C source that needs nothing but <math.h>. SPDX-License-Identifier: MIT
 *
 * The source tests the joins from left to right. Centred transitions of lines are written as line
 * plus bump, as eval.c computes them; the others as control values with de Casteljau's algorithm.
 * Every name of the public call begins with smooth_, so that a function called `double` or `fabs`
 * compiles too. In float the same text has float's literals and functions. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "smooth/smooth.h"

typedef struct writer {
    text out;
    const berlu_smooth *f;
    const char *name;
    const char *prefix; /* of every name */
    int f32;
    int order;    /* 0: value, 1: slope */
    int infinite; /* a number was beyond the type's range, which no literal can say */
} writer;

/* A literal of the source's type that reads back to the same bits. */
static void number(writer *w, double value)
{
    char digits[NUMBER_TEXT];
    w->infinite |= !isfinite(w->f32 ? (double)(float)value : value);
    if (w->f32)
        number_text_f32(digits, (float)value);
    else
        number_text(digits, value);
    text_add(&w->out, "%s%s%s", digits, strpbrk(digits, ".e") ? "" : ".0", w->f32 ? "f" : "");
}

static const char *type(const writer *w)
{
    return w->f32 ? "float" : "double";
}

static void put(writer *w, const char *words)
{
    text_string(&w->out, words);
}

/* "(x - 6.0)" */
static void offset(writer *w, double x)
{
    put(w, x == 0 ? "x" : "(x - ");
    if (x != 0) {
        number(w, x);
        put(w, ")");
    }
}

static void line_write(writer *w, line l)
{
    if (w->order == 1 || l.slope == 0) {
        number(w, w->order == 1 ? l.slope : l.y);
        return;
    }
    if (l.y != 0) {
        number(w, l.y);
        put(w, " + ");
    }
    number(w, l.slope);
    put(w, " * ");
    offset(w, l.x);
}

static void curve_write(writer *w, const berlu_curve *c)
{
    number(w, w->order == 0 ? c->constant : c->linear);
    if (w->order == 0 && c->linear != 0) {
        put(w, " + x * ");
        number(w, c->linear);
    }
    if (c->square != 0) {
        put(w, w->order == 0 ? " + x * x * " : " + x * ");
        number(w, w->order == 0 ? c->square : 2 * c->square);
    }
    if (c->scale * c->rate != 0) {
        put(w, " + ");
        number(w, w->order == 0 ? c->scale : c->scale * c->rate);
        text_add(&w->out, " * %s%s(", w->order == 0 ? "expm1" : "exp", w->f32 ? "f" : "");
        number(w, c->rate);
        put(w, " * x)");
    }
}

static void given_write(writer *w, size_t i)
{
    put(w, "return ");
    if (w->f->curved)
        curve_write(w, curve_at(w->f, i));
    else
        line_write(w, line_at(w->f, i));
    put(w, ";\n");
}

/* c[0] + v * (c[1] + v * (... + v * c[count - 1])) */
static void horner_write(writer *w, const double *c, int count)
{
    for (int i = 0; i < count; i++) {
        number(w, c[i]);
        if (i + 1 < count)
            put(w, i + 2 < count ? " + v * (" : " + v * ");
    }
    for (int i = 0; i + 2 < count; i++)
        put(w, ")");
}

static void bump_write(writer *w, const knot *k)
{
    int m = w->f->bump.m;
    text_add(&w->out, "        const %s c = ", type(w));
    offset(w, k->x);
    put(w, ", r = (");
    number(w, k->eps_left);
    text_add(&w->out, " - fabs%s(c)) / ", w->f32 ? "f" : "");
    number(w, 2 * k->eps_left);
    if (m > 1) /* for m = 1 the polynomial is a constant */
        put(w, ", v = "), number(w, 1), put(w, " - "), number(w, 2), put(w, " * r");
    text_add(&w->out, ";\n        const %s bump = (", type(w));
    for (int i = 0; i < m + 1 - w->order; i++)
        put(w, i ? " * r" : "r");
    put(w, ") * (");
    horner_write(w, w->order == 0 ? w->f->bump.q : w->f->bump.w, m);
    put(w, ");\n        return ");
    if (w->order == 0 && k->y != 0) {
        number(w, k->y);
        put(w, " + ");
    }
    put(w, "(c < 0 ? ");
    number(w, k->left);
    put(w, " : ");
    number(w, k->right);
    put(w, w->order == 0 ? ") * c + " : ") + (c < 0 ? ");
    number(w, w->order == 0 ? k->jump * k->eps_left : k->jump);
    if (w->order == 1) {
        put(w, " : ");
        number(w, -k->jump);
        put(w, ")");
    }
    put(w, " * bump;\n");
}

/* Control values; for the slope those of the derivative by x. */
static void control_write(writer *w, const knot *k)
{
    int n = w->f->piece_degree;
    double width = k->to - k->from;
    text_add(&w->out, "        static const %s b[] = {", type(w));
    for (int i = 0; i <= n - w->order; i++) {
        put(w, i ? ", " : "");
        number(w, w->order == 0 ? k->control[i] : n * (k->control[i + 1] - k->control[i]) / width);
    }
    put(w, "};\n");
    text_add(&w->out, "        return %s%s_casteljau(b, %d, ", w->prefix, w->name, n - w->order);
    offset(w, k->from);
    put(w, " / ");
    number(w, width);
    put(w, ");\n");
}

static int knot_is_bump(const berlu_smooth *f, const knot *k)
{
    return !f->curved && k->centred;
}

static void function_write(writer *w, int order)
{
    const berlu_smooth *f = w->f;
    w->order = order;
    text_add(&w->out, "%s %s%s%s(%s x)\n{\n    if (x != x)\n        return x;\n", type(w), w->prefix, w->name,
             order ? "_slope" : "", type(w));
    for (size_t i = 0; i < f->count; i++) {
        const knot *k = &f->knots[i];
        put(w, "    if (x < ");
        number(w, k->from);
        put(w, ")\n        ");
        given_write(w, i);
        put(w, "    if (x <= ");
        number(w, k->to);
        put(w, ") {\n");
        (knot_is_bump(f, k) ? bump_write : control_write)(w, k);
        put(w, "    }\n");
    }
    put(w, "    ");
    given_write(w, f->count);
    put(w, "}\n");
}

static void casteljau_write(writer *w)
{
    for (size_t i = 0; i < w->f->count; i++)
        if (!knot_is_bump(w->f, &w->f->knots[i])) {
            text_add(&w->out,
                     "static %s %s%s_casteljau(const %s *control, int degree, %s t)\n"
                     "{\n"
                     "    %s b[%d];\n"
                     "    for (int k = 0; k <= degree; k++)\n"
                     "        b[k] = control[k];\n"
                     "    for (int level = degree; level > 0; level--)\n"
                     "        for (int k = 0; k < level; k++)\n"
                     "            b[k] = (1 - t) * b[k] + t * b[k + 1];\n"
                     "    return b[0];\n"
                     "}\n\n",
                     type(w), w->prefix, w->name, type(w), type(w), type(w), w->f->piece_degree + 1);
            return;
        }
}

static void prototypes_write(writer *w)
{
    for (int order = 0; order < 2; order++)
        text_add(&w->out, "%s %s%s%s(%s x);\n", type(w), w->prefix, w->name, order ? "_slope" : "", type(w));
    put(w, "\n");
}

berlu_status smooth_source_as(const berlu_smooth *f, const char *prefix, const char *name, int f32, char **out)
{
    *out = NULL;
    if (!name_is_identifier(name))
        return berlu_fail(BERLU_ERR_ARG, "'%.80s' is no name: a letter, then letters, digits and '_'", name);
    writer w = {.f = f, .name = name, .prefix = prefix, .f32 = f32};
    int order = berlu_smooth_contact_order(f);
    text_add(&w.out, "/* %s: %zu kink%s, smoothed with degree %d", name, f->count, f->count == 1 ? "" : "s", f->degree);
    if (order < BERLU_SMOOTH_ANALYTIC)
        text_add(&w.out, " (%d continuous derivative%s)", order, order == 1 ? "" : "s");
    put(&w, ". Made by `berlu smooth`. */\n#include <math.h>\n\n");
    prototypes_write(&w);
    casteljau_write(&w);
    function_write(&w, 0);
    put(&w, "\n");
    function_write(&w, 1);
    berlu_status status = text_status(&w.out);
    if (w.infinite)
        status = berlu_fail(BERLU_ERR_ARG, "%s: its numbers exceed the range of %s", name, type(&w));
    if (status == BERLU_OK)
        *out = w.out.data; /* owned by the caller now */
    else
        text_free(&w.out);
    return status;
}

berlu_status berlu_smooth_source(const berlu_smooth *f, const char *name, char **out)
{
    if (out)
        *out = NULL;
    if (!f || !name || !out)
        return berlu_fail(BERLU_ERR_ARG, "berlu_smooth_source() was given NULL");
    return smooth_source_as(f, "smooth_", name, 0, out);
}
