/* cmd_analyze_card.c - `berlu analyze card`: one activation on one page.
 * SPDX-License-Identifier: MIT
 *
 * All of src/analyze, and the speed of the kernels on this machine relative to a copy of the same
 * memory. */
#include <math.h>
#include <stdio.h>

#include "act_args.h"
#include "analyze/card.h"
#include "base/arena.h"
#include "bench/bench_act.h"
#include "commands.h"
#include "io/act_text.h"
#include "output.h"

static const option_row rows[] = {
    {"act", OPTION_STRING, "ACT", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "NAME[:key=value,...], smooth(...) or a YAML file"},
    {"svg", OPTION_STRING, "FILE", .help = "function, slope, depth and linearity in one figure"},
    {"n", OPTION_INT, "N", .standard = "256Ki", .least = 1, .most = 268435456, .help = "elements of the timed arrays"},
    {"speed", OPTION_FLAG, .standard = "true", .help = "time the kernels beside a copy"},
    {0}};

enum { FORWARD, BACKWARD, OPS };

static berlu_status speed_measure(const options *o, bench_row out[OPS])
{
    for (int op = 0; op < OPS; op++)
        out[op] = (bench_row){.act = options_string(o, "act"),
                              .op = op == FORWARD ? BERLU_ACT_FORWARD : BERLU_ACT_BACKWARD,
                              .isa = act_isa_of(options_isa(o)),
                              .n = (size_t)options_int(o, "n"),
                              .threads = options_threads(o) ? options_threads(o) : 1,
                              .range = 3,
                              .ratio = NAN};
    return options_flag(o, "speed") ? bench_act_run(out, OPS, 0.3, memory_free()) : BERLU_OK;
}

static void depth_words(const char *what, const depth *d)
{
    if (d->edge)
        printf("  %-20s edge of chaos at sw2 = %.8g, sb2 = %.8g; 1 - c falls as %.6g / l%s\n", what, d->sw2, d->sb2,
               d->coefficient, d->exponent == 2 ? "^2" : "");
    else
        printf("  %-20s no edge of chaos (chi = %.8g at sw2 = %.8g)\n", what, d->chi, d->sw2);
}

static void card_print(const berlu_act *act, const card *c, const bench_row *speed)
{
    printf("%s\n  %s\n\n", berlu_act_spec(act), berlu_act_about(act));
    printf("  %-20s %.10g (found %.10g at x = %.6g)\n", "Lipschitz constant", c->lipschitz.constant, c->lipschitz.found,
           c->lipschitz.found_at);
    printf("  %-20s %.8g (kinks not counted)\n", "largest curvature", c->lipschitz.curvature);
    printf("  %-20s f(0) = %.8g, smallest value in [-8, 8] %.8g\n", "values", c->zero, c->least);
    depth_words("depth", &c->depth);
    if (c->has_centred)
        depth_words("depth of f - f(0)", &c->centred);
    printf("  %-20s", "1 - R^2 at scale");
    for (int i = 0; i < CARD_SCALES; i++)
        printf(" %.4g: %.4g%s", c->linearity[i].scale, c->linearity[i].nonlinear, i + 1 < CARD_SCALES ? "," : "\n");
    if (isinf(c->ulp))
        printf("  %-20s 4 u (|y| + S c) + u (12 J + S) eps, slope 12 u S + 2 u J c / eps, where u = 2^-24, S is the\n"
               "  %-20s largest |slope|, c the distance to the nearest kink, J the jump of the slope there\n",
               "error bound, f32", "");
    else
        printf("  %-20s %g ULP, slope %g ULP\n", "error bound, f32", c->ulp, c->slope_ulp);
    printf("  %-20s %.2g, slope %.2g (absolute, largest of %d floats in [-8, 8])\n", "error measured", c->error,
           c->slope_error, CARD_FLOATS);
    printf("  %-20s %s\n", "slope from output", berlu_act_has_from_output(act) ? "yes" : "no");
    if (!isnan(speed[FORWARD].ratio))
        printf("  %-20s forward %.2f x %s, backward %.2f x %s (f32, %zu elements, %d thread%s)\n", "time",
               speed[FORWARD].ratio, speed[FORWARD].yardstick, speed[BACKWARD].ratio, speed[BACKWARD].yardstick,
               speed[FORWARD].n, speed[FORWARD].threads, speed[FORWARD].threads == 1 ? "" : "s");
}

static void depth_json(output *out, const char *key, const depth *d)
{
    output_object(out, key);
    output_string(out, "edge", d->edge ? "exists" : "none");
    output_real(out, "sw2", d->sw2);
    output_real(out, "sb2", d->sb2);
    output_real(out, "beta_q", d->beta_q);
    output_int(out, "exponent", d->exponent);
    output_real(out, "chi", d->chi);
    output_end(out);
}

static berlu_status card_json(const berlu_act *act, const card *c, const bench_row *speed)
{
    output out;
    output_start(&out);
    output_array(&out, "rows");
    output_object(&out, NULL);
    output_string(&out, "act", berlu_act_spec(act));
    output_string(&out, "about", berlu_act_about(act));
    output_real(&out, "lipschitz", c->lipschitz.constant);
    output_real(&out, "found", c->lipschitz.found);
    output_real(&out, "found_at", c->lipschitz.found_at);
    output_real(&out, "max_curvature", c->lipschitz.curvature);
    output_real(&out, "f0", c->zero);
    output_real(&out, "least", c->least);
    depth_json(&out, "depth", &c->depth);
    if (c->has_centred)
        depth_json(&out, "depth_centred", &c->centred);
    output_array(&out, "linearity");
    for (int i = 0; i < CARD_SCALES; i++) {
        output_object(&out, NULL);
        output_real(&out, "scale", c->linearity[i].scale);
        output_real(&out, "nonlinear", c->linearity[i].nonlinear);
        output_end(&out);
    }
    output_end(&out);
    output_real(&out, "ulp", c->ulp);
    output_real(&out, "slope_ulp", c->slope_ulp);
    output_real(&out, "error", c->error);
    output_real(&out, "slope_error", c->slope_error);
    output_bool(&out, "from_output", berlu_act_has_from_output(act));
    for (int op = 0; op < OPS && !isnan(speed[op].ratio); op++)
        output_real(&out, op == FORWARD ? "forward_ratio" : "backward_ratio", speed[op].ratio);
    output_end(&out);
    output_end(&out);
    return output_print(&out);
}

static berlu_status analyze_card(options *o)
{
    berlu_act *act = NULL;
    card c;
    bench_row speed[OPS];
    berlu_status status;
    TRY_DONE(act_from_text(&act, options_string(o, "act")));
    TRY_DONE(card_make(&c, act, options_threads(o)));
    TRY_DONE(speed_measure(o, speed));
    if (options_given(o, "svg"))
        TRY_DONE(card_plot(&c, act, options_string(o, "act"), options_string(o, "svg")));
    if (options_json(o))
        status = card_json(act, &c, speed);
    else
        card_print(act, &c, speed);
done:
    berlu_act_free(act);
    return status;
}

const command cmd_analyze_card = {"analyze card",
                                  "one activation on one page: constants, depth, linearity, accuracy, speed",
                                  "Everything that can be said about an activation without training a network.\n\n"
                                  "  berlu analyze card berlu:eps=0.1 --svg card.svg\n"
                                  "  berlu analyze card \"smooth(kinks=-1,1; slopes=0.1,1,0.1; eps=0.5)\" --no-speed",
                                  rows, analyze_card};
