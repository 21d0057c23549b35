/* pack.c - writes and reads the archive of a study's finished runs. SPDX-License-Identifier: MIT
 *
 * pack.h has the layout. study_pack() takes a snapshot of the index, lists the files of each
 * finished run in the order of their names with their SHA-256, and adds the list and the files;
 * study_unpack() unpacks into a temporary folder, checks every file of the list, merges the index
 * and moves the runs into place. */
#include "study/pack.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_in.h"
#include "data/archive.h"
#include "data/sha256.h"
#include "io/tar.h"
#include "study/run_hash.h"
#include "study/store_internal.h"

static const tarball_limits pack_limits = {.most_bytes = (uint64_t)64 << 30, .most_files = 1 << 20};
enum { SUMS_MOST = 1 << 28, NAME = TAR_NAME + 300, PATH = STUDY_PATH + NAME };

#define INDEX "study.db"
#define SUMS  "SHA256SUMS"

static int name_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* ---- SHA256SUMS ------------------------------------------------------------------------------ */

/* One file of a pack; its name is that in the folder `study`. */
typedef struct sum_line {
    char digest[SHA256_TEXT], name[NAME];
} sum_line;

static berlu_status sum_add(text *sums, const char *name, const char *path)
{
    char digest[SHA256_TEXT];
    if (strchr(name, '\n'))
        return berlu_fail(BERLU_ERR_INPUT, "%s: a file whose name has a line break cannot be packed", path);
    TRY(sha256_file(digest, path));
    text_add(sums, "%s  %s\n", digest, name);
    return text_status(sums);
}

/* Reads the line at *at and moves on; 0 at the end, and when it is none of sum_add()'s. The line is
 * copied because sscanf() goes through all that follows. */
static int sum_next(sum_line *out, const char **at)
{
    char line[sizeof *out];
    const char *end = strchr(*at, '\n');
    if (!end || (size_t)(end - *at) >= sizeof line)
        return 0;
    snprintf(line, sizeof line, "%.*s", (int)(end - *at), *at);
    *at = end + 1;
    return sscanf(line, "%64[0-9a-f] %399[^\n]", out->digest, out->name) == 2;
}

static berlu_status sum_compare(int *same, const sum_line *line, const char *path)
{
    char digest[SHA256_TEXT];
    *same = 0;
    if (!file_exists(path))
        return BERLU_OK;
    TRY(sha256_file(digest, path));
    *same = strcmp(digest, line->digest) == 0;
    return BERLU_OK;
}

/* ---- packing --------------------------------------------------------------------------------- */

static berlu_status run_list(text *sums, const char *folder, const char *key)
{
    char run[STUDY_PATH], path[PATH], name[NAME];
    struct dirent **names = NULL;
    struct stat info;
    run_hash hash;
    snprintf(run, sizeof run, "%.4000s/runs/%.16s", folder, key);
    run_hash_read(&hash, run); /* writes weights.sha256 where it is missing */
    int count = scandir(run, &names, NULL, name_order);
    if (count < 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %s", run, strerror(errno));
    berlu_status status = BERLU_OK;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", run, names[i]->d_name);
        snprintf(name, sizeof name, "runs/%.16s/%s", key, names[i]->d_name);
        if (status == BERLU_OK && lstat(path, &info) == 0 && S_ISREG(info.st_mode) && !strstr(names[i]->d_name, ".tmp"))
            status = sum_add(sums, name, path);
        free(names[i]);
    }
    free(names);
    return status;
}

/* Counts finished runs, and lists the files of those that have a folder here; the others are in the
 * index alone. */
static berlu_status runs_list(text *sums, store *s, const char *folder, size_t *count)
{
    sqlite3_stmt *q;
    char path[STUDY_PATH];
    int rc = SQLITE_DONE;
    berlu_status status = BERLU_OK;
    TRY(store_prepare(s, &q, "SELECT key FROM run WHERE state IN ('done','failed') ORDER BY key"));
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(q, 0);
        ++*count;
        snprintf(path, sizeof path, "%.4000s/runs/%.16s", folder, key ? key : "");
        if (!key || strlen(key) != STUDY_KEY - 1 || !folder_exists(path))
            continue;
        TRY_DONE(run_list(sums, folder, key));
    }
    if (rc != SQLITE_DONE)
        status = store_fail(s, "reading");
done:
    sqlite3_finalize(q);
    return status;
}

/* The list comes first, so that a pack that was cut behind any file lacks files of it. */
static berlu_status files_add(tar_out *t, const text *sums, const char *folder, const char *snapshot)
{
    char path[PATH], name[NAME + 8];
    sum_line line;
    int same;
    TRY(tar_add_bytes(t, "study/" SUMS, sums->data, sums->length));
    for (const char *at = sums->data; sum_next(&line, &at);) {
        snprintf(name, sizeof name, "study/%s", line.name);
        if (strcmp(line.name, INDEX) == 0)
            snprintf(path, sizeof path, "%s", snapshot);
        else
            snprintf(path, sizeof path, "%.4000s/%s", folder, line.name);
        TRY(tar_add_file(t, name, path));
        TRY(sum_compare(&same, &line, path));
        if (!same)
            return berlu_fail(BERLU_ERR_INPUT, "%s: it changed while it was packed; pack again", path);
    }
    return BERLU_OK;
}

