/* fuzz_csv.c - any bytes as a table of metrics. SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    csv_table table;
    if (csv_parse(&table, (const char *)bytes, size, "fuzz") != BERLU_OK)
        return 0;
    size_t length = 0; /* every cell is read to its end */
    for (size_t row = 0; row < table.rows; row++)
        for (int column = 0; column < (int)table.columns; column++) {
            length += strlen(csv_cell(&table, row, column));
            (void)csv_number(&table, row, column);
        }
    csv_free(&table);
    return length > size ? -1 : 0; /* cells are parts of the bytes */
}
