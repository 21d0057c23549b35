/* paper.h - the paper's claims and figures as data. SPDX-License-Identifier: MIT
 *
 * The lists are claims.inc and paper.inc. Two of its own columns limit the precision of the others:
 * ELU and CELU with alpha = 1 are one function, and differ by up to 0.8 points (once by 16.4, a
 * misprint). */
#ifndef REPORT_PAPER_H
#define REPORT_PAPER_H

#include <stddef.h>

typedef enum claim_kind { CLAIM_OWN, CLAIM_COMPARISON } claim_kind;

typedef struct paper_claim {
    const char *id; /* "C7" */
    claim_kind kind;
    const char *claim, *paper, *rule;
} paper_claim;

typedef struct paper_row {
    const char *data, *model, *act;
    double mean, deviation; /* percent */
} paper_row;

typedef struct paper_cost {
    const char *act;
    double forward, backward; /* ms */
    double memory;            /* GB */
} paper_cost;

const paper_claim *paper_claim_at(size_t index); /* NULL after the last */
const paper_row *paper_row_at(size_t index);     /* NULL after the last */
const paper_cost *paper_cost_at(size_t index);

/* The paper's mean for `data` (cifar10, cifar100, imagenet), `model` (vit, deit, tnt, convnext,
 * average) and an activation's name, and its difference of two of them; NaN where it has none. */
double paper_mean(const char *data, const char *model, const char *act);
double paper_difference(const char *data, const char *model, const char *a, const char *b);

#endif
