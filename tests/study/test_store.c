/* test_store.c - stores and the scheduler: nothing is lost when memory, files or the disk give way.
 * SPDX-License-Identifier: MIT
 *
 * A study of two runs with folders written by hand. Every allocation of our code, and every call
 * that writes, fails once; the disk is full for SQLite (a limit on file sizes). After each failure
 * the status says so, and the same call goes through. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "io/csv.h"
#include "store_fixture.h"
#include "study/estimate.h"
#include "study/known.h"
#include "study/lacks.h"
#include "study/scheduler.h"
#include "support/fail.h"

static void a_store_holds_what_folders_hold(void **state)
{
    fixture *f = *state;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    contents_check(f, f->folder);
    assert_int_equal(store_fill(f, f->folder), BERLU_OK); /* again: the same */
    contents_check(f, f->folder);
}

static void every_allocation_of_the_writer_may_fail(void **state)
{
    fixture *f = *state;
    char folder[256];
    berlu_status status;
    int n = 1;
    snprintf(folder, sizeof folder, "%s/memory", f->folder);
    for (; fail_after(FAIL_ALLOC, n), status = store_fill(f, folder), fail_hit(); n++)
        if (status != BERLU_OK) /* hashes are left out where they cannot be made: no result is lost */
            assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_true(n > 8);
    assert_int_equal(status, BERLU_OK);
    contents_check(f, folder);
}

static void every_allocation_of_the_reader_may_fail(void **state)
{
    fixture *f = *state;
    store_contents c;
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    for (; fail_after(FAIL_ALLOC, n), status = contents_read(&c, f->folder), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(c.studies);
    }
    assert_true(n > 2);
    assert_int_equal(status, BERLU_OK);
    store_contents_free(&c);
}

/* A report, or `study status`, may be reading when the scheduler ends. */
static void a_reader_does_not_fail_the_writer_that_closes(void **state)
{
    fixture *f = *state;
    char path[256];
    store *writer = NULL, *reader = NULL;
    text notes = {0};
    store_contents c;
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    assert_int_equal(store_open(&writer, f->folder, &notes), BERLU_OK);
    text_free(&notes);
    assert_int_equal(store_exec(writer, "DELETE FROM event"), BERLU_OK);
    assert_int_equal(store_open_read(&reader, path), BERLU_OK);
    assert_int_equal(store_read(reader, &c), BERLU_OK);
    store_contents_free(&c);
    berlu_fail(BERLU_ERR_NUMERIC, "one of the runs failed");
    assert_int_equal(store_close(writer), BERLU_OK);
    assert_string_equal(berlu_last_error(), "one of the runs failed");
    store_close(reader);
    contents_check(f, f->folder);
}

static void another_writer_is_exit_4_for_a_while(void **state)
{
    fixture *f = *state;
    store *first = NULL, *second = NULL;
    text notes = {0};
    assert_int_equal(store_open(&first, f->folder, &notes), BERLU_OK);
    assert_int_equal(store_open(&second, f->folder, &notes), BERLU_OK);
    text_free(&notes);
    assert_int_equal(sqlite3_busy_timeout(second->db, 1), SQLITE_OK);
    assert_int_equal(store_exec(first, "BEGIN IMMEDIATE"), BERLU_OK);
    assert_int_equal(store_exec(second, "BEGIN IMMEDIATE"), BERLU_ERR_BUSY);
    assert_non_null(strstr(berlu_last_error(), "another process is at work in this store"));
    assert_int_equal(store_exec(first, "COMMIT"), BERLU_OK);
    assert_int_equal(store_exec(second, "BEGIN IMMEDIATE; COMMIT"), BERLU_OK);
    store_close(first);
    store_close(second);
}

static void a_full_disk_is_an_error_and_loses_nothing(void **state)
{
    fixture *f = *state;
    struct rlimit before, small;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    signal(SIGXFSZ, SIG_IGN);
    char folder[256];
    snprintf(folder, sizeof folder, "%s/full", f->folder);
    small.rlim_cur = 40000; /* space for the schema, not for the runs */
    setrlimit(RLIMIT_FSIZE, &small);
    berlu_status fresh = store_fill(f, folder), old = store_fill(f, f->folder);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(fresh, BERLU_ERR_IO);
    assert_int_equal(old, BERLU_ERR_IO);
    contents_check(f, f->folder);
    assert_int_equal(store_fill(f, folder), BERLU_OK); /* with space again */
    contents_check(f, folder);
}

