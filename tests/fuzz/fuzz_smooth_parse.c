/* fuzz_smooth_parse.c - any bytes as the text of a smoothed function. SPDX-License-Identifier: MIT
 *
 * What was accepted must answer every question: values where its joins are, pieces that cover the
 * line, source. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <berlu/smooth.h>

static void need(int truth)
{
    if (!truth)
        abort();
}

static void check(const berlu_smooth *f)
{
    double end = -INFINITY;
    for (size_t i = 0; i < berlu_smooth_piece_count(f) && i < 64; i++) {
        berlu_piece p;
        need(berlu_smooth_piece(f, i, &p) == BERLU_OK && p.from == end && p.from < p.to);
        end = p.to;
        need(!isnan(berlu_smooth_value(f, p.from)) && !isnan(berlu_smooth_slope(f, p.from)));
    }
    need(!isnan(berlu_smooth_lipschitz(f)) && !isnan(berlu_smooth_max_gap(f)));
    need(berlu_smooth_contact_order(f) >= 0);
    double x;
    if (berlu_smooth_inverse(f, 0.5, &x) == BERLU_OK)
        need(!isnan(x));
    char *source;
    need(berlu_smooth_source(f, "f", &source) == BERLU_OK);
    free(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, bytes, size);
    text[size] = '\0';
    berlu_smooth *f;
    if (berlu_smooth_parse(&f, text) == BERLU_OK)
        check(f);
    else
        need(f == NULL && *berlu_last_error());
    berlu_smooth_free(f);
    free(text);
    return 0;
}
