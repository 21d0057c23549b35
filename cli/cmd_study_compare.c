/* cmd_study_compare.c - `berlu study compare|import`: two cells after the fact, another program's
 * results. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "output.h"
#include "study/compare.h"
#include "study/import.h"
#include "study_open.h"

/* ---- compare --------------------------------------------------------------------------------- */

static const option_row compare_rows[] = {
    STUDY_ROWS,
    {"a", OPTION_STRINGS, "AXIS=LABEL", .flags = OPTION_REQUIRED, .help = "the first cells"},
    {"b", OPTION_STRINGS, "AXIS=LABEL", .flags = OPTION_REQUIRED, .help = "the cells to compare with"},
    NO_COMPUTE_ROWS,
    {0}};

static const char *label_of(const study_cell *c, const char *axis, size_t length)
{
    for (size_t i = 0; i < c->axis_count; i++)
        if (strlen(c->axes[i]) == length && strncmp(c->axes[i], axis, length) == 0)
            return c->labels[i];
    return NULL;
}

/* Whether a cell has the labels of an option. */
static int fits(const study_cell *c, const options *o, const char *side)
{
    for (size_t i = 0; i < options_count(o, side); i++) {
        const char *word = options_strings(o, side)[i], *equals = strchr(word, '=');
        const char *label = equals ? label_of(c, word, (size_t)(equals - word)) : NULL;
        if (!label || strcmp(label, equals + 1) != 0)
            return 0;
    }
    return 1;
}

static int is_named(const options *o, const char *axis)
{
    for (size_t i = 0; i < options_count(o, "a"); i++)
        if (strncmp(options_strings(o, "a")[i], axis, strlen(axis)) == 0 &&
            options_strings(o, "a")[i][strlen(axis)] == '=')
            return 1;
    return 0;
}

/* As contrasts pair cells: the same label on every axis that is not named. */
static int is_partner(const study_cell *a, const study_cell *b, const options *o)
{
    if (a->axis_count != b->axis_count)
        return 0;
    for (size_t i = 0; i < a->axis_count; i++) {
        const char *other = label_of(b, a->axes[i], strlen(a->axes[i]));
        if (!other || (!is_named(o, a->axes[i]) && strcmp(other, a->labels[i]) != 0))
            return 0;
    }
    return 1;
}

static size_t place_of(const store_study *t, const char *label)
{
    size_t c = 0;
    while (c < t->cell_count && strcmp(t->cells[c].label, label) != 0)
        c++;
    return c;
}

static void comparison_json(output *out, const store_study *t, const study_comparison *c, const char *metric)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"mean_a", c->of.mean_a},
                   {"sd_a", c->of.sd_a},
                   {"mean_b", c->of.mean_b},
                   {"sd_b", c->of.sd_b},
                   {"difference", c->of.judged.value},
                   {"low", c->of.low},
                   {"high", c->of.high},
                   {"p", c->of.p},
                   {"p_equal", c->of.p_equal},
                   {"p_flip", c->of.p_flip},
                   {"paired_low", c->of.paired_low},
                   {"paired_high", c->of.paired_high},
                   {"r", c->of.r},
                   {"detectable", c->of.detectable}};
    output_object(out, NULL);
    output_string(out, "a", t->cells[c->a].label);
    output_string(out, "b", t->cells[c->b].label);
    output_string(out, "metric", metric);
    output_int(out, "n_a", (int64_t)c->n_a);
    output_int(out, "n_b", (int64_t)c->n_b);
    for (size_t i = 0; i < COUNT(numbers); i++)
        output_real(out, numbers[i].key, numbers[i].value);
    output_string(out, "test", stats_test_name(c->of.test));
    output_bool(out, "registered", 0);
    output_int(out, "failed_a", (int64_t)c->failed_a);
    output_int(out, "failed_b", (int64_t)c->failed_b);
    output_end(out);
}

static void comparison_print(const store_study *t, const study_comparison *c, const char *metric)
{
    printf("%s - %s, %s, not registered: %+.3f [%.3f, %.3f], p %.4f (%s, %zu and %zu runs)\n", t->cells[c->a].label,
           t->cells[c->b].label, metric, c->of.judged.value, c->of.low, c->of.high, c->of.p,
           stats_test_name(c->of.test), c->n_a, c->n_b);
    printf("  %s: %.3f (sd %.3f); %s: %.3f (sd %.3f); paired [%.3f, %.3f], r %.2f; detectable %.3f; failed %zu, %zu\n",
           t->cells[c->a].label, c->of.mean_a, c->of.sd_a, t->cells[c->b].label, c->of.mean_b, c->of.sd_b,
           c->of.paired_low, c->of.paired_high, c->of.r, c->of.detectable, c->failed_a, c->failed_b);
}

