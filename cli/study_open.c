/* study_open.c - see study_open.h. SPDX-License-Identifier: MIT */
#include "study_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "io/yaml.h"
#include "output.h"
#include "study/cost.h"
#include "study/known.h"
#include "study/pack.h"

void study_opened_free(study_opened *x)
{
    study_entries_free(&x->runs);
    study_free(&x->s);
    free(x->set);
    free(x->yaml);
}

/* The file of the one study whose store lies in a folder, as it was registered. */
static berlu_status yaml_of_store(char **out, const char *folder)
{
    char path[STUDY_PATH];
    store *s = NULL;
    store_contents all = {0};
    if (snprintf(path, sizeof path, "%s/study.db", folder) >= (int)sizeof path || !file_exists(path))
        return berlu_fail(BERLU_ERR_INPUT, "%s: no study.db in this folder; give the study's file", folder);
    berlu_status status;
    TRY_DONE(store_open_read(&s, path));
    TRY_DONE(store_read(s, &all));
    if (all.count != 1)
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s holds %zu studies; give the file of one, and --dir %s", path,
                            all.count, folder));
    if (!(*out = strdup(all.studies[0].yaml)))
        status = berlu_fail_memory(strlen(all.studies[0].yaml), "a study");
done:
    store_close(s);
    store_contents_free(&all);
    return status;
}

berlu_status study_problems(const char *file, const text *problems)
{
    enum { MESSAGE = 900 }; /* bytes that fit into a message of the library */
    size_t lines = 0;
    for (size_t i = 0; i < problems->length; i++)
        lines += problems->data[i] == '\n';
    if (problems->length < MESSAGE)
        return berlu_fail(BERLU_ERR_INPUT, "%.*s", (int)problems->length - 1, problems->data);
    fputs(problems->data, stderr);
    return berlu_fail(BERLU_ERR_INPUT, "%s: %zu problems, each in a line above", file, lines);
}

/* Neither has a text: a store's folder is what is meant, and a pack is merged first. */
static berlu_status store_refuse(const char *file)
{
    const char *slash = strrchr(file, '/');
    if (!folder_exists(file) && store_is_database(file))
        return berlu_fail(BERLU_ERR_INPUT, "%s: is the store of a study; give the folder it lies in, %.*s", file,
                          slash ? (int)(slash - file) : 1, slash ? file : ".");
    if (!folder_exists(file) && study_is_pack(file))
        return berlu_fail(BERLU_ERR_INPUT, "%s: is a pack; `berlu study merge %s --out DIR`, and give that folder",
                          file, file);
    return BERLU_OK;
}

berlu_status study_place_check(const char *folder, const char *name)
{
    if (folder_exists(folder))
        return BERLU_OK;
    return berlu_fail(
        BERLU_ERR_INPUT,
        "%s: no such folder, so nothing of %s has run here: `berlu study run` it, or name the folder that "
        "holds its runs",
        folder, name);
}

berlu_status study_busy(const char *folder, const run_record *holder)
{
    return berlu_fail(BERLU_ERR_BUSY,
                      "%s: `berlu study run` works there (process %lld on %s) and keeps the index; try again when it "
                      "is done",
                      folder, (long long)holder->process, holder->host);
}

berlu_status study_open(study_opened *x, const options *o)
{
    text problems = {0};
    *x = (study_opened){0};
    const char *file = options_string(o, "file"), *dir = options_string(o, "dir");
    int is_folder = folder_exists(file);
    size_t bytes = 0;
    TRY(store_refuse(file));
    berlu_status status = is_folder ? yaml_of_store(&x->yaml, file) : file_read_all(&x->yaml, &bytes, file, YAML_BYTES);
    if (status == BERLU_OK)
        status = study_parse(&x->s, x->yaml, is_folder ? strlen(x->yaml) : bytes, file, &problems);
    if (status != BERLU_OK && problems.data) {
        status = study_problems(file, &problems);
    }
    text_free(&problems);
    if (status != BERLU_OK) {
        free(x->yaml);
        return status;
    }
    dir = dir ? dir : is_folder ? file : NULL;
    snprintf(x->folder, sizeof x->folder, dir ? "%s" : "runs/%s", dir ? dir : x->s.name);
    size_t count = options_count(o, "set");
    x->set = calloc(count + 1, sizeof *x->set);
    if (!x->set)
        status = berlu_fail_memory(count, "settings");
    for (size_t i = 0; status == BERLU_OK && i < count; i++)
        x->set[i] = options_strings(o, "set")[i];
    if (status == BERLU_OK)
        status = study_set(&x->s, x->set);
    for (size_t i = 0; i < x->s.note_count; i++)
        fprintf(stderr, "note: %s\n", x->s.notes[i]);
    if (status != BERLU_OK)
        study_opened_free(x);
    return status;
}

berlu_status study_runs_find(study_opened *x, const options *o)
{
    TRY(study_entries_make(&x->runs, &x->s, x->folder));
    TRY(study_known_here(&x->runs, x->folder));
    for (size_t i = 0; i < options_count(o, "known"); i++)
        TRY(study_known_take(&x->runs, options_strings(o, "known")[i]));
    return BERLU_OK;
}

berlu_status study_open_runs(study_opened *x, const options *o)
{
    TRY(study_open(x, o));
    berlu_status status =
        x->s.kind == STUDY_COST
            ? berlu_fail(BERLU_ERR_ARG, "%s is a study of kind cost: it has measurements and no runs", x->s.name)
            : study_runs_find(x, o);
    if (status != BERLU_OK)
        study_opened_free(x);
    return status;
}