static void a_foreign_file_is_set_aside(void **state)
{
    fixture *f = *state;
    text notes = {0};
    store *s = NULL;
    char old[256];
    file_put(f->folder, "study.db", "SQLite format 3, but not really a store of ours", 47);
    assert_int_equal(store_open(&s, f->folder, &notes), BERLU_OK);
    assert_non_null(strstr(notes.data, "set aside"));
    assert_int_equal(store_close(s), BERLU_OK);
    text_free(&notes);
    snprintf(old, sizeof old, "%s/study.db.old", f->folder);
    assert_true(file_exists(old));
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    contents_check(f, f->folder);
}

static void a_slim_store_has_at_most_20_kb_a_run(void **state)
{
    fixture *f = *state;
    text notes = {0};
    store *s = NULL;
    size_t added;
    char folder[256], path[300];
    struct stat info;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    snprintf(folder, sizeof folder, "%s/slim", f->folder);
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_OK);
    assert_int_equal(added, 2);
    assert_int_equal(store_slim(s), BERLU_OK);
    assert_int_equal(store_slim(s), BERLU_OK); /* slim already */
    assert_int_equal(store_close(s), BERLU_OK);
    contents_check(f, folder);
    snprintf(path, sizeof path, "%s/slim/study.db", f->folder);
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size < 2 * 20000 + 27 * 4096); /* two runs, and a page for each table and index */
    text_free(&notes);
}

/* A run that was cut, lost with its machine and trained again elsewhere began when it was cut at
 * the latest: what is registered in between came after it. */
