/* paper.c - see paper.h. SPDX-License-Identifier: MIT */
#include "report/paper.h"

#include <math.h>
#include <string.h>

#include "base/status.h"

static const paper_claim claims[] = {
#define CLAIM(id, kind, claim, paper, rule) {#id, CLAIM_##kind, claim, paper, rule},
#include "report/claims.inc"
#undef CLAIM
};

static const paper_row rows[] = {
#define ROW(data, model, act, mean, deviation) {data, model, act, mean, deviation},
#include "report/paper.inc"
};

static const paper_cost costs[] = {
#define COST(act, forward, backward, memory) {act, forward, backward, memory},
#include "report/paper.inc"
};

const paper_claim *paper_claim_at(size_t index)
{
    return index < COUNT(claims) ? &claims[index] : NULL;
}

const paper_row *paper_row_at(size_t index)
{
    return index < COUNT(rows) ? &rows[index] : NULL;
}

const paper_cost *paper_cost_at(size_t index)
{
    return index < COUNT(costs) ? &costs[index] : NULL;
}

double paper_mean(const char *data, const char *model, const char *act)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].data, data) == 0 && strcmp(rows[i].model, model) == 0 && strcmp(rows[i].act, act) == 0)
            return rows[i].mean;
    return NAN;
}

double paper_difference(const char *data, const char *model, const char *a, const char *b)
{
    return paper_mean(data, model, a) - paper_mean(data, model, b);
}
