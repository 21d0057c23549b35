/* test_store_memory.c - stores when SQLite and jansson find no memory, and stores with damaged
 * pages. SPDX-License-Identifier: MIT
 *
 * The n-th allocation fails wherever it is asked for: in our code, in SQLite, in jansson. A call
 * then says so or, where the library can do without, does all it was asked for; it never does less
 * in silence. Writers are tried at every so many allocations: there are thousands. */
#include <math.h>
#include <unistd.h>

#include "store_fixture.h"
#include "study/cost.h"
#include "study/import.h"
#include "study/known.h"
#include "study/pack.h"
#include "study/verify.h"
#include "support/fail.h"

static void reading_gives_all_or_says_so(void **state)
{
    fixture *f = *state;
    store_contents c;
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    for (; fail_after(FAIL_ALLOC, n), status = contents_read(&c, f->folder), fail_hit(); n++) {
        if (status != BERLU_OK) {
            assert_int_equal(status, BERLU_ERR_MEMORY);
            assert_null(c.studies);
            continue;
        }
        assert_true(c.count == 1 && c.studies[0].cell_count == 2 && c.studies[0].contrast_count == 1);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(c.studies[0].cells[i].count, 2);
            assert_int_equal(c.studies[0].cells[i].runs[0].epoch_count, EPOCHS);
            assert_true(c.studies[0].cells[i].runs[0].metrics && c.studies[0].cells[i].runs[0].correct);
        }
        store_contents_free(&c);
    }
    assert_true(n > 100);
    assert_int_equal(status, BERLU_OK);
    store_contents_free(&c);
}

static void every_request_of_the_readers_arena_may_fail(void **state)
{
    fixture *f = *state;
    store_contents c;
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    for (; fail_after(FAIL_ARENA, n), status = contents_read(&c, f->folder), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(c.studies);
    }
    assert_true(n > 30);
    assert_int_equal(status, BERLU_OK);
    store_contents_free(&c);
}

/* A store that cannot be asked for want of memory was once taken for a foreign file and made
 * anew. */
static void writing_keeps_what_was_there(void **state)
{
    fixture *f = *state;
    char old[256];
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    snprintf(old, sizeof old, "%s/study.db.old", f->folder);
    for (; fail_after(FAIL_ALLOC, n), status = store_fill(f, f->folder), fail_hit(); n += n < 200 ? 3 : 31) {
        if (status != BERLU_OK)
            assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_false(file_exists(old));
        contents_check(f, f->folder);
    }
    assert_true(n > 500);
    assert_int_equal(status, BERLU_OK);
}

/* What a folder says is written or the call fails: settings that could not be copied were once
 * written as "not known". */
static void a_run_is_written_whole_or_not_at_all(void **state)
{
    fixture *f = *state;
    char folder[256];
    berlu_status status;
    int n = 1;
    for (;; n += 17) {
        store_contents c;
        snprintf(folder, sizeof folder, "%s/fresh-%d", f->folder, n);
        fail_after(FAIL_ALLOC, n);
        status = store_fill(f, folder);
        int hit = fail_hit();
        if (status == BERLU_OK) {
            assert_int_equal(contents_read(&c, folder), BERLU_OK);
            const store_result *r = &c.studies[0].cells[0].runs[0];
            assert_string_equal(r->key, f->runs.items[0].key);
            assert_string_equal(r->settings, "{\"lr\":1,\"data\":\"synthetic\"}");
            assert_string_equal(r->device, "cpu");
            assert_int_equal(r->epoch_count, EPOCHS);
            store_contents_free(&c);
        }
        if (!hit)
            break;
    }
    assert_int_equal(status, BERLU_OK);
}

static void keys_and_states_of_runs_are_right_or_missing(void **state)
{
    fixture *f = *state;
    study_entries r = {0};
    study_entry e = f->runs.items[0];
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ALLOC, n), status = study_entries_make(&r, &f->s, f->folder), fail_hit(); n += 3) {
        if (status != BERLU_OK) {
            assert_null(r.items);
            continue;
        }
        for (size_t i = 0; i < r.count; i++) {
            assert_string_equal(r.items[i].key, f->runs.items[i].key);
            assert_int_equal(r.items[i].state, i < 2 ? STUDY_DONE : STUDY_WAITING);
        }
        study_entries_free(&r);
    }
    assert_int_equal(status, BERLU_OK);
    study_entries_free(&r);
    for (n = 1; fail_after(FAIL_ALLOC, n), status = study_entry_look(&e), fail_hit(); n++)
        if (status == BERLU_OK) /* a finished run whose lock file could not be parsed was once "waiting" */
            assert_int_equal(e.state, STUDY_DONE);
        else
            assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
}

