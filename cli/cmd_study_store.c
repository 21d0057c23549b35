/* cmd_study_store.c - `berlu study rebuild|merge`: the index of a study, made again and carried. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "output.h"
#include "study_open.h"

static const option_row rebuild_rows[] = {STUDY_ROWS, {0}};

static berlu_status rebuild_study(options *o)
{
    opened x;
    berlu_status status = study_open(&x, o);
    if (status != BERLU_OK)
        return status;
    status = study_entries_make(&x.runs, &x.s, x.folder); /* the folders here, and nothing from elsewhere */
    if (status == BERLU_OK)
        status = study_index_make(&x);
    if (status == BERLU_OK)
        status = study_answer(o, &x, 0, 0);
    opened_free(&x);
    return status;
}

const command cmd_study_rebuild = {"study rebuild", "make a study's index again from its run folders",
                                   "    berlu study rebuild studies/quick.yaml", rebuild_rows, rebuild_study};

static const option_row merge_rows[] = {
    {"stores", OPTION_STRINGS, "STORE", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "study.db files to take from"},
    {"out", OPTION_STRING, "DIR", .flags = OPTION_REQUIRED, .help = "folder of the store to add to"},
    {0}};

static berlu_status merge_study(options *o)
{
    text notes = {0};
    store *index = NULL;
    size_t all = 0;
    berlu_status status = store_open(&index, options_string(o, "out"), &notes);
    for (size_t i = 0; i < options_count(o, "stores") && status == BERLU_OK; i++) {
        size_t added = 0;
        status = store_merge(index, options_strings(o, "stores")[i], &added);
        all += added;
    }
    berlu_status closed = store_close(index);
    status = status == BERLU_OK ? closed : status;
    if (notes.data)
        fputs(notes.data, stderr);
    text_free(&notes);
    if (status == BERLU_OK && options_json(o)) {
        output out;
        output_start(&out);
        output_int(&out, "added", (int64_t)all);
        return output_print(&out);
    }
    if (status == BERLU_OK)
        printf("%zu runs added to %s\n", all, options_string(o, "out"));
    return status;
}

const command cmd_study_merge = {"study merge", "add the finished runs of other stores to one",
                                 "One run with two different results is an error that names it.\n\n"
                                 "    berlu study merge a/study.db b/study.db --out results",
                                 merge_rows, merge_study};
