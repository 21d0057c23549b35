/* test_merge.c - stores merged: contradictions, damage, and what was registered when.
 * SPDX-License-Identifier: MIT */
#include "store_fixture.h"

static void one_key_with_two_results_is_refused(void **state)
{
    fixture *f = *state;
    char folder[256], path[300];
    text notes = {0};
    store *s = NULL;
    size_t added;
    snprintf(folder, sizeof folder, "%s/other", f->folder);
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    double kept = f->runs.items[1].last.test_top1;
    f->runs.items[1].last.test_top1 = 99;
    assert_int_equal(store_fill(f, folder), BERLU_OK);
    f->runs.items[1].last.test_top1 = kept;
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), f->runs.items[1].key));
    assert_int_equal(store_exec(s, "UPDATE run SET state = 'failed'; DELETE FROM final"), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "failed in one store and has a result in the other"));
    assert_int_equal(store_close(s), BERLU_OK);
    text_free(&notes);
}

/* The message names the store that is damaged and not the one that is sound. */
static void a_damaged_store_is_not_merged(void **state)
{
    fixture *f = *state;
    char folder[256], path[300], *bytes;
    size_t size, added;
    text notes = {0};
    store *s = NULL;
    snprintf(folder, sizeof folder, "%s/sound", f->folder);
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    assert_int_equal(store_fill(f, f->folder), BERLU_OK);
    assert_int_equal(file_read_all(&bytes, &size, path, 64 << 20), BERLU_OK);
    memset(bytes + size / 2, 0xa5, size / 4);
    file_put(f->folder, "study.db", bytes, size);
    free(bytes);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_ERR_INPUT);
    assert_memory_equal(berlu_last_error(), path, strlen(path));
    assert_int_equal(store_close(s), BERLU_OK);
    text_free(&notes);
}

static const char asking[] =
    "study: t\nbase: {model: linear, image_size: 8, data: synthetic, synthetic_images: 32, batch: 8}\n"
    "axes: {lr: [1e-3, 1e-2]}\nseeds: 2\ncontrasts: [{name: c, a: {lr: 1e-2}, b: {lr: 1e-3}%s%s}]\n";

/* Registers the study in `folder`, with what its contrast expects of a second difference; NULL: a
 * difference that is judged against 0. */
static void study_put(const fixture *f, const char *folder, const char *expect)
{
    char source[1024];
    text notes = {0};
    store *s = NULL;
    study other;
    study_entries runs;
    snprintf(source, sizeof source, asking, expect ? ", minus: {a: {lr: 1e-3}, b: {lr: 1e-2}}, expect: " : "",
             expect ? expect : "");
    assert_int_equal(study_parse(&other, source, strlen(source), "t.yaml", NULL), BERLU_OK);
    assert_int_equal(study_entries_make(&runs, &other, f->folder), BERLU_OK);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_put_study(s, &other, source, &runs), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    study_entries_free(&runs);
    study_free(&other);
    text_free(&notes);
}

static void store_sql(const char *folder, const char *sql)
{
    text notes = {0};
    store *s = NULL;
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_exec(s, sql), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    text_free(&notes);
}

#define LONG_AGO "1970-01-01T00:00:00Z"

/* The one contrast of the store: what it predicts, and whether its time is LONG_AGO. */
static void contrast_is(const char *folder, stats_expects what, double limit, int second, int old)
{
    store_contents c;
    assert_int_equal(contents_read(&c, folder), BERLU_OK);
    assert_int_equal(c.studies[0].contrast_count, 1);
    const store_contrast *k = &c.studies[0].contrasts[0];
    assert_true(k->expected.what == what && (!what || k->expected.limit == limit) && k->second == second);
    if (second)
        assert_true(k->minus_a == k->b && k->minus_b == k->a);
    assert_int_equal(strcmp(k->registered, LONG_AGO) == 0, old);
    store_contents_free(&c);
}

static const char long_ago[] = "UPDATE contrast SET registered = '" LONG_AGO "'";