static void what_is_known_is_all_or_an_error(void **state)
{
    fixture *f = *state;
    study_entries r;
    char elsewhere[256];
    berlu_status status;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", f->folder);
    assert_int_equal(study_entries_make(&r, &f->s, elsewhere), BERLU_OK);
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = study_known_take(&r, f->folder), fail_hit(); n++) {
        if (status != BERLU_OK)
            assert_int_equal(status, BERLU_ERR_MEMORY);
        for (size_t i = 0; i < r.count; i++) {
            if (status == BERLU_OK)
                assert_int_equal(r.items[i].known, i < 2);
            r.items[i].known = 0, r.items[i].state = STUDY_WAITING;
        }
    }
    assert_int_equal(status, BERLU_OK);
    study_entries_free(&r);
}

/* ---- merging, packs, slim stores ------------------------------------------------------------- */

static berlu_status merged(const fixture *f, const char *folder, int slim)
{
    char path[256];
    text notes = {0};
    store *s = NULL;
    size_t added;
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    berlu_status status = store_open(&s, folder, &notes);
    if (status == BERLU_OK)
        status = store_merge(s, path, &added);
    if (status == BERLU_OK && slim)
        status = store_slim(s);
    berlu_status closed = store_close(s);
    text_free(&notes);
    return status == BERLU_OK ? closed : status;
}

static void merging_and_slimming_may_fail_and_be_repeated(void **state)
{
    fixture *f = *state;
    char folder[256];
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    snprintf(folder, sizeof folder, "%s/joined", f->folder);
    for (; fail_after(FAIL_ALLOC, n), status = merged(f, folder, 1), fail_hit(); n += 29)
        ;
    assert_true(n > 200);
    assert_int_equal(status, BERLU_OK);
    contents_check(f, folder);
    contents_check(f, f->folder);
}

