/* claims_json.c - claims, contrasts and hypotheses as JSON, for programs.
 * SPDX-License-Identifier: MIT
 *
 * Reals are the shortest text that reads back to the same bits; unknown values are null. */
#include <math.h>

#include "report/claims.h"

#include <berlu/status.h>

static void string_add(text *out, const char *key, const char *value)
{
    text_add(out, ", \"%s\": \"", key);
    for (; *value; value++)
        if (*value == '"' || *value == '\\')
            text_add(out, "\\%c", *value);
        else if ((unsigned char)*value < 0x20)
            text_add(out, "\\u%04x", (unsigned char)*value);
        else
            text_bytes(out, value, 1);
    text_string(out, "\"");
}

static void real_add(text *out, const char *key, double value)
{
    char number[NUMBER_TEXT];
    text_add(out, ", \"%s\": %s", key, isfinite(value) ? number_text(number, value) : "null");
}

static void claim_add(text *out, const claim_result *c)
{
    text_add(out, "{\"id\": \"%s\"", c->of->id);
    string_add(out, "claim", c->of->claim);
    string_add(out, "paper", c->of->paper);
    string_add(out, "direction", c->direction);
    string_add(out, "size", c->size);
    string_add(out, "rule", c->of->rule);
    string_add(out, "figures", c->figures);
    text_add(out, ", \"n\": %zu", c->n);
    string_add(out, "studies", c->studies);
    text_add(out, ", \"partial\": %s", c->partial ? "true" : "false");
    string_add(out, "why", c->why);
    text_string(out, "}");
}

static void contrast_add(text *out, const judged *j)
{
    text_add(out, "{\"n\": %zu", j->n);
    string_add(out, "study", j->study->of->name);
    string_add(out, "name", j->of->name);
    string_add(out, "a", j->a->label);
    string_add(out, "b", j->b->label);
    string_add(out, "metric", j->study->metric);
    real_add(out, "mean_a", j->stats.mean_a);
    real_add(out, "sd_a", j->stats.sd_a);
    real_add(out, "mean_b", j->stats.mean_b);
    real_add(out, "sd_b", j->stats.sd_b);
    real_add(out, "difference", j->stats.judged.value);
    real_add(out, "low", j->stats.low);
    real_add(out, "high", j->stats.high);
    real_add(out, "p", j->stats.p);
    real_add(out, "p_holm", j->p_holm);
    string_add(out, "test", stats_test_name(j->stats.test));
    real_add(out, "p_flip", j->stats.p_flip);
    real_add(out, "paired_low", j->stats.paired_low);
    real_add(out, "paired_high", j->stats.paired_high);
    real_add(out, "r", j->stats.r);
    real_add(out, "images_low", j->images.low);
    real_add(out, "images_high", j->images.high);
    real_add(out, "detectable", j->stats.detectable);
    string_add(out, "registered", j->of->current ? j->of->registered : "earlier file");
    text_add(out, ", \"failed_a\": %zu, \"failed_b\": %zu", j->a->failed, j->b->failed);
    string_add(out, "direction", verdict_direction_name(j->verdict.direction));
    string_add(out, "size", verdict_size_name(j->verdict.size));
    text_add(out, ", \"partial\": %s", j->verdict.partial ? "true" : "false");
    string_add(out, "why", j->verdict.why);
    string_add(out, "expect", j->of->expect);
    real_add(out, "limit", j->of->expected.what ? j->of->expected.limit : NAN);
    string_add(out, "minus_a", j->minus_a ? j->minus_a->label : "");
    string_add(out, "minus_b", j->minus_b ? j->minus_b->label : "");
    real_add(out, "p_held", j->p_held);
    real_add(out, "p_not_held", j->p_not_held);
    text_string(out, "}");
}

static void hypothesis_add(text *out, const hypothesis *h)
{
    text_add(out, "{\"predictions\": %zu, \"held\": %zu", h->predictions, h->held);
    string_add(out, "study", h->study->of->name);
    string_add(out, "hypothesis", h->study->hypothesis);
    string_add(out, "direction", verdict_direction_name(h->verdict.direction));
    text_add(out, ", \"partial\": %s", h->verdict.partial ? "true" : "false");
    string_add(out, "why", h->verdict.why);
    string_add(out, "registered", h->study->of->registered);
    text_string(out, "}");
}

berlu_status claims_json(text *out, const claim_result claims[CLAIMS], const judgements *all, const char *first_line)
{
    text_add(out, "{\"berlu\": \"%s\"", berlu_version());
    string_add(out, "first", first_line);
    text_string(out, ",\n\"claims\": [\n");
    for (size_t i = 0; i < CLAIMS; i++) {
        claim_add(out, &claims[i]);
        text_string(out, i + 1 < CLAIMS ? ",\n" : "\n],\n\"contrasts\": [\n");
    }
    for (size_t i = 0; i < all->count; i++) {
        contrast_add(out, &all->items[i]);
        text_string(out, i + 1 < all->count ? ",\n" : "\n");
    }
    text_string(out, "],\n\"hypotheses\": [\n");
    for (size_t i = 0; i < all->hypothesis_count; i++) {
        hypothesis_add(out, &all->hypotheses[i]);
        text_string(out, i + 1 < all->hypothesis_count ? ",\n" : "\n");
    }
    text_string(out, "]}\n");
    return text_status(out);
}
