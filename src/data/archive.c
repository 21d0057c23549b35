/* archive.c - extracts files from an untrusted .tar.gz through libarchive.
 * SPDX-License-Identifier: MIT
 *
 * libarchive detects the format; the allowed entries are decided here: plain files and folders
 * whose names stay inside. Unpacking happens in a temporary folder beside the target that is
 * renamed at the end, so a refusal, a truncated file or a full disk leaves nothing behind. */
#include "data/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "data/sha256.h"

enum { PIECE = 1 << 16 };

berlu_status tarball_check(const char *path, const char *expected)
{
    char found[SHA256_TEXT];
    TRY(sha256_file(found, path));
    return strcasecmp(found, expected) == 0 ? BERLU_OK : tarball_hash_fail(path, found, expected);
}

berlu_status tarball_hash_fail(const char *path, const char *found, const char *expected)
{
    return berlu_fail(BERLU_ERR_INPUT,
                      "%s: SHA-256 is %s, expected %s: not the published archive, or damaged (fetch it again; a "
                      "repacked one can be unpacked by hand and given as a folder)",
                      path, found, expected);
}

static berlu_status lib_fail(struct archive *a, const char *path)
{
    const char *reason = archive_error_string(a);
    if (archive_errno(a) == ENOMEM)
        return berlu_fail_memory(0, path);
    return berlu_fail(BERLU_ERR_INPUT, "%s: %s", path, reason ? reason : "broken archive");
}

static struct archive *reader_new(void)
{
    struct archive *a = archive_read_new();
    if (a) {
        archive_read_support_filter_gzip(a);
        archive_read_support_filter_none(a);
        archive_read_support_format_tar(a);
        archive_read_support_format_gnutar(a);
    }
    return a;
}

/* The next header. *entry is NULL at the end; a damaged header is an error, a warning (odd times,
 * owners) is not. */
static berlu_status entry_next(struct archive *a, const char *path, struct archive_entry **entry)
{
    int code = archive_read_next_header(a, entry);
    if (code == ARCHIVE_EOF) {
        *entry = NULL;
        return BERLU_OK;
    }
    return code == ARCHIVE_OK || code == ARCHIVE_WARN ? BERLU_OK : lib_fail(a, path);
}

/* Refuses names outside the folder, and entries other than files and folders. */
static berlu_status entry_check(struct archive_entry *entry, const char *path)
{
    const char *name = archive_entry_pathname(entry);
    if (!name || !*name)
        return berlu_fail(BERLU_ERR_INPUT, "%s: an entry without a name", path);
    mode_t type = archive_entry_filetype(entry);
    if (archive_entry_hardlink(entry) || archive_entry_symlink(entry) || (type != AE_IFREG && type != AE_IFDIR))
        return berlu_fail(BERLU_ERR_INPUT, "%s: entry '%s' is a link or a device; refused", path, name);
    if (name[0] == '/')
        return berlu_fail(BERLU_ERR_INPUT, "%s: entry '%s' has an absolute name; refused", path, name);
    for (const char *at = name; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return berlu_fail(BERLU_ERR_INPUT, "%s: entry '%s' leads out of its folder; refused", path, name);
    }
    return BERLU_OK;
}