static void a_pack_is_whole_or_an_error(void **state)
{
    fixture *f = *state;
    char out[256], folder[256];
    size_t count;
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    snprintf(out, sizeof out, "%s/pack.tar", f->folder);
    for (; fail_after(FAIL_ALLOC, n), status = study_pack(f->folder, out, &count), fail_hit(); n += 11) {
        if (status != BERLU_OK)
            assert_false(file_exists(out));
        else
            assert_int_equal(count, 2);
        unlink(out);
    }
    assert_int_equal(status, BERLU_OK);
    snprintf(folder, sizeof folder, "%s/unpacked", f->folder);
    text notes = {0};
    store *s = NULL;
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    for (n = 1; fail_after(FAIL_ALLOC, n), status = study_unpack(s, folder, out, &count), fail_hit(); n += 23)
        ;
    assert_int_equal(status, BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    text_free(&notes);
    contents_check(f, folder);
}

/* A file that is no store, or none at all: an error each time, and nothing is freed twice. */
static void what_is_no_store_is_refused_by_every_reader(void **state)
{
    fixture *f = *state;
    char path[256], to[256];
    size_t count;
    store *s = NULL;
    study_entries *runs = &f->runs;
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    snprintf(to, sizeof to, "%s/copy.db", f->folder);
    static const char *const contents[] = {NULL, "", "SQLite format 3, but not really a store of ours"};
    for (size_t i = 0; i < COUNT(contents); i++) {
        if (contents[i])
            file_put(f->folder, "study.db", contents[i], strlen(contents[i]));
        assert_int_equal(store_open_read(&s, path), BERLU_ERR_INPUT);
        assert_null(s);
        assert_int_equal(store_copy(path, to), BERLU_ERR_INPUT);
        assert_int_equal(study_pack(f->folder, to, &count), BERLU_ERR_INPUT);
        assert_int_equal(study_known_take(runs, path), BERLU_ERR_INPUT);
        assert_false(file_exists(to));
    }
}

/* ---- costs, imports, hashes ------------------------------------------------------------------ */

static const char imported[] = "cell,seed,study,value,source\nlr=1e-2,2,t,4,o\nlr=1e-2,1,t,2,o\n";

static berlu_status tables_put(store *s)
{
    cost_row rows[] = {{.cell = "c", .keep = "input", .machine = "m", .forward_ms = 1, .kept_bytes = NAN},
                       {.cell = "c", .keep = "both", .machine = "m", .round = 1, .forward_ms = 2}};
    import_rows r;
    berlu_status status = store_put_cost(s, "t", rows, COUNT(rows));
    if (status == BERLU_OK)
        status = import_parse(&r, imported, sizeof imported - 1, "f.csv");
    if (status == BERLU_OK) {
        status = store_put_import(s, &r);
        import_free(&r);
    }
    return status;
}

/* Reads all that tables_put() wrote; OK only with all of it. */
static berlu_status tables_read(store *s, const char *key)
{
    arena memory = {0};
    import_rows r = {0};
    store_cost *costs;
    store_equal *equals;
    store_origin origin;
    size_t count;
    berlu_status status = store_read_cost(s, &memory, &costs, &count);
    if (status == BERLU_OK)
        assert_true(count == 2 && strcmp(costs[0].row.keep, "both") == 0 && costs[0].row.forward_ms == 2);
    if (status == BERLU_OK && (status = store_read_import(s, &r)) == BERLU_OK)
        assert_true(r.count == 2 && r.items[0].mean == 2 && strcmp(r.items[1].source, "o") == 0);
    import_free(&r);
    if (status == BERLU_OK && (status = store_read_equals(s, &memory, &equals, &count)) == BERLU_OK)
        assert_true(count == 2 && strcmp(equals[0].source, "o") == 0);
    if (status == BERLU_OK && (status = store_read_origin(s, key, &origin)) == BERLU_OK)
        assert_true(strcmp(origin.device, "cpu") == 0 && *origin.hash.metrics && *origin.hash.correct);
    arena_free(&memory);
    return status;
}

static void tables_beside_the_runs_are_whole_or_an_error(void **state)
{
    fixture *f = *state;
    text notes = {0};
    store *s = NULL;
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    assert_int_equal(store_open(&s, f->folder, &notes), BERLU_OK);
    for (; fail_after(FAIL_ALLOC, n), status = tables_put(s), fail_hit(); n++)
        if (status != BERLU_OK)
            assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    const char *key = f->runs.items[0].key;
    for (n = 1; fail_after(FAIL_ALLOC, n), status = tables_read(s, key), fail_hit(); n++)
        if (status != BERLU_OK)
            assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    for (n = 1; fail_after(FAIL_ARENA, n), status = tables_read(s, key), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    text_free(&notes);
}

/* ---- damaged pages --------------------------------------------------------------------------- */

/* Zeroed pages and a cut file: all results, or an error. Rows behind a page that cannot be read
 * were once left out without a word. */
static void a_damaged_page_never_makes_fewer_runs(void **state)
{
    fixture *f = *state;
    char path[256], *bytes;
    size_t size, page = 4096, errors = 0;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    assert_int_equal(file_read_all(&bytes, &size, path, 64 << 20), BERLU_OK);
    char *copy = malloc(size);
    for (size_t at = 0; at < size; at += page)
        for (int cut = 0; cut < 2; cut++) {
            store_contents c;
            memcpy(copy, bytes, size);
            memset(copy + at, 0, page);
            assert_int_equal(file_write_atomic(path, copy, cut ? at : size), BERLU_OK);
            if (contents_read(&c, f->folder) != BERLU_OK) {
                errors++;
                continue;
            }
            store_contents_free(&c);
            contents_check(f, f->folder);
        }
    assert_true(errors > 8);
    free(copy);
    free(bytes);
}

int main(void)
{
    fail_sqlite();
    fail_json();
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        CASE(reading_gives_all_or_says_so),
        CASE(every_request_of_the_readers_arena_may_fail),
        CASE(writing_keeps_what_was_there),
        CASE(a_run_is_written_whole_or_not_at_all),
        CASE(keys_and_states_of_runs_are_right_or_missing),
        CASE(what_is_known_is_all_or_an_error),
        CASE(merging_and_slimming_may_fail_and_be_repeated),
        CASE(a_pack_is_whole_or_an_error),
        CASE(what_is_no_store_is_refused_by_every_reader),
        CASE(tables_beside_the_runs_are_whole_or_an_error),
        CASE(a_damaged_page_never_makes_fewer_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
