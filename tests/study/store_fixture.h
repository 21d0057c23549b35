/* store_fixture.h - a study of two finished runs, its folders written by hand, for tests of stores.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_STUDY_STORE_FIXTURE_H
#define TESTS_STUDY_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "study/store_internal.h"

static const char yaml[] = "study: t\n"
                           "base: {model: linear, image_size: 8, data: synthetic, synthetic_images: 32, batch: 8}\n"
                           "axes: {lr: [1e-3, 1e-2]}\nseeds: 2\n"
                           "contrasts: [{name: c, a: {lr: 1e-2}, b: {lr: 1e-3}, expect: less, than: 0.1,\n"
                           "  minus: {a: {lr: 1e-3}, b: {lr: 1e-2}}}]\n"
                           "equivalence: {source: o}\n";

enum { EPOCHS = 100, SITES = 12 };

typedef struct fixture {
    char folder[128];
    study s;
    study_entries runs;
} fixture;

static inline void file_put(const char *folder, const char *name, const char *words, size_t count)
{
    char path[STUDY_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(file_write_atomic(path, words, count), BERLU_OK);
}

/* A finished run of 100 epochs and twelve sites, as large as the paper's. */
static inline void folder_put(const char *path, unsigned salt)
{
    static const char json[] =
        "{\"berlu\": \"1\", \"commit\": \"c\", \"started\": \"t\", \"settings\": {\"lr\": 1, \"algorithms\": "
        "\"/somewhere\"},"
        " \"data\": {\"hash\": \"h\", \"kind\": \"synthetic\"}, \"engine\": {\"device\": \"cpu\"}}";
    static const char lock[] = "{\"state\": \"done\", \"attempt\": 1, \"step\": 9, \"host\": \"h\", \"process\": 1}\n";
    static const char *const columns[] = {"alpha", "left", "inside", "right", "dead",     "grad",
                                          "mean",  "var",  "scale",  "ratio", "nonlinear"};
    char correct[1250];
    text csv = {0};
    assert_int_equal(folder_make(path), BERLU_OK);
    text_string(&csv, "epoch,step,lr,train_loss,train_top1,test_loss,test_top1,test_top5,grad_norm");
    for (int site = 0; site < SITES; site++)
        for (size_t c = 0; c < COUNT(columns); c++)
            text_add(&csv, ",%s.blocks.%d.mlp.act", columns[c], site);
    uint64_t state = salt;
    for (int e = 1; e <= EPOCHS; e++) {
        text_add(&csv, "\n%d,%d,0.001", e, 10 * e);
        for (size_t c = 0; c < 6 + SITES * COUNT(columns); c++) {
            state = state * 6364136223846793005u + 1442695040888963407u; /* digits that do not compress */
            text_add(&csv, ",%.17g", (double)(state >> 11) / (double)((uint64_t)1 << 53));
        }
    }
    text_string(&csv, "\n");
    for (size_t i = 0; i < sizeof correct; i++)
        correct[i] = (char)(i * 37 + salt);
    file_put(path, "run.json", json, sizeof json - 1);
    file_put(path, "metrics.csv", csv.data, csv.length);
    file_put(path, "correct.bin", correct, sizeof correct);
    file_put(path, "lock", lock, sizeof lock - 1);
    text_free(&csv);
}

static inline int make(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "/tmp/berlu-store-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    assert_int_equal(study_parse(&f->s, yaml, sizeof yaml - 1, "t.yaml", NULL), BERLU_OK);
    assert_int_equal(study_entries_make(&f->runs, &f->s, f->folder), BERLU_OK);
    assert_int_equal(f->runs.count, 4);
    for (size_t i = 0; i < 2; i++) {
        folder_put(f->runs.items[i].path, (unsigned)i + 1);
        assert_int_equal(study_entry_look(&f->runs.items[i]), BERLU_OK);
        assert_int_equal(f->runs.items[i].state, STUDY_DONE);
    }
    *state = f;
    return 0;
}

static inline int drop(void **state)
{
    fixture *f = *state;
    assert_int_equal(folder_remove(f->folder), BERLU_OK);
    study_entries_free(&f->runs);
    study_free(&f->s);
    free(f);
    return 0;
}

/* Opens, writes everything, closes. */
static inline berlu_status store_fill(const fixture *f, const char *folder)
{
    text notes = {0};
    store *s = NULL;
    berlu_status status = store_open(&s, folder, &notes);
    if (status == BERLU_OK)
        status = store_put_study(s, &f->s, yaml, &f->runs);
    for (size_t i = 0; i < 2 && status == BERLU_OK; i++)
        status = store_put_run(s, &f->runs.items[i], NULL);
    if (status == BERLU_OK)
        status = store_event(s, f->runs.items[0].key, "done");
    berlu_status closed = store_close(s);
    text_free(&notes);
    return status == BERLU_OK ? closed : status;
}

static inline berlu_status contents_read(store_contents *out, const char *folder)
{
    char path[STUDY_PATH];
    store *s = NULL;
    *out = (store_contents){0};
    snprintf(path, sizeof path, "%s/study.db", folder);
    berlu_status status = store_open_read(&s, path);
    if (status == BERLU_OK)
        status = store_read(s, out);
    store_close(s);
    return status;
}

/* Two finished runs in the right cells, with all that folders hold. */
static inline void contents_check(const fixture *f, const char *folder)
{
    store_contents c;
    size_t done = 0;
    assert_int_equal(contents_read(&c, folder), BERLU_OK);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.studies[0].cell_count, 2);
    assert_int_equal(c.studies[0].contrast_count, 1);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < c.studies[0].cells[i].count; k++) {
            const store_result *r = &c.studies[0].cells[i].runs[k];
            if (strcmp(r->state, "done") != 0)
                continue;
            done++;
            assert_string_equal(r->key, f->runs.items[i].key);
            assert_true(r->top1 == f->runs.items[i].last.test_top1 && r->correct_bytes == 1250);
        }
    assert_int_equal(done, 2);
    store_contents_free(&c);
}

#endif
