/* download.c - downloads through libcurl: resumed when interrupted, verified, and only then
 * renamed. SPDX-License-Identifier: MIT
 *
 * Bytes go to PATH.part. A second call (or a retry after a lost connection) requests the rest from
 * the server, or the whole where it cannot resume. The length is checked while bytes arrive, so
 * that a wrong address does not fill the disk, and the hash at the end. */
#include "data/download.h"

#include "data/archive.h"

#if BERLU_DOWNLOAD
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

enum { TRIES = 4, REDIRECTIONS = 8, CONNECT_SECONDS = 30, STALLED_SECONDS = 60 };

typedef struct transfer {
    const download *d;
    const char *part;
    int fd;
    uint64_t have;       /* bytes in the part */
    berlu_status failed; /* set by a callback, which can only stop curl */
} transfer;

static size_t on_bytes(char *bytes, size_t one, size_t count, void *context)
{
    transfer *t = context;
    (void)one;
    uint64_t most = t->d->bytes ? t->d->bytes : t->d->most;
    if (most && t->have + count > most) {
        t->failed = berlu_fail(BERLU_ERR_INPUT, "%s: longer than the %s %llu bytes", t->d->url,
                               t->d->bytes ? "expected" : "allowed", (unsigned long long)most);
        return 0;
    }
    for (size_t done = 0; done < count;) {
        ssize_t wrote = write(t->fd, bytes + done, count - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            t->failed = berlu_fail(BERLU_ERR_IO, "%s: %s", t->part, strerror(errno));
            return 0;
        }
        done += (size_t)wrote;
        t->have += (uint64_t)wrote;
    }
    return count;
}

static int on_progress(void *context, curl_off_t all, curl_off_t done, curl_off_t up_all, curl_off_t up)
{
    transfer *t = context;
    (void)all, (void)done, (void)up_all, (void)up;
    if (t->d->progress)
        t->d->progress(t->d->context, t->have, t->d->bytes ? t->d->bytes : all > 0 ? (uint64_t)all : 0);
    if (!t->d->stop || !*t->d->stop)
        return 0;
    t->failed = berlu_fail(BERLU_ERR_STOPPED, "%s: stopped; the same command goes on from here", t->part);
    return 1;
}

static CURLcode curl_run(CURL *curl, transfer *t, char reason[CURL_ERROR_SIZE])
{
    reason[0] = '\0';
    curl_easy_setopt(curl, CURLOPT_URL, t->d->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTIONS);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALLED_SECONDS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "berlu");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->have);
    return curl_easy_perform(curl);
}

static berlu_status start_over(transfer *t)
{
    if (ftruncate(t->fd, 0) != 0 || lseek(t->fd, 0, SEEK_SET) != 0)
        return berlu_fail(BERLU_ERR_IO, "%s: %s", t->part, strerror(errno));
    t->have = 0;
    return BERLU_OK;
}

/* Worth a retry: the connection was lost, not the response wrong. */
static int is_cut(CURLcode code)
{
    return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
           code == CURLE_OPERATION_TIMEDOUT;
}

static berlu_status transfer_run(CURL *curl, transfer *t)
{
    char reason[CURL_ERROR_SIZE];
    int tries = t->d->tries > 0 ? t->d->tries : TRIES;
    for (int attempt = 1;; attempt++) {
        uint64_t before = t->have;
        CURLcode code = curl_run(curl, t, reason);
        long answer = 0;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer);
        if (code == CURLE_OK)
            return BERLU_OK;
        if (t->failed != BERLU_OK)
            return t->failed;
        int cannot_resume = before > 0 && (code == CURLE_RANGE_ERROR || answer == 416);
        if (attempt < tries && cannot_resume) {
            TRY(start_over(t));
        } else if (attempt >= tries || !is_cut(code)) {
            return berlu_fail(BERLU_ERR_IO, "%s: %s%s", t->d->url, reason[0] ? reason : curl_easy_strerror(code),
                              t->have ? " (what has come is kept; the same command goes on from there)" : "");
        }
    }
}

/* Two processes would write one part and rename it under each other. Without locks (ENOLCK, EINVAL)
 * a download is worth more than that. */
static berlu_status part_lock(const transfer *t)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(t->fd, F_OFD_SETLK, &all) == 0 || (errno != EAGAIN && errno != EACCES))
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_BUSY, "%s: another process is downloading it", t->part);
}

/* A part that is too long is useless; one of the full length needs no connection. */
static berlu_status part_open(transfer *t)
{
    struct stat info;
    t->fd = open(t->part, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (t->fd < 0)
        return berlu_fail(BERLU_ERR_IO, "%s: %s", t->part, strerror(errno));
    TRY(part_lock(t));
    if (fstat(t->fd, &info) != 0 || lseek(t->fd, 0, SEEK_END) < 0)
        return berlu_fail(BERLU_ERR_IO, "%s: %s", t->part, strerror(errno));
    t->have = (uint64_t)info.st_size;
    return t->d->bytes && t->have > t->d->bytes ? start_over(t) : BERLU_OK;
}

static berlu_status part_fetch(transfer *t)
{
    berlu_status status = part_open(t);
    if (status == BERLU_OK && !(t->d->bytes && t->have == t->d->bytes)) {
        CURL *curl = curl_easy_init();
        status = curl ? transfer_run(curl, t) : berlu_fail_memory(0, "a download");
        if (curl)
            curl_easy_cleanup(curl);
    }
    if (status == BERLU_OK && fsync(t->fd) != 0)
        status = berlu_fail(BERLU_ERR_IO, "%s: %s", t->part, strerror(errno));
    if (t->fd >= 0 && close(t->fd) != 0 && status == BERLU_OK)
        status = berlu_fail(BERLU_ERR_IO, "%s: %s", t->part, strerror(errno));
    return status;
}

static berlu_status part_check(const transfer *t)
{
    if (t->d->bytes && t->have != t->d->bytes)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %llu bytes came, %llu were expected", t->d->url,
                          (unsigned long long)t->have, (unsigned long long)t->d->bytes);
    return t->d->sha256 ? tarball_check(t->part, t->d->sha256) : BERLU_OK;
}

berlu_status download_file(const download *d)
{
    text part = {0};
    text_add(&part, "%s.part", d->path);
    TRY(text_status(&part));
    transfer t = {.d = d, .part = part.data, .fd = -1};
    berlu_status status = part_fetch(&t);
    if (status == BERLU_OK)
        status = part_check(&t);
    if (status == BERLU_ERR_INPUT || (status != BERLU_OK && status != BERLU_ERR_BUSY && t.have == 0))
        unlink(part.data); /* continuing it could not make it right, or there is nothing to continue */
    if (status == BERLU_OK)
        status = path_rename(part.data, d->path);
    text_free(&part);
    return status;
}
#else
berlu_status download_file(const download *d)
{
    return berlu_fail(BERLU_ERR_UNSUPPORTED,
                      "%s: this build cannot download; fetch it by other means and give its path with --data", d->url);
}
#endif
