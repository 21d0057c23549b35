/* fuzz_metrics.c - any bytes as the metrics.csv of a run that is analysed and compared.
 * SPDX-License-Identifier: MIT */
#include "analyze/regions.h"
#include "report/compare.h"
#include "scratch.h"

static const char record[] = "{\"berlu\": \"0.1.0\", \"settings\": {\"model\": \"vit_micro\", \"epochs\": 3}}";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[128];
    const char *runs[] = {scratch_folder()};
    scratch_write(scratch_path(path, "run.json"), record, sizeof record - 1);
    scratch_write(scratch_path(path, "metrics.csv"), bytes, size);
    regions r;
    if (regions_read(&r, runs[0]) == BERLU_OK) {
        double sum = 0; /* every value is read */
        for (size_t i = 0; i < r.epochs * r.sites; i++)
            sum += r.values[i].inside;
        (void)sum;
        regions_free(&r);
    }
    compare c;
    if (compare_read(&c, runs, 1) != BERLU_OK)
        return 0;
    static const char *const columns[] = {"test_top1", "train_loss", "epoch"};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        compare_curve curve;
        if (compare_column(&curve, &c, 0, columns[i]) == BERLU_OK && curve.count > c.run[0].metrics.rows)
            abort();
    }
    compare_free(&c);
    return 0;
}