static void another_prediction_is_a_new_registration(void **state)
{
    fixture *f = *state;
    const char *folder = f->folder;
    study_put(f, folder, NULL);
    store_sql(folder, long_ago);
    study_put(f, folder, NULL); /* the same file: the same time */
    contrast_is(folder, STATS_NOTHING, 0, 0, 1);
    study_put(f, folder, "greater, than: 1"); /* it judges by another rule now */
    contrast_is(folder, STATS_ABOVE, 1, 1, 0);
    store_sql(folder, long_ago);
    study_put(f, folder, "greater, than: 1");
    contrast_is(folder, STATS_ABOVE, 1, 1, 1);
    study_put(f, folder, "greater, than: 0.5");
    contrast_is(folder, STATS_ABOVE, 0.5, 1, 0);
    store_sql(folder, long_ago);
    study_put(f, folder, "equal"); /* the study's margin is stored as a number */
    contrast_is(folder, STATS_WITHIN, 0.5, 1, 0);
    store_sql(folder, long_ago);
    study_put(f, folder, NULL);
    contrast_is(folder, STATS_NOTHING, 0, 0, 0);
}

static void merge_into(const char *folder, const char *from)
{
    char path[300];
    text notes = {0};
    store *s = NULL;
    size_t added;
    snprintf(path, sizeof path, "%s/study.db", from);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    text_free(&notes);
}

/* A study begun on two machines was registered on the first of them. */
static void the_first_registration_counts_in_any_order(void **state)
{
    fixture *f = *state;
    char first[256], second[256], other[256];
    snprintf(first, sizeof first, "%s/first", f->folder);
    snprintf(second, sizeof second, "%s/second", f->folder);
    snprintf(other, sizeof other, "%s/other", f->folder);
    static const char *const asks[] = {NULL, "greater, than: 1"};
    for (size_t i = 0; i < COUNT(asks); i++) {
        stats_expects what = asks[i] ? STATS_ABOVE : STATS_NOTHING;
        study_put(f, first, asks[i]);
        store_sql(first, long_ago);
        study_put(f, second, asks[i]);
        contrast_is(second, what, asks[i] ? 1 : 0, i > 0, 0);
        merge_into(first, second);
        contrast_is(first, what, asks[i] ? 1 : 0, i > 0, 1);
        study_put(f, other, "greater, than: 0.5"); /* another prediction is not the same contrast */
        merge_into(other, first);
        contrast_is(other, STATS_ABOVE, 0.5, 1, 0);
        merge_into(second, first);
        contrast_is(second, what, asks[i] ? 1 : 0, i > 0, 1);
    }
}

static void a_store_of_an_earlier_version_has_no_predictions(void **state)
{
    fixture *f = *state;
    char folder[256], path[300];
    text notes = {0};
    store *s = NULL;
    size_t added;
    snprintf(folder, sizeof folder, "%s/other", f->folder);
    study_put(f, f->folder, NULL);
    store_sql(f->folder, long_ago);
    store_sql(f->folder, "DROP TABLE prediction");
    contrast_is(f->folder, STATS_NOTHING, 0, 0, 1);

    /* A store with a prediction takes up the old one, and the other way round: each keeps its
     * own. */
    study_put(f, folder, "greater, than: 1");
    snprintf(path, sizeof path, "%s/study.db", f->folder);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    contrast_is(folder, STATS_ABOVE, 1, 1, 0);
    snprintf(path, sizeof path, "%s/study.db", folder);
    assert_int_equal(store_open(&s, f->folder, &notes), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    contrast_is(f->folder, STATS_NOTHING, 0, 0, 1);

    /* An empty one takes it whole. */
    snprintf(folder, sizeof folder, "%s/third", f->folder);
    assert_int_equal(store_open(&s, folder, &notes), BERLU_OK);
    assert_int_equal(store_merge(s, path, &added), BERLU_OK);
    assert_int_equal(store_close(s), BERLU_OK);
    contrast_is(folder, STATS_ABOVE, 1, 1, 0);
    text_free(&notes);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        CASE(one_key_with_two_results_is_refused),
        CASE(a_damaged_store_is_not_merged),
        CASE(another_prediction_is_a_new_registration),
        CASE(the_first_registration_counts_in_any_order),
        CASE(a_store_of_an_earlier_version_has_no_predictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
