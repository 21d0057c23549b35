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

/* ---- what the sides may name ----------------------------------------------------------------- */

static int is_word(const char *word, const char *begin, size_t length)
{
    return strlen(word) == length && strncmp(word, begin, length) == 0;
}

/* The axes of a study, or the labels of one of them, each once: "relu | gelu | ...". */
static void names_list(text *out, const study *s, const char *axis, size_t length)
{
    enum { LISTED = 12 };
    const char *listed[LISTED];
    size_t count = 0;
    for (size_t c = 0; c < s->cell_count; c++)
        for (size_t i = 0; i < s->cells[c].axis_count; i++) {
            const char *name = axis ? s->cells[c].labels[i] : s->cells[c].axes[i];
            size_t k = 0;
            while (k < count && strcmp(listed[k], name) != 0)
                k++;
            if (k < count || (axis && !is_word(s->cells[c].axes[i], axis, length)))
                continue;
            text_add(out, "%s%s", count ? " | " : "", count < LISTED ? name : "...");
            if (count == LISTED)
                return;
            listed[count++] = name;
        }
}

static berlu_status word_fail(const study *s, const char *side, const char *word)
{
    const char *equals = strchr(word, '=');
    text axes = {0}, labels = {0};
    names_list(&axes, s, NULL, 0);
    if (equals)
        names_list(&labels, s, word, (size_t)(equals - word));
    berlu_status status = BERLU_ERR_INPUT;
    if (axes.failed || labels.failed)
        status = berlu_fail_memory(0, "the names of axes");
    else if (!axes.data)
        berlu_fail(status, "%s has no axes, so it is one cell: there is nothing to compare it with", s->name);
    else if (!equals)
        berlu_fail(status, "--%s %s: AXIS=LABEL is expected, for example %s=%s; the axes of %s are %s", side, word,
                   s->cells[0].axis_count ? s->cells[0].axes[0] : "act",
                   s->cells[0].axis_count ? s->cells[0].labels[0] : "gelu", s->name, axes.data);
    else if (!labels.data)
        berlu_fail(status, "--%s %s: %s has no such axis; its axes are %s", side, word, s->name, axes.data);
    else
        berlu_fail(status, "--%s %s: no cell of %s has this label; on this axis there are %s", side, word, s->name,
                   labels.data);
    text_free(&axes);
    text_free(&labels);
    return status;
}

static const char *label_of(const study_cell *c, const char *axis, size_t length)
{
    for (size_t i = 0; i < c->axis_count; i++)
        if (is_word(c->axes[i], axis, length))
            return c->labels[i];
    return NULL;
}

static int has_word(const study_cell *c, const char *word)
{
    const char *equals = strchr(word, '='), *label = equals ? label_of(c, word, (size_t)(equals - word)) : NULL;
    return label && strcmp(label, equals + 1) == 0;
}

/* Whether a cell has the labels of an option. */
static int fits(const study_cell *c, const options *o, const char *side)
{
    for (size_t i = 0; i < options_count(o, side); i++)
        if (!has_word(c, options_strings(o, side)[i]))
            return 0;
    return 1;
}

/* Each word must be that of a cell, and all words of a side together too. */
static berlu_status side_check(const study *s, const options *o, const char *side)
{
    size_t fit = 0;
    for (size_t i = 0; i < options_count(o, side); i++) {
        size_t c = 0;
        while (c < s->cell_count && !has_word(&s->cells[c], options_strings(o, side)[i]))
            c++;
        if (c == s->cell_count)
            return word_fail(s, side, options_strings(o, side)[i]);
    }
    for (size_t c = 0; c < s->cell_count; c++)
        fit += (size_t)fits(&s->cells[c], o, side);
    return fit ? BERLU_OK : berlu_fail(BERLU_ERR_INPUT, "--%s: no cell of %s has all of these labels", side, s->name);
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

/* A pair without enough runs is a note where others have them. */
static berlu_status pairs_answer(const options *o, const study_opened *x, const store_study *t)
{
    output out;
    size_t found = 0, compared = 0, same = 0;
    text missing = {0};
    berlu_status status = BERLU_OK;
    output_start(&out);
    output_array(&out, "rows");
    for (size_t i = 0; i < x->s.cell_count; i++)
        for (size_t k = 0; k < x->s.cell_count && fits(&x->s.cells[i], o, "a"); k++) {
            size_t a = place_of(t, x->s.cells[i].label), b = place_of(t, x->s.cells[k].label);
            study_comparison c;
            same += i == k && fits(&x->s.cells[k], o, "b");
            if (i == k || !fits(&x->s.cells[k], o, "b") || !is_partner(&x->s.cells[i], &x->s.cells[k], o) ||
                a == t->cell_count || b == t->cell_count)
                continue;
            found++;
            status = study_compare(&c, t, a, b, x->s.metric, x->s.margin);
            if (status == BERLU_ERR_INPUT) {
                text_add(&missing, "note: %s\n", berlu_last_error());
                continue;
            }
            TRY_DONE(status);
            compared++;
            if (options_json(o))
                comparison_json(&out, t, &c, x->s.metric);
            else
                comparison_print(t, &c, x->s.metric);
        }
    if (!found)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT,
                            same ? "--a and --b name the same cell of %s"
                                 : "no two cells of %s differ by --a and --b alone: name the same "
                                   "axes on both sides",
                            x->s.name));
    TRY_DONE(compared ? text_status(&missing)
                      : status); /* the last message is that of the first line or the only one */
    fputs(missing.data ? missing.data : "", stderr);
    if (options_json(o)) {
        output_end(&out);
        text_free(&missing);
        return output_print(&out);
    }
done:
    text_free(&missing);
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
        (void)study_index_make(x, 0);
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
    if (x.s.kind == STUDY_COST)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s is a study of kind cost: study report has its differences", x.s.name));
    TRY_DONE(side_check(&x.s, o, "a"));
    TRY_DONE(side_check(&x.s, o, "b"));
    TRY_DONE(study_place_check(x.folder, x.s.name));
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
