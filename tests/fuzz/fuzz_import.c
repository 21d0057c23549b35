/* fuzz_import.c - any bytes as results of another program: finite rows in order, or a reason.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "study/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    import_rows r;
    if (import_parse(&r, (const char *)bytes, size, "results.csv") == BERLU_OK) {
        for (size_t i = 0; i < r.count; i++) {
            const import_row *row = &r.items[i];
            import_cell cell = import_cell_of(&r, row->study, row->source, row->cell);
            if (!isfinite(row->mean) || row->n < 1 || row->seed < -1 || !(cell.n >= 1) || !isfinite(cell.mean))
                abort();
            if (i > 64) /* cells are found by going through all rows */
                break;
        }
    } else if (r.items || !*berlu_last_error()) {
        abort();
    }
    import_free(&r);
    return 0;
}
