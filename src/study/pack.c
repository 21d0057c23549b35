/* pack.c - writes and reads the archive of a study's finished runs. SPDX-License-Identifier: MIT
 *
 * pack.h has the layout. study_pack() takes a snapshot of the index and adds the files of each
 * finished run in the order of their names; study_unpack() unpacks into a temporary folder, merges
 * the index and moves the runs into place. */
#include "study/pack.h"

#include <assert.h>
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
#include "io/tar.h"
#include "study/run_hash.h"
#include "study/store_internal.h"

static const tarball_limits pack_limits = {.most_bytes = (uint64_t)64 << 30, .most_files = 1 << 20};

static int name_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static berlu_status run_add(tar_out *t, const char *folder, const char *key)
{
    char run[STUDY_PATH], path[STUDY_PATH + 300], name[TAR_NAME + 300];
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
        snprintf(name, sizeof name, "study/runs/%.16s/%s", key, names[i]->d_name);
        if (status == BERLU_OK && lstat(path, &info) == 0 && S_ISREG(info.st_mode) && !strstr(names[i]->d_name, ".tmp"))
            status = tar_add_file(t, name, path);
        free(names[i]);
    }
    free(names);
    return status;
}

/* Counts finished runs, and adds the folders of those that have one here; the others are in the
 * index alone. */
static berlu_status runs_add(tar_out *t, store *s, const char *folder, size_t *count)
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
        TRY_DONE(run_add(t, folder, key));
    }
    if (rc != SQLITE_DONE)
        status = store_fail(s, "reading");
done:
    sqlite3_finalize(q);
    return status;
}

berlu_status study_pack(const char *folder, const char *out, size_t *count)
{
    char index[STUDY_PATH], snapshot[STUDY_PATH];
    tar_out t = {0};
    store *s = NULL;
    *count = 0;
    if (snprintf(index, sizeof index, "%s/study.db", folder) >= (int)sizeof index ||
        snprintf(snapshot, sizeof snapshot, "%s.index-%ld", out, (long)getpid()) >= (int)sizeof snapshot)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    berlu_status status = BERLU_OK;
    TRY_DONE(store_copy(index, snapshot));
    TRY_DONE(store_open_read(&s, snapshot));
    TRY_DONE(tar_open(&t, out));
    TRY_DONE(tar_add_file(&t, "study/study.db", snapshot));
    TRY_DONE(runs_add(&t, s, folder, count));
    status = tar_commit(&t);
done:
    tar_discard(&t);
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

berlu_status study_unpack(store *into, const char *folder, const char *pack, size_t *added)
{
    char incoming[STUDY_PATH], index[STUDY_PATH];
    *added = 0;
    if (strlen(folder) + 64 > sizeof incoming)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    snprintf(incoming, sizeof incoming, "%.4000s/.incoming-%ld", folder, (long)getpid());
    snprintf(index, sizeof index, "%.4000s/study.db", incoming);
    TRY(folder_remove(incoming));
    TRY(tarball_unpack(pack, "study", incoming, pack_limits));
    berlu_status status;
    kept_failure first; /* cleaning up must not replace the message */
    if (!file_exists(index))
        TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: no pack of a study: study/study.db is not in it", pack));
    TRY_DONE(store_merge(into, index, added));
    TRY_DONE(runs_move(incoming, folder));
    return folder_remove(incoming);
done:
    failure_keep(&first, status);
    (void)folder_remove(incoming);
    return failure_report(&first);
}
