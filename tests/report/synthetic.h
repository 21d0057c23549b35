/* synthetic.h - a store in memory with numbers that a test knows. SPDX-License-Identifier: MIT
 *
 * One study "made" of vit_tiny_cifar on CIFAR-10 over 100 epochs: cells by activation, a seed per
 * run, accuracy from a formula, metrics.csv with all columns of `sites` sites. Everything belongs
 * to the arena of the contents. */
#ifndef TESTS_REPORT_SYNTHETIC_H
#define TESTS_REPORT_SYNTHETIC_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/text.h"
#include "study/store.h"
#include "train/metrics.h"

typedef struct synthetic_cell {
    const char *act;
    double mean;   /* of the accuracy; runs lie around it by +-spread */
    size_t failed; /* the last so many runs failed */
} synthetic_cell;

typedef struct synthetic {
    const synthetic_cell *cells;
    size_t cell_count, seeds, sites, epochs;
    double spread;
    int start;        /* metrics.csv begins before the first update, at epoch 0 */
    const char *yaml; /* NULL: a plain one */
} synthetic;

/* Deviations whose mean is 0, so that a cell's mean is the number given. */
static inline double synthetic_deviation(const synthetic *s, size_t seed, size_t done)
{
    return s->spread * ((double)seed - (double)(done - 1) / 2) / (double)(done > 1 ? done - 1 : 1);
}

static inline void synthetic_metrics(store_result *r, const synthetic *s, arena *memory)
{
    text csv = {0};
    char names[64][40];
    const char *site_names[64];
    double values[64 * SITE_METRICS];
    for (size_t i = 0; i < s->sites; i++) {
        snprintf(names[i], sizeof names[i], "blocks.%zu.mlp.act", i);
        site_names[i] = names[i];
    }
    metrics_form form = {.sites = site_names, .count = s->sites};
    metrics_names(&csv, &form);
    for (size_t e = 0; e < s->epochs; e++) {
        metrics_row row = {.epoch = e + !s->start,
                           .step = 10 * (e + !s->start),
                           .lr = 1e-3,
                           .train_loss = 2.0 / (double)(e + 1),
                           .test_top1 = r->top1 * (double)(e + 1) / (double)s->epochs};
        for (size_t i = 0; i < s->sites * SITE_METRICS; i++)
            values[i] = 0.01 * (double)(i % 7) + 0.001 * (double)e;
        metrics_line(&csv, &form, &row, values);
    }
    uLongf packed = compressBound(csv.length);
    unsigned char *bytes = arena_alloc(memory, packed, 1);
    if (!bytes || compress2(bytes, &packed, (const Bytef *)csv.data, csv.length, 9) != Z_OK)
        abort();
    r->metrics = bytes;
    r->metrics_packed = packed;
    r->metrics_bytes = csv.length;
    text_free(&csv);
}

static inline void synthetic_run(store_result *r, const synthetic *s, const synthetic_cell *c, size_t seed, arena *m)
{
    size_t done = s->seeds - c->failed;
    int failed = seed >= done;
    *r = (store_result){
        .key = arena_printf(m, "%s%zu", c->act, seed),
        .state = failed ? "failed" : "done",
        .error = failed ? "berlu: train: the loss is not finite <&> \x01\xff" : "",
        .seed = (int64_t)seed,
        .top1 = failed ? NAN : c->mean + synthetic_deviation(s, seed, done),
        .top5 = failed ? NAN : 99,
        .loss = failed ? NAN : 1,
        .best_top1 = failed ? NAN : c->mean + 1,
        .train_loss = 0.1,
        .images_per_s = 1000,
        .seconds = 60,
        .device = "a device",
        .version = "0.1.0",
        .commit = "abc",
        .host = "",
        .began = "2026-01-02T00:00:00Z",
        .data = "0123",
        .settings = arena_printf(m,
                                 "{\"model\":\"vit_tiny_cifar\",\"data\":\"cifar10\",\"epochs\":100,\"classes\":10,"
                                 "\"act\":[\"%s\"]}",
                                 c->act),
    };
    r->epochs = ARENA_ARRAY(m, store_epoch, s->epochs + 1);
    for (size_t e = 0; e < s->epochs && !failed; e++)
        r->epochs[r->epoch_count++] =
            (store_epoch){(double)(e + 1), 2.0 / (double)(e + 1), 1, r->top1 * (double)(e + 1) / (double)s->epochs};
    if (!failed && s->sites)
        synthetic_metrics(r, s, m);
}

/* The study with a contrast of the first cell against each other one; the paper's difference is
 * 1. */
static inline void synthetic_make(store_contents *out, const synthetic *s)
{
    arena *m = &out->memory;
    *out = (store_contents){.count = 1};
    out->studies = ARENA_ARRAY(m, store_study, 1);
    store_study *t = out->studies;
    *t = (store_study){.name = "made",
                       .yaml = s->yaml ? s->yaml : "study: made\n",
                       .sha256 = "00ff",
                       .registered = "2026-01-01T00:00:00Z",
                       .first_run = "2026-01-02T00:00:00Z"};
    t->cells = ARENA_ARRAY(m, store_cell, s->cell_count);
    t->contrasts = ARENA_ARRAY(m, store_contrast, s->cell_count);
    for (size_t c = 0; c < s->cell_count; c++) {
        store_cell *cell = &t->cells[t->cell_count++];
        *cell =
            (store_cell){.label = s->cells[c].act,
                         .runs = ARENA_ARRAY(m, store_result, s->seeds + 1),
                         .settings = arena_printf(m, "model=vit_tiny_cifar\ndata=cifar10\nact=%s\n", s->cells[c].act)};
        for (size_t seed = 0; seed < s->seeds; seed++)
            synthetic_run(&cell->runs[cell->count++], s, &s->cells[c], seed, m);
        if (c)
            t->contrasts[t->contrast_count++] = (store_contrast){.name = arena_printf(m, "against %s", s->cells[c].act),
                                                                 .expect = "",
                                                                 .a = 0,
                                                                 .b = c,
                                                                 .paper = 1,
                                                                 .current = 1,
                                                                 .registered = "2026-01-01T00:00:00Z"};
    }
}

#endif
