/* fuzz_store.c - any bytes as a store: it is read or refused, and never believed.
 * SPDX-License-Identifier: MIT
 *
 * Everything that reads stores of others runs over it: contents, costs, imported results,
 * equivalence, origins, and merging it into an empty store, slim. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "study/cost.h"
#include "study/import.h"
#include "study/known.h"
#include "study/verify.h"

static void store_read_all(store *s)
{
    store_contents all;
    import_rows rows;
    store_cost *cost;
    store_equal *equals;
    store_origin origin;
    arena memory = {0};
    size_t count;
    if (store_read(s, &all) == BERLU_OK) {
        for (size_t i = 0; i < all.count; i++)
            for (size_t c = 0; c < all.studies[i].contrast_count; c++)
                if (all.studies[i].contrasts[c].a >= all.studies[i].cell_count ||
                    all.studies[i].contrasts[c].b >= all.studies[i].cell_count ||
                    (all.studies[i].contrasts[c].second &&
                     (all.studies[i].contrasts[c].minus_a >= all.studies[i].cell_count ||
                      all.studies[i].contrasts[c].minus_b >= all.studies[i].cell_count)))
                    abort();
        store_contents_free(&all);
    }
    if (store_read_import(s, &rows) == BERLU_OK)
        import_free(&rows);
    (void)store_read_cost(s, &memory, &cost, &count);
    (void)store_read_equals(s, &memory, &equals, &count);
    (void)store_read_origin(s, "0123456789abcdef", &origin);
    arena_free(&memory);
}

static void store_merge_it(const char *folder, const char *path)
{
    store *s = NULL;
    text notes = {0};
    size_t added;
    if (store_open(&s, folder, &notes) != BERLU_OK)
        abort(); /* an empty place */
    if (store_merge(s, path, &added) == BERLU_OK)
        (void)store_slim(s);
    if (store_close(s) != BERLU_OK)
        abort();
    text_free(&notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char folder[32] = "/dev/shm/berlu-fuzz-XXXXXX", path[64], into[64]; /* in memory, where there is that */
    store *s = NULL;
    study_entries runs = {.items = (study_entry[]){{.key = "0123456789abcdef"}}, .count = 1};
    if (access("/dev/shm", W_OK) != 0)
        snprintf(folder, sizeof folder, "/tmp/berlu-fuzz-XXXXXX");
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof path, "%s/study.db", folder);
    snprintf(into, sizeof into, "%s/into", folder);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
    if (store_open_read(&s, path) == BERLU_OK) {
        store_read_all(s);
        store_close(s);
        (void)study_known_take(&runs, path);
        store_merge_it(into, path);
    }
    if (folder_remove(folder) != BERLU_OK)
        abort();
    return 0;
}
