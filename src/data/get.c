/* get.c - downloads and unpacks a published set. SPDX-License-Identifier: MIT
 *
 * Fetch the archive, compare its hash, unpack beside the target, verify the content, rename: the
 * target's name only ever belongs to a complete set, wherever the process is killed. Read
 * data_get(), then set_unpack(). Downloads: download.c; archives: archive.c. */
#include "data/get.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "data/archive.h"

/* Limit of the unpacked size: the records, and some space for texts beside them. */
static tarball_limits limits_of(const cifar_layout *l)
{
    tarball_limits limits = {.most_bytes = 1 << 20, .most_files = 64};
    for (size_t f = 0; f < l->files; f++)
        limits.most_bytes += l->records[f] * cifar_record_bytes(l);
    return limits;
}

/* An archive that is not the published one has no known length; this much is far over any of these
 * sets. */
static const uint64_t ARCHIVE_LIMIT = (uint64_t)4 << 30;

static berlu_status hash_check(const char *hex)
{
    size_t digits = strspn(hex, "0123456789abcdefABCDEF");
    if (digits != 64 || hex[digits])
        return berlu_fail(BERLU_ERR_ARG, "'%s' is no SHA-256: 64 hexadecimal digits are expected", hex);
    return BERLU_OK;
}

static berlu_status archive_fetch(const cifar_layout *l, const char *archive, const download *from)
{
    download d = *from;
    int published = !from->sha256;
    d.url = from->url ? from->url : l->url;
    d.sha256 = published ? l->sha256 : from->sha256;
    d.bytes = published ? l->archive_bytes : from->bytes;
    d.most = ARCHIVE_LIMIT;
    d.path = archive;
    if (file_exists(archive) && tarball_check(archive, d.sha256) == BERLU_OK)
        return BERLU_OK;
    return download_file(&d);
}

/* Unpacks beside `target` and renames the set once its content is verified. A wrong one is kept as
 * TARGET.damaged for inspection; a second one is removed, since the archive still has it. */
static berlu_status set_unpack(const cifar_layout *l, const char *archive, const char *target, arena *a)
{
    const char *unchecked = arena_printf(a, "%s.unchecked", target);
    const char *damaged = arena_printf(a, "%s.damaged", target);
    if (!unchecked || !damaged)
        return BERLU_ERR_MEMORY;
    TRY(folder_remove(unchecked)); /* left by a call that was killed here */
    TRY(tarball_unpack(archive, l->folder, unchecked, limits_of(l)));
    berlu_status status = cifar_verify(l, unchecked);
    if (status == BERLU_OK)
        return path_rename(unchecked, target);
    kept_failure first;
    failure_keep(&first, status);
    int kept = !folder_exists(damaged) && path_rename(unchecked, damaged) == BERLU_OK;
    if (!kept)
        folder_remove(unchecked);
    return berlu_fail(status, "%s (what was unpacked lies in %s)", first.message, damaged);
}

berlu_status data_get(const cifar_layout *l, const char *folder, const download *from, int keep_archive)
{
    arena a = {0};
    const char *target = arena_printf(&a, "%s/%s", folder, l->folder);
    const char *archive = arena_printf(&a, "%s/%s", folder, l->archive);
    berlu_status status;
    TRY_DONE(target && archive ? BERLU_OK : BERLU_ERR_MEMORY);
    if (from->sha256)
        TRY_DONE(hash_check(from->sha256));
    if (folder_exists(target)) {
        status = cifar_verify(l, target); /* never removed by us: it may be somebody's only copy */
        goto done;
    }
    if (from->file)
        TRY_DONE(cifar_archive_check(l, from->file, from->sha256));
    TRY_DONE(folder_make(folder));
    if (!from->file)
        TRY_DONE(archive_fetch(l, archive, from));
    TRY_DONE(set_unpack(l, from->file ? from->file : archive, target, &a));
    if (!keep_archive && !from->file)
        unlink(archive);
done:
    arena_free(&a);
    return status;
}