void study_counts(const study_entries *r, size_t counts[STUDY_STATES])
{
    for (size_t i = 0; i < r->count; i++)
        counts[r->items[i].state]++;
}

berlu_status study_answer(const options *o, const study_opened *x, double seconds, int slots)
{
    size_t counts[STUDY_STATES] = {0};
    study_counts(&x->runs, counts);
    if (options_json(o)) {
        output out;
        output_start(&out);
        output_string(&out, "study", x->s.name);
        output_int(&out, "runs", (int64_t)x->runs.count);
        for (int i = 0; i < STUDY_STATES; i++)
            output_int(&out, study_state_names[i], (int64_t)counts[i]);
        output_real(&out, "seconds", seconds);
        output_int(&out, "slots", slots);
        return output_print(&out);
    }
    printf("%s: %zu runs: %zu done, %zu running, %zu cut, %zu failed, %zu waiting (%s)\n", x->s.name, x->runs.count,
           counts[STUDY_DONE], counts[STUDY_RUNNING], counts[STUDY_CUT], counts[STUDY_FAILED], counts[STUDY_WAITING],
           x->folder);
    return BERLU_OK;
}

berlu_status study_cost_answer(const options *o, const study_opened *x, double seconds)
{
    char path[STUDY_PATH + 16];
    size_t done = 0, all = study_cost_count(&x->s);
    store *index = NULL;
    snprintf(path, sizeof path, "%s/study.db", x->folder);
    berlu_status status = file_exists(path) ? store_open_read(&index, path) : BERLU_OK;
    if (status == BERLU_OK && index)
        status = study_cost_done(&done, index, &x->s);
    store_close(index);
    TRY(status);
    if (options_json(o)) {
        output out;
        output_start(&out);
        output_string(&out, "study", x->s.name);
        output_int(&out, "measurements", (int64_t)all);
        output_int(&out, "done", (int64_t)done);
        output_int(&out, "waiting", (int64_t)(all - done));
        output_real(&out, "seconds", seconds);
        return output_print(&out);
    }
    printf("%s: %zu measurements: %zu done, %zu waiting (%s)\n", x->s.name, all, done, all - done, x->folder);
    return BERLU_OK;
}

berlu_status program_path(char out[STUDY_PATH])
{
    ssize_t n = readlink("/proc/self/exe", out, STUDY_PATH - 1);
    if (n <= 0)
        return berlu_fail(BERLU_ERR_IO, "/proc/self/exe cannot be read: where is this program?");
    out[n] = 0;
    return BERLU_OK;
}

berlu_status study_index_make(const study_opened *x, int may_lose)
{
    text notes = {0};
    store *index = NULL;
    size_t lost = 0;
    berlu_status status = store_open(&index, x->folder, &notes);
    if (status == BERLU_OK && !may_lose)
        status = store_count_lost(index, &x->s, &x->runs, &lost);
    if (lost)
        text_add(&notes,
                 "note: %s/study.db stays as it is: %zu finished runs of %s in it are not the file's (--set, or a "
                 "file that has changed since); study run makes it the file's\n",
                 x->folder, lost, x->s.name);
    else if (status == BERLU_OK)
        status = store_put_study(index, &x->s, x->yaml, &x->runs);
    for (size_t i = 0; i < x->runs.count && status == BERLU_OK && !lost; i++)
        if (x->runs.items[i].same_as == i && x->runs.items[i].state != STUDY_WAITING &&
            !store_is_current(index, &x->runs.items[i]))
            status = store_put_run(index, &x->runs.items[i], NULL);
    berlu_status closed = store_close(index);
    if (notes.data)
        fputs(notes.data, stderr);
    text_free(&notes);
    return status == BERLU_OK ? closed : status;
}

berlu_status study_store_find(char path[STUDY_PATH], const char *from)
{
    if (folder_exists(from)) {
        snprintf(path, STUDY_PATH, "%.4000s/study.db", from);
        return file_exists(path)
                   ? BERLU_OK
                   : berlu_fail(BERLU_ERR_INPUT,
                                "%s: no study.db in this folder; give a study's file, or the folder of its runs", from);
    }
    study_opened x = {0};
    size_t bytes;
    TRY(store_refuse(from));
    berlu_status status = file_read_all(&x.yaml, &bytes, from, YAML_BYTES);
    if (status == BERLU_OK)
        status = study_parse(&x.s, x.yaml, bytes, from, NULL);
    if (status != BERLU_OK) {
        free(x.yaml);
        return status;
    }
    snprintf(x.folder, sizeof x.folder, "runs/%s", x.s.name);
    status = study_place_check(x.folder, x.s.name);
    int indexed = 0; /* by a scheduler that works there: the index has one writer */
    run_record scheduler;
    if (status == BERLU_OK)
        status = run_record_read(&scheduler, &indexed, x.folder);
    indexed |= x.s.kind != STUDY_TRAIN; /* costs are in the store and nowhere else */
    if (!indexed && status == BERLU_OK)
        status = study_entries_make(&x.runs, &x.s, x.folder);
    if (!indexed && status == BERLU_OK)
        status = study_index_make(&x, 0);
    snprintf(path, STUDY_PATH, "%.4000s/study.db", x.folder);
    study_opened_free(&x);
    return status;
}
