/* verdict.c - the rules from contrasts to verdicts. SPDX-License-Identifier: MIT
 *
 * verdict_of_contrast() judges one comparison, verdict_of_claim() all rivals of a claim: one that
 * is worse makes the claim worse, "better" needs every rival. */
#include "report/verdict.h"

#include <assert.h>
#include <math.h>

#include "base/status.h"

const char *verdict_direction_name(verdict_direction d)
{
    static const char *const names[] = {"not tested", "better", "worse",   "no difference",
                                        "undecided",  "held",   "not held"};
    assert((size_t)d < COUNT(names));
    return names[d];
}

const char *verdict_size_name(verdict_size s)
{
    static const char *const names[] = {"", "inside", "outside"};
    assert((size_t)s < COUNT(names));
    return names[s];
}

static verdict_direction direction_of(const verdict_input *in)
{
    const stats_contrast *c = in->contrast;
    if (in->expected.what)
        return in->p_held < 0.05 ? VERDICT_HELD : in->p_not_held < 0.05 ? VERDICT_NOT_HELD : VERDICT_UNDECIDED;
    if (in->p_holm < 0.05)
        return c->judged.value > 0 ? VERDICT_BETTER : VERDICT_WORSE;
    if (c->low90 > -in->margin && c->high90 < in->margin)
        return VERDICT_NO_DIFFERENCE;
    return VERDICT_UNDECIDED;
}

verdict verdict_of_contrast(const verdict_input *in)
{
    verdict v = {.why = ""};
    if (!in->contrast || !in->n)
        return v;
    int whole = in->n == in->registered && !in->missing;
    v.partial = !whole || in->differs;
    v.why = in->n > in->registered ? "more seeds than registered"
            : !whole               ? "fewer seeds than registered"
            : in->differs          ? "not the paper's models, epochs or sizes"
                                   : "";
    /* Seeds added or lost after a look at the results decide nothing; the difference is still
     * shown. */
    v.direction = whole ? direction_of(in) : VERDICT_UNDECIDED;
    if (!isnan(in->paper) && !isnan(in->contrast->low))
        v.size = in->contrast->low <= in->paper && in->paper <= in->contrast->high ? VERDICT_INSIDE : VERDICT_OUTSIDE;
    return v;
}

verdict verdict_of_claim(const verdict *rivals, size_t count)
{
    size_t seen[VERDICT_DIRECTIONS] = {0}, inside = 0, outside = 0;
    verdict v = {.why = ""};
    for (size_t i = 0; i < count; i++) {
        seen[rivals[i].direction]++;
        inside += rivals[i].size == VERDICT_INSIDE;
        outside += rivals[i].size == VERDICT_OUTSIDE;
        if (rivals[i].partial && !v.partial) {
            v.partial = 1;
            v.why = rivals[i].why;
        }
    }
    size_t tested = count - seen[VERDICT_NOT_TESTED];
    if (!tested)
        return (verdict){.why = ""};
    if (tested < count && !v.partial) {
        v.partial = 1;
        v.why = "not every rival was run";
    }
    v.direction = seen[VERDICT_WORSE]                                       ? VERDICT_WORSE
                  : seen[VERDICT_BETTER] == count                           ? VERDICT_BETTER
                  : seen[VERDICT_UNDECIDED] || !seen[VERDICT_NO_DIFFERENCE] ? VERDICT_UNDECIDED
                                                                            : VERDICT_NO_DIFFERENCE;
    v.size = outside ? VERDICT_OUTSIDE : inside ? VERDICT_INSIDE : VERDICT_NO_SIZE;
    return v;
}

verdict verdict_of_hypothesis(const verdict *predictions, size_t count)
{
    size_t seen[VERDICT_DIRECTIONS] = {0};
    verdict v = {.why = ""};
    for (size_t i = 0; i < count; i++) {
        seen[predictions[i].direction]++;
        if (predictions[i].partial && !v.partial) {
            v.partial = 1;
            v.why = predictions[i].why;
        }
    }
    if (!count || seen[VERDICT_NOT_TESTED] == count)
        return (verdict){.why = ""};
    if (seen[VERDICT_NOT_TESTED] && !v.partial) {
        v.partial = 1;
        v.why = "a prediction has no runs";
    }
    v.direction = seen[VERDICT_NOT_HELD]        ? VERDICT_NOT_HELD
                  : seen[VERDICT_HELD] == count ? VERDICT_HELD
                                                : VERDICT_UNDECIDED;
    return v;
}
