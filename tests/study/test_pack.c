/* test_pack.c - packs appear whole, carry every file, and damaged ones are refused.
 * SPDX-License-Identifier: MIT
 *
 * A study of two runs with folders written by hand. Every call that writes or reads and every
 * allocation fails once; bits are flipped in every member and the archive is cut behind each. */
#include <unistd.h>

#include "store_fixture.h"
#include "study/pack.h"
#include "support/fail.h"

static berlu_status pack_once(const fixture *f)
{
    char out[256];
    size_t count;
    snprintf(out, sizeof out, "%s/pack.tar", f->folder);
    return study_pack(f->folder, out, &count);
}

static berlu_status unpack_once(const fixture *f, const char *folder)
{
    char pack[256];
    size_t added;
    text notes = {0};
    store *s = NULL;
    snprintf(pack, sizeof pack, "%s/pack.tar", f->folder);
    berlu_status status = store_open(&s, folder, &notes);
    if (status == BERLU_OK)
        status = study_unpack(s, folder, pack, &added);
    berlu_status closed = store_close(s);
    text_free(&notes);
    return status == BERLU_OK ? closed : status;
}

static void a_pack_appears_whole_or_not_at_all(void **state)
{
    fixture *f = *state;
    char path[256];
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    snprintf(path, sizeof path, "%s/pack.tar", f->folder);
    for (; fail_after(FAIL_FILE | FAIL_SHORT, n), status = pack_once(f), fail_hit(); n++) {
        if (status == BERLU_OK) /* weights.sha256 is no condition of a pack */
            assert_true(file_exists(path));
        unlink(path);
    }
    assert_true(n > 4);
    assert_int_equal(status, BERLU_OK);
    for (n = 1; fail_after(FAIL_ALLOC, n), status = pack_once(f), fail_hit(); n++)
        ;
    assert_int_equal(status, BERLU_OK);
}

static void unpacking_may_fail_anywhere_and_be_repeated(void **state)
{
    fixture *f = *state;
    char folder[256], run[STUDY_PATH];
    berlu_status status;
    int n = 1;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    assert_int_equal(pack_once(f), BERLU_OK);
    snprintf(folder, sizeof folder, "%s/carried", f->folder);
    for (; fail_after(FAIL_FILE, n), status = unpack_once(f, folder), fail_hit(); n++)
        ;
    assert_true(n > 10);
    assert_int_equal(status, BERLU_OK);
    contents_check(f, folder);
    for (size_t i = 0; i < 2; i++) {
        study_entry e = f->runs.items[i];
        snprintf(run, sizeof run, "%s/runs/%s", folder, e.key);
        memcpy(e.path, run, sizeof e.path);
        assert_int_equal(study_entry_look(&e), BERLU_OK);
        assert_int_equal(e.state, STUDY_DONE);
    }
    /* Runs that a failing disk does not list are not left behind in silence. */
    for (n = 1;; n++) {
        assert_int_equal(folder_remove(folder), BERLU_OK);
        fail_after(FAIL_READ, n);
        status = unpack_once(f, folder);
        int hit = fail_hit();
        for (size_t i = 0; status == BERLU_OK && i < 2; i++) {
            snprintf(run, sizeof run, "%s/runs/%s", folder, f->runs.items[i].key);
            assert_true(folder_exists(run));
        }
        if (!hit)
            break;
    }
    assert_true(n > 4);
    assert_int_equal(status, BERLU_OK);
}

enum { TAR_BLOCK = 512, MEMBERS = 16 };

/* Where the members of a tar lie, and where the blocks begin that end it. */
typedef struct tar_members {
    char *bytes;
    size_t size, count, header[MEMBERS + 1], content[MEMBERS];
} tar_members;