static const char *base_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static berlu_status wanted_fill(struct archive *a, const char *path, const tarball_file *file)
{
    size_t have = 0;
    for (;;) {
        la_ssize_t got = archive_read_data(a, (char *)file->bytes + have, file->size - have);
        if (got < 0)
            return lib_fail(a, path);
        have += (size_t)got;
        if (got == 0 || have == file->size)
            break;
    }
    char rest;
    if (have < file->size || archive_read_data(a, &rest, 1) != 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: '%s' is not of the expected %zu bytes", path, file->name, file->size);
    return BERLU_OK;
}

static berlu_status wanted_all(struct archive *a, const char *path, const tarball_file *files, size_t count)
{
    uint64_t seen = 0; /* a bit per file */
    struct archive_entry *entry;
    for (;;) {
        TRY(entry_next(a, path, &entry));
        if (!entry)
            break;
        TRY(entry_check(entry, path));
        for (size_t f = 0; f < count; f++) {
            if (strcmp(base_name(archive_entry_pathname(entry)), files[f].name) != 0)
                continue;
            if (seen >> f & 1)
                return berlu_fail(BERLU_ERR_INPUT, "%s: '%s' is in it twice", path, files[f].name);
            TRY(wanted_fill(a, path, &files[f]));
            seen |= (uint64_t)1 << f;
        }
    }
    for (size_t f = 0; f < count; f++)
        if (!(seen >> f & 1))
            return berlu_fail(BERLU_ERR_INPUT, "%s: '%s' is not in it", path, files[f].name);
    return BERLU_OK;
}

berlu_status tarball_read_memory(const void *bytes, size_t size, const tarball_file *files, size_t count)
{
    struct archive *a = reader_new();
    if (!a)
        return berlu_fail_memory(0, "reading an archive");
    berlu_status status = archive_read_open_memory(a, bytes, size) == ARCHIVE_OK
                              ? wanted_all(a, "archive", files, count)
                              : lib_fail(a, "archive");
    archive_read_free(a);
    return status;
}

berlu_status tarball_read(const char *path, const tarball_file *files, size_t count)
{
    struct archive *a = reader_new();
    if (!a)
        return berlu_fail_memory(0, path);
    berlu_status status = archive_read_open_filename(a, path, PIECE) == ARCHIVE_OK ? wanted_all(a, path, files, count)
                                                                                   : lib_fail(a, path);
    archive_read_free(a);
    return status;
}

typedef struct unpacking {
    struct archive *a;
    const char *path, *folder, *into;
    tarball_limits left;
} unpacking;

static berlu_status file_unpack(unpacking *u, const char *to)
{
    char piece[PIECE];
    file_out *out = NULL;
    la_ssize_t got;
    berlu_status status;
    TRY_DONE(file_out_open(&out, to));
    while ((got = archive_read_data(u->a, piece, sizeof piece)) > 0) {
        if ((uint64_t)got > u->left.most_bytes)
            TRY_DONE(berlu_fail(BERLU_ERR_INPUT, "%s: unpacks to more than was expected; refused", u->path));
        TRY_DONE(file_out_write(out, piece, (size_t)got));
        u->left.most_bytes -= (uint64_t)got;
    }
    if (got == 0)
        return file_out_commit(out);
    status = lib_fail(u->a, u->path);
done:
    file_out_discard(out);
    return status;
}

static berlu_status entry_unpack(unpacking *u, struct archive_entry *entry)
{
    TRY(entry_check(entry, u->path));
    if (u->left.most_files-- == 0)
        return berlu_fail(BERLU_ERR_INPUT, "%s: more files than were expected; refused", u->path);
    const char *name = archive_entry_pathname(entry);
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    size_t length = strlen(u->folder);
    int inside = strncmp(name, u->folder, length) == 0 && (name[length] == '/' || name[length] == '\0');
    if (*name == '\0')
        return BERLU_OK; /* "./", the archive's own root */
    if (!inside)
        return berlu_fail(BERLU_ERR_INPUT, "%s: entry '%s' is outside of '%s'; refused", u->path, name, u->folder);
    const char *rest = name + length + (name[length] == '/');
    text to = {0};
    text_add(&to, "%s/%s", u->into, rest);
    TRY(text_status(&to));
    int is_folder = archive_entry_filetype(entry) == AE_IFDIR;
    char *slash = strrchr(to.data, '/');
    *slash = is_folder ? '/' : '\0'; /* the folder of a file */
    berlu_status status = folder_make(to.data);
    *slash = '/';
    if (status == BERLU_OK && !is_folder)
        status = file_unpack(u, to.data);
    text_free(&to);
    return status;
}

static berlu_status entries_unpack(unpacking *u)
{
    struct archive_entry *entry;
    if (archive_read_open_filename(u->a, u->path, PIECE) != ARCHIVE_OK)
        return lib_fail(u->a, u->path);
    TRY(folder_make(u->into));
    for (;;) {
        TRY(entry_next(u->a, u->path, &entry));
        if (!entry)
            return BERLU_OK;
        TRY(entry_unpack(u, entry));
    }
}

berlu_status tarball_unpack(const char *path, const char *folder, const char *target, tarball_limits limits)
{
    if (folder_exists(target) || file_exists(target))
        return berlu_fail(BERLU_ERR_ARG, "%s: already there; remove it first", target);
    text into = {0};
    text_add(&into, "%s.tmp-%ld", target, (long)getpid());
    TRY(text_status(&into));
    unpacking u = {reader_new(), path, folder, into.data, limits};
    berlu_status status;
    TRY_DONE(u.a ? folder_remove(into.data) : berlu_fail_memory(0, path));
    TRY_DONE(entries_unpack(&u));
    status = path_rename(into.data, target);
done:
    if (status != BERLU_OK) {
        kept_failure first;
        failure_keep(&first, status);
        folder_remove(into.data);
        failure_report(&first);
    }
    if (u.a)
        archive_read_free(u.a);
    text_free(&into);
    return status;
}