static berlu_status pairs_answer(const options *o, const study_opened *x, const store_study *t)
{
    output out;
    size_t found = 0;
    berlu_status status = BERLU_OK;
    output_start(&out);
    output_array(&out, "rows");
    for (size_t i = 0; i < x->s.cell_count; i++)
        for (size_t k = 0; k < x->s.cell_count && fits(&x->s.cells[i], o, "a"); k++) {
            size_t a = place_of(t, x->s.cells[i].label), b = place_of(t, x->s.cells[k].label);
            study_comparison c;
            if (i == k || !fits(&x->s.cells[k], o, "b") || !is_partner(&x->s.cells[i], &x->s.cells[k], o) ||
                a == t->cell_count || b == t->cell_count)
                continue;
            found++;
            TRY_DONE(study_compare(&c, t, a, b, x->s.metric, x->s.margin));
            if (options_json(o))
                comparison_json(&out, t, &c, x->s.metric);
            else
                comparison_print(t, &c, x->s.metric);
        }
    if (!found)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "no two cells of %s differ by --a and --b alone", x->s.name));
    if (options_json(o)) {
        output_end(&out);
        return output_print(&out);
    }
done:
    text_free(&out.json);
    return status;
}

/* Updates the store from the folders where the data is here, which their keys need; else reads it
 * as it is. */
static berlu_status store_contents_of(store_contents *out, study_opened *x)
{
    char path[STUDY_PATH + 16];
    store *s = NULL;
    if (study_entries_make(&x->runs, &x->s, x->folder) == BERLU_OK)
        (void)study_index_make(x);
    else
        fprintf(stderr, "note: %s\n", berlu_last_error());
    snprintf(path, sizeof path, "%s/study.db", x->folder);
    berlu_status status = store_open_read(&s, path);
    if (status == BERLU_OK)
        status = store_read(s, out);
    store_close(s);
    return status;
}

static berlu_status compare_study(options *o)
{
    study_opened x;
    store_contents all = {0};
    size_t i = 0;
    TRY(study_open(&x, o));
    berlu_status status;
    TRY_DONE(store_contents_of(&all, &x));
    while (i < all.count && strcmp(all.studies[i].name, x.s.name) != 0)
        i++;
    status = i < all.count ? pairs_answer(o, &x, &all.studies[i])
                           : berlu_fail(BERLU_ERR_INPUT, "%s: nothing of %s is in it", x.folder, x.s.name);
done:
    store_contents_free(&all);
    study_opened_free(&x);
    return status;
}

const command cmd_study_compare = {
    "study compare", "two cells of a study, asked after the runs",
    "The difference of means with the intervals and tests of a registered contrast, marked as not registered: what is "
    "asked on sight proves less. Axes that neither side names are compared value by value.\n\n"
    "    berlu study compare studies/quick.yaml --a act=berlu --b act=relu",
    compare_rows, compare_study};

/* ---- import ---------------------------------------------------------------------------------- */

static const option_row import_rows_of[] = {
    {"file", OPTION_STRING, "FILE.csv", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "columns study, source, cell, and seed, value or n, mean, sd"},
    {"out", OPTION_STRING, "DIR", .flags = OPTION_REQUIRED, .help = "folder of the store to add to"},
    NO_COMPUTE_ROWS,
    {0}};

static berlu_status import_study(options *o)
{
    import_rows rows;
    text notes = {0};
    store *index = NULL;
    TRY(import_read(&rows, options_string(o, "file")));
    berlu_status status = store_open(&index, options_string(o, "out"), &notes);
    if (status == BERLU_OK)
        status = store_put_import(index, &rows);
    berlu_status closed = store_close(index);
    status = status == BERLU_OK ? closed : status;
    if (notes.data)
        fputs(notes.data, stderr);
    text_free(&notes);
    TRY_DONE(status);
    if (options_json(o)) {
        output out;
        output_start(&out);
        output_int(&out, "rows", (int64_t)rows.count);
        status = output_print(&out);
    } else
        printf("%zu rows imported into %s\n", rows.count, options_string(o, "out"));
done:
    import_free(&rows);
    return status;
}

const command cmd_study_import = {
    "study import", "take in another program's results",
    "Rows of a CSV file with columns study, source, cell and either seed, value (a run a row) or n, mean, sd. They are "
    "a source of their own, never mixed with our runs; a study file's section `equivalence` compares the two.\n\n"
    "    berlu study import docs/results/torch.csv --out runs/equivalence",
    import_rows_of, import_study};