berlu_status study_pack(const char *folder, const char *out, size_t *count)
{
    char index[STUDY_PATH], snapshot[STUDY_PATH];
    tar_out t = {0};
    text sums = {0};
    store *s = NULL;
    *count = 0;
    if (snprintf(index, sizeof index, "%s/" INDEX, folder) >= (int)sizeof index ||
        snprintf(snapshot, sizeof snapshot, "%s.index-%ld", out, (long)getpid()) >= (int)sizeof snapshot)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    berlu_status status = BERLU_OK;
    TRY_DONE(store_copy(index, snapshot));
    TRY_DONE(store_open_read(&s, snapshot));
    TRY_DONE(sum_add(&sums, INDEX, snapshot));
    TRY_DONE(runs_list(&sums, s, folder, count));
    TRY_DONE(tar_open(&t, out));
    TRY_DONE(files_add(&t, &sums, folder, snapshot));
    status = tar_commit(&t);
done:
    tar_discard(&t);
    text_free(&sums);
    store_close(s);
    unlink(snapshot);
    return status;
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static int is_key(const char *name)
{
    return strlen(name) == STUDY_KEY - 1 && strspn(name, "0123456789abcdef") == STUDY_KEY - 1;
}

static berlu_status run_move(const char *from, const char *to)
{
    run_record record;
    int held = 0;
    if (folder_exists(to)) {
        berlu_status status = run_record_read(&record, &held, to);
        if (status != BERLU_OK || held || record.state == RUN_DONE || record.state == RUN_FAILED)
            return status;
        status = folder_remove(to);
        if (status != BERLU_OK)
            return status;
    }
    return path_rename(from, to);
}

static berlu_status runs_move(const char *incoming, const char *folder)
{
    char from[STUDY_PATH], to[STUDY_PATH];
    const struct dirent *each;
    snprintf(from, sizeof from, "%.4000s/runs", incoming);
    snprintf(to, sizeof to, "%.4000s/runs", folder);
    if (!folder_exists(from))
        return BERLU_OK;
    TRY(folder_make(to));
    DIR *list = opendir(from);
    if (!list)
        return berlu_fail(BERLU_ERR_IO, "%s: %s", from, strerror(errno));
    berlu_status status;
    while ((status = folder_next(&each, list, incoming)) == BERLU_OK && each) {
        if (!is_key(each->d_name))
            continue;
        snprintf(from, sizeof from, "%.4000s/runs/%.16s", incoming, each->d_name);
        snprintf(to, sizeof to, "%.4000s/runs/%.16s", folder, each->d_name);
        TRY_DONE(run_move(from, to));
    }
done:
    closedir(list);
    return status;
}

int study_is_pack(const char *path)
{
    enum { AT = 257 }; /* of the magic word in the first header of a tar */
    char magic[5];
    file_in in;
    if (file_in_open(&in, path) != BERLU_OK)
        return 0;
    int same = in.size >= AT + sizeof magic && file_in_read(&in, AT, magic, sizeof magic) == BERLU_OK &&
               memcmp(magic, "ustar", sizeof magic) == 0;
    file_in_close(&in);
    return same;
}

/* Packs of earlier versions have no list. */
static berlu_status sums_check(const char *incoming, const char *pack)
{
    char path[PATH], *sums = NULL;
    size_t size;
    sum_line line;
    int same = 1;
    snprintf(path, sizeof path, "%.4000s/" SUMS, incoming);
    if (!file_exists(path))
        return BERLU_OK;
    berlu_status status;
    TRY_DONE(file_read_all(&sums, &size, path, SUMS_MOST));
    for (const char *at = sums; at == sums || at < sums + size;) {
        if (!sum_next(&line, &at))
            TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: " SUMS " in it is damaged; nothing of it is taken", pack));
        snprintf(path, sizeof path, "%.4000s/%s", incoming, line.name);
        TRY_DONE(sum_compare(&same, &line, path));
        if (!same)
            TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: %s in it is %s; nothing of it is taken (copy or pack it again)",
                                pack, line.name, file_exists(path) ? "damaged" : "missing"));
    }
done:
    free(sums);
    return status;
}

berlu_status study_unpack(store *into, const char *folder, const char *pack, size_t *added)
{
    char incoming[STUDY_PATH], index[STUDY_PATH];
    *added = 0;
    if (strlen(folder) + 64 > sizeof incoming)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    snprintf(incoming, sizeof incoming, "%.4000s/.incoming-%ld", folder, (long)getpid());
    snprintf(index, sizeof index, "%.4000s/" INDEX, incoming);
    TRY(folder_remove(incoming));
    TRY(tarball_unpack(pack, "study", incoming, pack_limits));
    berlu_status status;
    kept_failure first; /* cleaning up must not replace the message */
    if (!file_exists(index))
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: no pack of a study: study/study.db is not in it", pack));
    TRY_DONE(sums_check(incoming, pack));
    status = store_merge(into, index, added);
    if (status != BERLU_OK) /* it names the index, whose folder goes */
        TRY_DONE(berlu_fail_in(status, pack));
    TRY_DONE(runs_move(incoming, folder));
    return folder_remove(incoming);
done:
    failure_keep(&first, status);
    (void)folder_remove(incoming);
    return failure_report(&first);
}
