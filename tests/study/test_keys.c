/* test_keys.c - the runs of docs/results are those of the study files, by their keys.
 * SPDX-License-Identifier: MIT
 *
 * A key is the hash of a run's settings and of its data, so a setting that is renamed, printed
 * otherwise or newly counted makes all finished runs strangers, and a study trains them again. The
 * images are not needed: the linker puts a function in the place of content_of_data() that says the
 * hash of the published set, and files of the right size stand for the set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "study/known.h"
#include "study/store.h"
#include "support/folder.h"
#include "train/content.h"

static char data_hash[SHA256_TEXT];

berlu_status __wrap_content_of_data(char out[SHA256_TEXT], data_source *data);

berlu_status __wrap_content_of_data(char out[SHA256_TEXT], data_source *data)
{
    (void)data;
    snprintf(out, SHA256_TEXT, "%s", data_hash);
    return BERLU_OK;
}

/* A file of 10,000 black images, of each class as many as the published one has. */
static void batch_write(const char *path)
{
    enum { RECORD = 3073, IMAGES = 10000 };
    unsigned char *bytes = calloc(IMAGES, RECORD);
    assert_non_null(bytes);
    for (size_t i = 0; i < IMAGES; i++)
        bytes[i * RECORD] = (unsigned char)(i % 10);
    assert_int_equal(file_write_atomic(path, bytes, (size_t)IMAGES * RECORD), BERLU_OK);
    free(bytes);
}

static void cifar_pretend(char folder[FOLDER_PATH])
{
    char inside[FOLDER_PATH], path[FOLDER_PATH];
    folder_fresh(folder, "keys");
    assert_int_equal(folder_make(folder_path(inside, folder, "cifar-10-batches-bin")), BERLU_OK);
    for (int i = 1; i <= 6; i++) {
        char name[32];
        snprintf(name, sizeof name, i < 6 ? "data_batch_%d.bin" : "test_batch.bin", i);
        batch_write(folder_path(path, inside, name));
    }
    static const char names[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n";
    assert_int_equal(file_write_atomic(folder_path(path, inside, "batches.meta.txt"), names, strlen(names)), BERLU_OK);
    assert_int_equal(setenv("BERLU_DATA", folder, 1), 0);
}

static size_t finished(const store_study *t)
{
    size_t count = 0;
    for (size_t c = 0; c < t->cell_count; c++)
        for (size_t r = 0; r < t->cells[c].count; r++) {
            const store_result *run = &t->cells[c].runs[r];
            count += strcmp(run->state, "done") == 0;
            if (*run->data)
                snprintf(data_hash, sizeof data_hash, "%s", run->data);
        }
    return count;
}

static void every_finished_run_has_the_key_that_its_study_gives_it_today(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], results[FOLDER_PATH], path[FOLDER_PATH];
    store *s;
    store_contents all;
    cifar_pretend(folder);
    snprintf(results, sizeof results, "%s/docs/results/study.db", getenv("BERLU_SOURCE_DIR"));
    assert_int_equal(store_open_read(&s, results), BERLU_OK);
    assert_int_equal(store_read(s, &all), BERLU_OK);
    store_close(s);
    for (size_t i = 0; i < all.count; i++) {
        study t;
        study_entries runs;
        size_t wanted = finished(&all.studies[i]), known = 0;
        snprintf(path, sizeof path, "%s/studies/%s.yaml", getenv("BERLU_SOURCE_DIR"), all.studies[i].name);
        if (!wanted) /* costs have no runs */
            continue;
        if (study_read(&t, path, NULL) != BERLU_OK || study_entries_make(&runs, &t, folder) != BERLU_OK)
            fail_msg("%s", berlu_last_error());
        assert_int_equal(study_known_take(&runs, results), BERLU_OK);
        for (size_t r = 0; r < runs.count; r++)
            known += runs.items[r].known;
        if (known != wanted)
            fail_msg("%s: %zu finished runs, %zu of them known by their keys", t.name, wanted, known);
        study_entries_free(&runs);
        study_free(&t);
    }
    store_contents_free(&all);
    assert_int_equal(folder_remove(folder), BERLU_OK); /* 184 MB */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_finished_run_has_the_key_that_its_study_gives_it_today),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
