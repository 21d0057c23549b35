/* smooth_emit.c - see smooth_emit.h. SPDX-License-Identifier: MIT
 *
 * C comes from the library (smooth/source.c); Python is the same in its syntax. LaTeX shows the
 * pieces as a paper would; YAML and spec are read by berlu itself and have every digit, so that the
 * function is restored to the bit. */
#include "smooth_emit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "smooth/smooth.h"
#include "smooth_args.h"

static const char *number(char out[NUMBER_TEXT + 4], double value)
{
    char digits[NUMBER_TEXT];
    number_text(digits, value);
    snprintf(out, NUMBER_TEXT + 4, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
    return out;
}

static void add_number(text *t, double value)
{
    char digits[NUMBER_TEXT + 4];
    text_string(t, number(digits, value));
}

/* ---- Python ---------------------------------------------------------------------------------- */

static void python_given(text *t, const berlu_smooth *f, size_t i, int slope)
{
    line l = line_at(f, i);
    text_string(t, "return ");
    if (!f->curved && (slope || l.slope == 0)) {
        add_number(t, slope ? l.slope : l.y);
    } else if (!f->curved) {
        add_number(t, l.y);
        text_string(t, " + "), add_number(t, l.slope);
        text_string(t, " * (x - "), add_number(t, l.x), text_string(t, ")");
    } else {
        const berlu_curve *c = curve_at(f, i);
        add_number(t, slope ? c->linear : c->constant);
        text_string(t, " + x * "), add_number(t, slope ? 2 * c->square : c->linear);
        if (!slope)
            text_string(t, " + x * x * "), add_number(t, c->square);
        if (c->scale * c->rate != 0) {
            text_string(t, " + "), add_number(t, slope ? c->scale * c->rate : c->scale);
            text_string(t, slope ? " * math.exp(" : " * math.expm1("), add_number(t, c->rate);
            text_string(t, " * x)");
        }
    }
    text_string(t, "\n");
}

static void python_bump(text *t, const berlu_smooth *f, const knot *k, int slope)
{
    const double *q = slope ? f->bump.w : f->bump.q;
    text_string(t, "        c = x - "), add_number(t, k->x);
    text_string(t, "\n        r = ("), add_number(t, k->eps_left);
    text_string(t, " - abs(c)) / "), add_number(t, 2 * k->eps_left);
    text_string(t, "\n        v = 1.0 - 2.0 * r\n        bump = ");
    for (int i = 0; i < f->bump.m + !slope; i++)
        text_string(t, "r * ");
    for (int i = 0; i < f->bump.m; i++) {
        text_string(t, "(");
        add_number(t, q[i]);
        text_string(t, i + 1 < f->bump.m ? " + v * " : "");
    }
    for (int i = 0; i < f->bump.m; i++)
        text_string(t, ")");
    text_string(t, "\n        return ");
    if (!slope)
        add_number(t, k->y), text_string(t, " + ");
    text_string(t, "("), add_number(t, k->left), text_string(t, " if c < 0 else "), add_number(t, k->right);
    text_string(t, slope ? ") + (" : ") * c + (");
    add_number(t, slope ? k->jump : k->jump * k->eps_left);
    if (slope)
        text_string(t, " if c < 0 else "), add_number(t, -k->jump);
    text_string(t, ") * bump\n");
}

static void python_control(text *t, const berlu_smooth *f, const knot *k, int slope)
{
    int n = f->piece_degree;
    double width = k->to - k->from;
    text_string(t, "        b = [");
    for (int i = 0; i <= n - slope; i++) {
        text_string(t, i ? ", " : "");
        add_number(t, slope ? n * (k->control[i + 1] - k->control[i]) / width : k->control[i]);
    }
    text_string(t, "]\n        t = (x - "), add_number(t, k->from), text_string(t, ") / "), add_number(t, width);
    text_string(t, "\n        while len(b) > 1:  # de Casteljau\n"
                   "            b = [(1.0 - t) * p + t * q for p, q in zip(b, b[1:])]\n"
                   "        return b[0]\n");
}

static void python_write(text *t, const berlu_smooth *f, const char *prefix, const char *name)
{
    text_add(t, "# %s: %zu kink%s, smoothed with degree %d. Made by `berlu smooth`.\nimport math\n", name, f->count,
             f->count == 1 ? "" : "s", f->degree);
    for (int slope = 0; slope < 2; slope++) {
        text_add(t, "\n\ndef %s%s%s(x):\n    if math.isnan(x):\n        return x\n", prefix, name,
                 slope ? "_slope" : "");
        for (size_t i = 0; i < f->count; i++) {
            const knot *k = &f->knots[i];
            text_string(t, "    if x < "), add_number(t, k->from), text_string(t, ":\n        ");
            python_given(t, f, i, slope);
            text_string(t, "    if x <= "), add_number(t, k->to), text_string(t, ":\n");
            (!f->curved && k->centred ? python_bump : python_control)(t, f, k, slope);
        }
        text_string(t, "    ");
        python_given(t, f, f->count, slope);
    }
}

/* ---- LaTeX ----------------------------------------------------------------------------------- */

/* 0.25, 1.5 \cdot 10^{-5} */
static void latex_number(text *t, double value)
{
    char digits[64];
    snprintf(digits, sizeof digits, "%.10g", value);
    char *e = strchr(digits, 'e');
    if (!e) {
        text_string(t, digits);
        return;
    }
    *e = 0;
    if (strcmp(digits, "1") != 0)
        text_add(t, "%s \\cdot ", digits);
    text_add(t, "10^{%d}", atoi(e + 1));
}

/* The variable of a piece: x, or (x - centre). */
static void latex_variable(text *t, double centre)
{
    if (centre == 0) {
        text_string(t, "x");
        return;
    }
    text_add(t, "(x %c ", centre < 0 ? '+' : '-');
    latex_number(t, fabs(centre));
    text_string(t, ")");
}

static void latex_polynomial(text *t, const berlu_piece *p)
{
    double centre = p->bounded ? p->from / 2 + p->to / 2 : 0;
    int any = 0;
    for (int j = p->degree; j >= 0; j--) {
        double a = p->monomial[j];
        if (a == 0)
            continue;
        text_string(t, a < 0 ? any ? " - " : "-" : any ? " + " : "");
        if (j == 0 || fabs(a) != 1)
            latex_number(t, fabs(a)), text_string(t, j ? "\\," : "");
        if (j > 0)
            latex_variable(t, centre);
        if (j > 1)
            text_add(t, "^{%d}", j);
        any = 1;
    }
    if (!p->polynomial) {
        text_string(t, any ? " + " : "");
        latex_number(t, p->scale);
        text_string(t, "\\,(e^{"), latex_number(t, p->rate), text_string(t, "\\,x} - 1)");
    } else if (!any) {
        text_string(t, "0");
    }
}

static void latex_write(text *t, const berlu_smooth *f, const char *name)
{
    size_t count = berlu_smooth_piece_count(f);
    text_string(t, "\\mathrm{");
    for (const char *c = name; *c; c++)
        text_add(t, *c == '_' ? "\\_" : "%c", *c);
    text_string(t, "}(x) = ");
    text_string(t, count > 1 ? "\\begin{cases}\n" : "");
    for (size_t i = 0; i < count; i++) {
        berlu_piece p;
        berlu_smooth_piece(f, i, &p);
        text_string(t, count > 1 ? "  " : "");
        latex_polynomial(t, &p);
        if (count > 1) {
            text_string(t, " & ");
            if (isfinite(p.from))
                latex_number(t, p.from), text_string(t, p.transition ? " \\le " : " < ");
            text_string(t, "x");
            if (isfinite(p.to))
                text_string(t, p.transition ? " \\le " : " < "), latex_number(t, p.to);
            text_string(t, i + 1 < count ? " \\\\" : "");
        }
        text_string(t, "\n");
    }
    text_string(t, count > 1 ? "\\end{cases}\n" : "");
}

/* ---- YAML and spec --------------------------------------------------------------------------- */

static void list_write(text *t, const berlu_smooth *f, const char *what, const char *open, const char *close)
{
    char digits[NUMBER_TEXT];
    int slopes = strcmp(what, "slopes") == 0;
    text_string(t, open);
    if (slopes)
        text_string(t, number_text(digits, f->count ? f->knots[0].left : f->first_slope));
    for (size_t i = 0; i < f->count; i++) {
        const knot *k = &f->knots[i];
        double value = slopes                       ? k->right
                       : strcmp(what, "kinks") == 0 ? k->x
                       : strcmp(what, "eps") == 0   ? k->eps_left
                                                    : k->eps_right;
        text_add(t, "%s%s", i || slopes ? ", " : "", number_text(digits, value));
    }
    text_string(t, close);
}

static berlu_status own_write(text *t, const berlu_smooth *f, const char *name, int yaml)
{
    char x[NUMBER_TEXT], y[NUMBER_TEXT];
    int uneven = 0;
    if (f->curved)
        return berlu_fail(BERLU_ERR_UNSUPPORTED,
                          "%s is made of curves, which this text has no words for; --emit c, python, latex and json do",
                          name);
    const char *is = yaml ? ": " : "=", *end = yaml ? "\n" : "; ", *open = yaml ? "[" : "", *close = yaml ? "]" : "";
    if (yaml)
        text_add(t, "name: %s\n", name);
    else
        text_string(t, "smooth(");
    for (size_t i = 0; i < f->count; i++)
        uneven |= f->knots[i].eps_right != f->knots[i].eps_left;
    const char *const lists[] = {"kinks", "slopes", "eps", "eps_right"};
    for (size_t i = 0; i < COUNT(lists); i++) {
        if ((f->count == 0 && i != 1) || (i == 3 && !uneven))
            continue;
        text_add(t, "%s%s", lists[i], is);
        list_write(t, f, lists[i], open, close);
        text_string(t, end);
    }
    number_text(x, f->at_x), number_text(y, f->at_y);
    text_add(t, yaml ? "at: [%s, %s]\n" : "at=%s=%s; ", x, y);
    if (smooth_is_collinear(f))
        text_add(t, "form%scollinear%s", is, end);
    text_add(t, "degree%s%d%s\n", is, f->degree, yaml ? "" : ")");
    if (yaml && t->length && t->data[t->length - 1] == '\n' && t->data[t->length - 2] == '\n')
        t->length--;
    return BERLU_OK;
}

static int is_word(const char *const *words, const char *name, size_t length)
{
    while (*words && (strlen(*words) != length || strncmp(*words, name, length) != 0))
        words++;
    return *words != NULL;
}

/* A function of <math.h>, also in float and long double: the program would lose it, or not
 * compile. */
static int is_c_function(const char *name)
{
    static const char *const functions[] = {
        "acos",      "acosh",     "asin",  "asinh",  "atan",   "atan2", "atanh",      "cbrt",   "ceil",    "copysign",
        "cos",       "cosh",      "erf",   "erfc",   "exp",    "exp2",  "expm1",      "fabs",   "fdim",    "floor",
        "fma",       "fmax",      "fmin",  "fmod",   "frexp",  "hypot", "ilogb",      "ldexp",  "lgamma",  "llrint",
        "llround",   "log",       "log10", "log1p",  "log2",   "logb",  "lrint",      "lround", "modf",    "nan",
        "nearbyint", "nextafter", "pow",   "remquo", "rint",   "round", "nexttoward", "scalbn", "scalbln", "sin",
        "sinh",      "sqrt",      "tan",   "tanh",   "tgamma", "trunc", "remainder",  NULL};
    size_t length = strlen(name);
    return is_word(functions, name, length) || (strchr("fl", name[length - 1]) && is_word(functions, name, length - 1));
}

/* Words of the language, and what its functions call: C99 and <math.h>, Python 3 and `math`. */
static int is_taken(smooth_emit kind, const char *prefix, const char *name)
{
    static const char *const c[] = {
        "auto",     "break",    "case",  "char",     "const",  "continue", "default",  "do",     "double", "else",
        "enum",     "extern",   "float", "for",      "goto",   "if",       "inline",   "int",    "long",   "register",
        "restrict", "return",   "short", "signed",   "sizeof", "static",   "struct",   "switch", "main",   "typedef",
        "union",    "unsigned", "void",  "volatile", "while",  "NAN",      "INFINITY", NULL};
    static const char *const python[] = {
        "False",  "None",     "True",   "abs",    "and",  "as",     "assert", "async",   "await",    "break",
        "class",  "continue", "def",    "del",    "elif", "else",   "except", "finally", "for",      "from",
        "global", "if",       "import", "in",     "is",   "lambda", "len",    "math",    "nonlocal", "not",
        "or",     "pass",     "raise",  "return", "try",  "while",  "with",   "yield",   "zip",      NULL};
    if (*prefix || (kind != EMIT_PYTHON && kind != EMIT_C && kind != EMIT_C_F32))
        return 0;
    return kind == EMIT_PYTHON ? is_word(python, name, strlen(name))
                               : is_word(c, name, strlen(name)) || is_c_function(name);
}

berlu_status smooth_emit_print(const berlu_smooth *f, smooth_emit kind, const char *prefix, const char *name)
{
    text t = {0};
    char *source = NULL;
    berlu_status status = BERLU_OK;
    if (!name_is_identifier(name))
        return berlu_fail(BERLU_ERR_ARG, "'%.80s' is no name: a letter, then letters, digits and '_'", name);
    if (is_taken(kind, prefix, name))
        return berlu_fail(BERLU_ERR_ARG, "option --name: %s is a word that the code itself needs; choose another",
                          name);
    if (kind == EMIT_C || kind == EMIT_C_F32)
        TRY_DONE(smooth_source_as(f, prefix, name, kind == EMIT_C_F32, &source));
    else if (kind == EMIT_PYTHON)
        python_write(&t, f, prefix, name);
    else if (kind == EMIT_LATEX)
        latex_write(&t, f, name);
    else
        TRY_DONE(own_write(&t, f, name, kind == EMIT_YAML));
    if (source)
        fputs(source, stdout);
    else {
        TRY_DONE(text_status(&t));
        fwrite(t.data, 1, t.length, stdout);
    }
done:
    text_free(&t);
    free(source);
    return status;
}