static void a_run_began_at_its_first_event(void **state)
{
    fixture *f = *state;
    store *s = NULL;
    store_contents c;
    text notes = {0};
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    assert_int_equal(store_open(&s, f->folder, &notes), BERLU_OK);
    text_free(&notes);
    assert_int_equal(store_exec(s, "UPDATE run SET began = '2026-11-17T03:03:49Z';"
                                   "INSERT INTO event SELECT '2026-11-16T06:18:52Z', min(key), 'cut' FROM run;"
                                   "INSERT INTO event SELECT '2026-11-18T00:00:00Z', max(key), 'done' FROM run"),
                     BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    assert_int_equal(contents_read(&c, f->folder), BERLU_OK);
    assert_string_equal(c.studies[0].first_run, "2026-11-16T06:18:52Z");
    size_t first = 0, all = 0;
    for (size_t i = 0; i < c.studies[0].cell_count; i++)
        for (size_t k = 0; k < c.studies[0].cells[i].count; k++) {
            const char *began = c.studies[0].cells[i].runs[k].began;
            first += strcmp(began, "2026-11-16T06:18:52Z") == 0;
            all += strcmp(began, "2026-11-16T06:18:52Z") == 0 || strcmp(began, "2026-11-17T03:03:49Z") == 0;
        }
    assert_int_equal(first, 1);
    assert_int_equal(all, 2);
    store_contents_free(&c);
}

/* The epochs of a run's metrics in a store, as one text: "0 1 2 ". */
static char *epochs_of(const char *folder, size_t run)
{
    store_contents c;
    char *content = NULL;
    csv_table t;
    text out = {0};
    assert_int_equal(contents_read(&c, folder), BERLU_OK);
    assert_int_equal(store_metrics(&content, &c.studies[0].cells[run].runs[0]), BERLU_OK);
    assert_int_equal(csv_parse(&t, content, strlen(content), "metrics.csv"), BERLU_OK);
    for (size_t i = 0; i < t.rows; i++)
        text_add(&out, "%g ", csv_number(&t, i, csv_column(&t, "epoch")));
    csv_free(&t);
    free(content);
    store_contents_free(&c);
    assert_non_null(out.data);
    return out.data;
}

/* Hypothesis H asks for 1 - R^2 at the start and after epochs 1, 10 and 100. */
static void the_start_and_epochs_1_10_100_survive_slimming_and_merging(void **state)
{
    fixture *f = *state;
    char folder[256], path[STUDY_PATH + 16];
    text notes = {0}, start = {0};
    store *s = NULL;
    char *whole = NULL, *epochs;
    size_t bytes, added;
    snprintf(path, sizeof path, "%s/metrics.csv", f->runs.items[0].path);
    assert_int_equal(file_read_all(&whole, &bytes, path, 64 << 20), BERLU_OK);
    char *row = strchr(whole, '\n') + 1, *rest = strchr(row, ',');
    text_bytes(&start, whole, (size_t)(row - whole)); /* its header, and its first row as epoch 0 */
    text_string(&start, "0");
    text_bytes(&start, rest, (size_t)(strchr(rest, '\n') + 1 - rest));
    file_put(f->runs.items[0].path, "start.csv", start.data, start.length);
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    epochs = epochs_of(f->folder, 0);
    assert_memory_equal(epochs, "0 1 2 3 ", 8);
    free(epochs);
    epochs = epochs_of(f->folder, 1); /* a run of a version that measured no start */
    assert_memory_equal(epochs, "1 2 3 ", 6);
    free(epochs);
    snprintf(folder, sizeof folder, "%s/slim", f->folder);
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_OK);
    assert_int_equal(store_slim(s), BERLU_OK);
    assert_int_equal(store_slim(s), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    epochs = epochs_of(folder, 0);
    assert_string_equal(epochs, "0 1 10 20 30 40 50 60 70 80 90 100 ");
    free(epochs);
    epochs = epochs_of(folder, 1);
    assert_string_equal(epochs, "1 10 20 30 40 50 60 70 80 90 100 ");
    free(epochs);
    free(whole);
    text_free(&start);
    text_free(&notes);
}

static void what_a_store_holds_is_known(void **state)
{
    fixture *f = *state;
    study_entries r;
    char elsewhere[256];
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", f->folder);
    assert_int_equal(study_entries_make(&r, &f->s, elsewhere), BERLU_OK);
    for (; fail_after(FAIL_ALLOC, n), status = study_known_take(&r, f->folder), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    for (size_t i = 0; i < r.count; i++) {
        assert_int_equal(r.items[i].state, i < 2 ? STUDY_DONE : STUDY_WAITING);
        assert_int_equal(r.items[i].known, i < 2);
    }
    assert_true(study_entry_metric(&r.items[1], "top1") == study_entry_metric(&f->runs.items[1], "top1"));
    study_entries_free(&r);
}

static void looking_at_a_run_tells_memory_from_damage(void **state)
{
    fixture *f = *state;
    study_entry e = f->runs.items[0];
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ALLOC, n), status = study_entry_look(&e), fail_hit(); n++)
        if (status != BERLU_OK)
            assert_int_equal(status, BERLU_ERR_MEMORY);
        else
            assert_int_equal(e.state, STUDY_DONE); /* only its timing may be missing */
    assert_int_equal(status, BERLU_OK);
    file_put(e.path, "metrics.csv", "nothing", 7);
    assert_int_equal(study_entry_look(&e), BERLU_OK);
    assert_int_equal(e.state, STUDY_CUT);
}

static void every_allocation_of_the_keys_may_fail(void **state)
{
    fixture *f = *state;
    study_entries r = {0};
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ALLOC, n), status = study_entries_make(&r, &f->s, f->folder), fail_hit(); n++) {
        assert_true(status != BERLU_OK);
        assert_null(r.items);
    }
    assert_int_equal(status, BERLU_OK);
    assert_string_equal(r.items[3].key, f->runs.items[3].key);
    study_entries_free(&r);
}

/* Workers that end at once without a run: each is tried again, then given up, which is no result; a
 * scheduler without memory says so. */
static berlu_status schedule_once(fixture *f, const char *folder)
{
    text notes = {0};
    store *s = NULL;
    study_schedule how = {.program = "/bin/true", .jobs = 2, .yaml = yaml, .folder = folder, .retries = 1};
    for (size_t i = 2; i < 4; i++)
        f->runs.items[i].state = STUDY_WAITING, f->runs.items[i].given_up = 0;
    berlu_status status = store_open(&s, folder, &notes);
    if (status == BERLU_OK)
        status = study_schedule_run(&how, &f->s, &f->runs, s);
    berlu_status closed = store_close(s);
    text_free(&notes);
    return status == BERLU_OK ? closed : status;
}

