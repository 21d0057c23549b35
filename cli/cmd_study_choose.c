/* cmd_study_choose.c - `berlu study choose`: the second stage of a study, from the results of the
 * first. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/yaml.h"
#include "output.h"
#include "study/choose.h"
#include "study_open.h"

static const option_row rows[] = {
    STUDY_ROWS,
    {"out", OPTION_STRING, "FILE", .flags = OPTION_REQUIRED, .help = "the second study's file"},
    NO_COMPUTE_ROWS,
    {0}};

/* A file that is there and says the same is left alone; one that differs was chosen from other
 * results, or edited. */
static berlu_status file_put(const char *path, const text *content)
{
    char *old = NULL;
    size_t bytes = 0;
    if (!file_exists(path))
        return file_write_text(NULL, path, content);
    TRY(file_read_all(&old, &bytes, path, YAML_BYTES));
    int same = bytes == content->length && memcmp(old, content->data, bytes) == 0;
    free(old);
    return same ? BERLU_OK
                : berlu_fail(BERLU_ERR_INPUT,
                             "%s: it is there and differs from what these results choose; remove it, "
                             "or give another name",
                             path);
}

static berlu_status answer(const options *o, const study *s, const size_t *chosen, size_t count)
{
    output out;
    if (!options_json(o)) {
        for (size_t i = 0; i < count; i++)
            printf("%s\n", s->cells[chosen[i]].label);
        printf("%s: %s\n", s->stage.name, options_string(o, "out"));
        return BERLU_OK;
    }
    output_start(&out);
    output_string(&out, "study", s->stage.name);
    output_string(&out, "out", options_string(o, "out"));
    output_array(&out, "chosen");
    for (size_t i = 0; i < count; i++)
        output_string(&out, NULL, s->cells[chosen[i]].label);
    output_end(&out);
    return output_print(&out);
}

static berlu_status choose(options *o)
{
    study_opened x;
    store_contents all = {0};
    store *s = NULL;
    text content = {0};
    char path[STUDY_PATH + 16];
    size_t i = 0, count = 0, *chosen = NULL;
    if (options_count(o, "set"))
        return berlu_fail(BERLU_ERR_ARG, "--set has no effect: the second study is made of the file alone");
    TRY(study_open(&x, o));
    berlu_status status;
    snprintf(path, sizeof path, "%s/study.db", x.folder);
    TRY_DONE(store_open_read(&s, path));
    TRY_DONE(store_read(s, &all));
    while (i < all.count && strcmp(all.studies[i].name, x.s.name) != 0)
        i++;
    if (i == all.count)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: nothing of %s is in it", x.folder, x.s.name));
    chosen = calloc(x.s.cell_count + 1, sizeof *chosen);
    TRY_DONE(chosen ? BERLU_OK : berlu_fail_memory(x.s.cell_count * sizeof *chosen, "a choice"));
    TRY_DONE(study_choose(&content, &x.s, x.yaml, &all.studies[i], chosen, &count));
    TRY_DONE(file_put(options_string(o, "out"), &content));
    status = answer(o, &x.s, chosen, count);
done:
    free(chosen);
    text_free(&content);
    store_contents_free(&all);
    store_close(s);
    study_opened_free(&x);
    return status;
}

const command cmd_study_choose = {
    "study choose", "the second stage of a study: each function at its own best setting",
    "Writes the study that the section `choose` of a file announces: the values of one axis, each with the value of "
    "the "
    "other that has the best mean in the store. Nothing is chosen before all runs have a result, and only by the file "
    "that was registered with them.\n\n"
    "    berlu study choose studies/rates.yaml --dir docs/results --out studies/rates_test.yaml",
    rows, choose};