static void pack_members(tar_members *t, const fixture *f)
{
    char path[256];
    *t = (tar_members){0};
    snprintf(path, sizeof path, "%s/pack.tar", f->folder);
    assert_int_equal(file_read_all(&t->bytes, &t->size, path, 64 << 20), BERLU_OK);
    for (size_t at = 0; t->bytes[at]; t->count++) {
        assert_true(t->count < MEMBERS && at < t->size);
        t->header[t->count] = at;
        t->content[t->count] = strtoul(t->bytes + at + 124, NULL, 8);
        at += TAR_BLOCK + (t->content[t->count] + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        t->header[t->count + 1] = at;
    }
}

/* The pack of these bytes, into a folder of its own: nothing of it is taken. */
static void pack_is_refused(const fixture *f, const char *bytes, size_t size, const char *words)
{
    char folder[256], runs[300];
    store_contents c;
    snprintf(folder, sizeof folder, "%s/refused", f->folder);
    snprintf(runs, sizeof runs, "%s/runs", folder);
    file_put(f->folder, "pack.tar", bytes, size);
    assert_int_equal(unpack_once(f, folder), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "pack.tar: "));
    assert_non_null(strstr(berlu_last_error(), words));
    assert_false(folder_exists(runs));
    assert_int_equal(contents_read(&c, folder), BERLU_OK);
    assert_int_equal(c.count, 0);
    store_contents_free(&c);
    assert_int_equal(folder_remove(folder), BERLU_OK);
}

static void a_pack_with_a_flipped_bit_or_a_lost_file_is_refused(void **state)
{
    fixture *f = *state;
    tar_members t;
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    assert_int_equal(pack_once(f), BERLU_OK);
    pack_members(&t, f);
    assert_int_equal(t.count, 2 + 2 * 4); /* the list, the index, and four files of each run */
    for (size_t i = 0; i < t.count; i++) {
        char *content = t.bytes + t.header[i] + TAR_BLOCK;
        const char *name = t.bytes + t.header[i] + strlen("study/");
        const size_t places[] = {0, t.content[i] / 2, t.content[i] - 1};
        for (size_t p = 0; p < COUNT(places); p++) {
            content[places[p]] ^= 4;
            pack_is_refused(f, t.bytes, t.size, i ? name : "; nothing of it is taken");
            content[places[p]] ^= 4;
        }
        if (i > 1) /* cut where another file could have begun */
            pack_is_refused(f, t.bytes, t.header[i], "in it is missing");
    }
    file_put(f->folder, "pack.tar", t.bytes, t.size);
    assert_int_equal(unpack_once(f, f->folder), BERLU_OK);
    free(t.bytes);
}

static void a_pack_of_an_earlier_version_has_no_list(void **state)
{
    fixture *f = *state;
    tar_members t;
    char folder[256], runs[300];
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    assert_int_equal(pack_once(f), BERLU_OK);
    pack_members(&t, f);
    file_put(f->folder, "pack.tar", t.bytes + t.header[1], t.size - t.header[1]);
    snprintf(folder, sizeof folder, "%s/earlier", f->folder);
    snprintf(runs, sizeof runs, "%s/runs/%s", folder, f->runs.items[1].key);
    assert_int_equal(unpack_once(f, folder), BERLU_OK);
    contents_check(f, folder);
    assert_true(folder_exists(runs));
    free(t.bytes);
}

/* What else lies in a run's folder, such as TensorBoard's files with the name of a host in theirs. */
static void a_pack_takes_names_of_99_bytes(void **state)
{
    fixture *f = *state;
    char name[101] = {0}, folder[256], run[STUDY_PATH];
    memset(name, 'x', 99);
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    file_put(f->runs.items[0].path, name, "words", 5);
    assert_int_equal(pack_once(f), BERLU_OK);
    snprintf(folder, sizeof folder, "%s/names", f->folder);
    assert_int_equal(unpack_once(f, folder), BERLU_OK);
    snprintf(run, sizeof run, "%s/runs/%s/%s", folder, f->runs.items[0].key, name);
    assert_true(file_exists(run));
    name[99] = 'x';
    file_put(f->runs.items[0].path, name, "words", 5);
    assert_int_equal(pack_once(f), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "is too long for an archive"));
    file_put(f->runs.items[0].path, "a\nb", "words", 5);
    assert_int_equal(pack_once(f), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "a\nb: a file whose name has a line break cannot be packed"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        CASE(a_pack_appears_whole_or_not_at_all),
        CASE(unpacking_may_fail_anywhere_and_be_repeated),
        CASE(a_pack_with_a_flipped_bit_or_a_lost_file_is_refused),
        CASE(a_pack_of_an_earlier_version_has_no_list),
        CASE(a_pack_takes_names_of_99_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