static void the_scheduler_survives_lack_of_memory(void **state)
{
    fixture *f = *state;
    char folder[256];
    berlu_status status;
    int n = 1;
    snprintf(folder, sizeof folder, "%s/scheduled", f->folder);
    for (; fail_after(FAIL_ALLOC, n), status = schedule_once(f, folder), fail_hit(); n++)
        if (status != BERLU_OK)
            assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_true(n > 8);
    assert_int_equal(status, BERLU_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(f->runs.items[i].state, i < 2 ? STUDY_DONE : STUDY_WAITING);
        assert_int_equal(f->runs.items[i].given_up, i >= 2);
    }
    contents_check(f, folder);
}

/* A landscape measured after the run was indexed makes the index out of date once. */
static void a_landscape_joins_its_run_later(void **state)
{
    fixture *f = *state;
    study_entry *r = &f->runs.items[0];
    const landscape_summary l = {1, 2, 3, 4, 0.5, "8 training images"};
    store_contents c;
    text notes = {0};
    store *s;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    assert_int_equal(contents_read(&c, f->folder), BERLU_OK);
    assert_null(c.studies[0].cells[0].runs[0].landscape);
    store_contents_free(&c);
    assert_int_equal(landscape_save(r->path, &l), BERLU_OK);
    assert_int_equal(study_entry_look(r), BERLU_OK);
    assert_int_equal(store_open(&s, f->folder, &notes), BERLU_OK);
    assert_false(store_is_current(s, r));
    assert_true(store_is_current(s, &f->runs.items[1]));
    assert_int_equal(store_put_run(s, r, NULL), BERLU_OK);
    assert_true(store_is_current(s, r));
    assert_int_equal(store_close(s), BERLU_OK);
    assert_int_equal(contents_read(&c, f->folder), BERLU_OK);
    const landscape_summary *back = c.studies[0].cells[0].runs[0].landscape;
    assert_non_null(back);
    assert_true(back->loss == 1 && back->gradient == 2 && back->sharpness == 3 && back->eigenvalue == 4 &&
                back->error == 0.5);
    assert_string_equal(back->how, l.how);
    store_contents_free(&c);
}

/* What a machine lacks, and how long runs take, is known or an error: never a crash. */
static void every_allocation_of_a_plan_may_fail(void **state)
{
    fixture *f = *state;
    study_estimate needs;
    study_time time;
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ALLOC, n), status = study_estimate_make(&needs, &f->s), fail_hit(); n++)
        assert_true(status == BERLU_OK || status == BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    for (n = 1;; n++) {
        text problems = {0};
        fail_after(FAIL_ALLOC, n);
        status = study_lacks(&f->s, "t.yaml", 1, &problems);
        int hit = fail_hit();
        assert_true(status == BERLU_OK || status == BERLU_ERR_MEMORY);
        if (!hit)
            assert_true(status == BERLU_OK && !problems.length);
        text_free(&problems);
        if (!hit)
            break;
    }
    assert_true(n > 8);
    for (n = 1; n <= 16; n++) { /* beyond these it is the trainer's memory */
        fail_after(FAIL_ALLOC, n);
        status = study_time_make(&time, &f->s, &f->runs, 1, 0.01);
        (void)fail_hit();
        assert_true(status == BERLU_OK || status == BERLU_ERR_MEMORY);
    }
    assert_int_equal(study_time_make(&time, &f->s, &f->runs, 1, 0.01), BERLU_OK);
    assert_true(time.measured && time.seconds > 0 && time.seconds >= time.seconds_run);
    assert_int_equal(time.unknown, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        CASE(a_store_holds_what_folders_hold),
        CASE(every_allocation_of_the_writer_may_fail),
        CASE(every_allocation_of_the_reader_may_fail),
        CASE(a_reader_does_not_fail_the_writer_that_closes),
        CASE(another_writer_is_exit_4_for_a_while),
        CASE(a_full_disk_is_an_error_and_loses_nothing),
        CASE(a_foreign_file_is_set_aside),
        CASE(a_run_began_at_its_first_event),
        CASE(a_slim_store_has_at_most_20_kb_a_run),
        CASE(the_start_and_epochs_1_10_100_survive_slimming_and_merging),
        CASE(what_a_store_holds_is_known),
        CASE(looking_at_a_run_tells_memory_from_damage),
        CASE(every_allocation_of_the_keys_may_fail),
        CASE(the_scheduler_survives_lack_of_memory),
        CASE(a_landscape_joins_its_run_later),
        CASE(every_allocation_of_a_plan_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
