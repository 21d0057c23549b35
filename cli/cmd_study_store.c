/* cmd_study_store.c - `berlu study rebuild|pack|merge`: rebuilds, packs and merges the index of a
 * study. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "output.h"
#include "plot_target.h"
#include "study/cost.h"
#include "study/pack.h"
#include "study_open.h"

static const option_row rebuild_rows[] = {STUDY_ROWS, {0}};

static berlu_status rebuild_study(options *o)
{
    study_opened x;
    TRY(study_open(&x, o));
    if (x.s.kind == STUDY_COST) {
        study_opened_free(&x);
        return berlu_fail(BERLU_ERR_ARG, "costs are in the store alone; there are no folders to make it from");
    }
    berlu_status status;
    run_record holder;
    int held = 0;
    if (folder_exists(x.folder))
        TRY_DONE(run_record_read(&holder, &held, x.folder));
    if (held)
        TRY_DONE(study_busy(x.folder, &holder));
    TRY_DONE(study_entries_make(&x.runs, &x.s, x.folder)); /* the folders here alone */
    TRY_DONE(study_index_make(&x, 1));
    status = study_answer(o, &x, 0, 0);
done:
    study_opened_free(&x);
    return status;
}

const command cmd_study_rebuild = {"study rebuild", "make a study's index again from its run folders",
                                   "    berlu study rebuild studies/quick.yaml", rebuild_rows, rebuild_study};

static const option_row pack_rows[] = {
    {"from", OPTION_STRING, "FILE|DIR", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "a study: its file, or the folder that holds its study.db"},
    {"out", OPTION_STRING, "F.tar", .flags = OPTION_REQUIRED, .help = "archive to write"},
    NO_COMPUTE_ROWS,
    {0}};

/* Runs, and measurements of studies of costs where there are any. */
static berlu_status count_answer(const options *o, const char *key, size_t runs, size_t costs, const char *words)
{
    if (options_json(o)) {
        output out;
        output_start(&out);
        output_int(&out, key, (int64_t)runs);
        output_int(&out, "measurements", (int64_t)costs);
        return output_print(&out);
    }
    printf("%zu runs", runs);
    if (costs)
        printf(" and %zu measurements of costs", costs);
    printf(" %s %s\n", words, options_string(o, "out"));
    return BERLU_OK;
}

static berlu_status pack_study(options *o)
{
    char path[STUDY_PATH];
    store *index;
    size_t runs = 0, costs = 0;
    TRY(target_check("out", options_string(o, "out")));
    TRY(study_store_find(path, options_string(o, "from")));
    TRY(store_open_read(&index, path));
    berlu_status status = store_count_cost(index, &costs);
    store_close(index);
    TRY(status);
    *strrchr(path, '/') = 0; /* the folder of study.db */
    TRY(study_pack(path, options_string(o, "out"), &runs));
    return count_answer(o, "packed", runs, costs, "packed into");
}

const command cmd_study_pack = {"study pack", "carry finished runs in one file",
                                "Writes the index and the folders of finished runs, without checkpoints, into a tar "
                                "archive that `study merge` takes in elsewhere.\n\n"
                                "    berlu study pack runs/vit_cifar10 --out vit_cifar10.tar",
                                pack_rows, pack_study};

static const option_row merge_rows[] = {
    {"stores", OPTION_STRINGS, "STORE|F.tar", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "study.db files, their folders, or packs to take from"},
    {"out", OPTION_STRING, "DIR", .flags = OPTION_REQUIRED, .help = "folder of the store to add to"},
    {"slim", OPTION_FLAG, .help = "keep the per-site columns of the first, last and every tenth epoch"},
    NO_COMPUTE_ROWS,
    {0}};

static berlu_status source_merge(store *index, const options *o, const char *from, size_t *added)
{
    char inside[STUDY_PATH];
    if (folder_exists(from)) {
        if (snprintf(inside, sizeof inside, "%s/study.db", from) >= (int)sizeof inside)
            return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", from);
        return store_merge(index, inside, added);
    }
    return store_is_database(from) ? store_merge(index, from, added)
                                   : study_unpack(index, options_string(o, "out"), from, added);
}

/* What is neither a store nor a pack is refused before the store is made. */
static berlu_status source_check(const char *from)
{
    char inside[STUDY_PATH];
    if (folder_exists(from)) {
        snprintf(inside, sizeof inside, "%.4000s/study.db", from);
        return file_exists(inside) ? BERLU_OK : berlu_fail(BERLU_ERR_INPUT, "%s: no study.db in this folder", from);
    }
    if (!file_exists(from))
        return berlu_fail(BERLU_ERR_INPUT, "%s: there is no such store", from);
    return store_is_database(from) || study_is_pack(from)
               ? BERLU_OK
               : berlu_fail(BERLU_ERR_INPUT, "%s: neither a store (study.db) nor a pack of `study pack`", from);
}

static berlu_status merge_study(options *o)
{
    text notes = {0};
    store *index = NULL;
    size_t all = 0, before = 0, costs = 0;
    for (size_t i = 0; i < options_count(o, "stores"); i++)
        TRY(source_check(options_strings(o, "stores")[i]));
    berlu_status status = store_open(&index, options_string(o, "out"), &notes);
    if (status == BERLU_OK)
        status = store_count_cost(index, &before);
    for (size_t i = 0; i < options_count(o, "stores") && status == BERLU_OK; i++) {
        size_t added = 0;
        status = source_merge(index, o, options_strings(o, "stores")[i], &added);
        all += added;
    }
    if (status == BERLU_OK && options_flag(o, "slim"))
        status = store_slim(index);
    if (status == BERLU_OK)
        status = store_count_cost(index, &costs);
    berlu_status closed = store_close(index);
    status = status == BERLU_OK ? closed : status;
    if (notes.data)
        fputs(notes.data, stderr);
    text_free(&notes);
    TRY(status);
    return count_answer(o, "added", all, costs - before, "added to");
}

const command cmd_study_merge = {"study merge", "add the finished runs of other stores to one",
                                 "Takes stores and packs; one run with two different results is an error that names "
                                 "it.\n\n"
                                 "    berlu study merge a/study.db b.tar --out results --slim",
                                 merge_rows, merge_study};
