/* run_lock.c - see run_lock.h. SPDX-License-Identifier: MIT
 *
 * The record is overwritten in place, never renamed, because the lock belongs to this inode; its
 * length is fixed, so that one write replaces all of it. */
#include "train/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/json_parse.h"

enum { RECORD = 256, POLL_NS = 100000000 };

const char *const run_state_names[RUN_STATES] = {"waiting", "running", "stopped", "done", "failed"};

/* Parses a lock file: 1; 0 for a damaged one, -1 without memory to read it, both with an empty
 * record. */
static int record_parse(run_record *out, const char *bytes, size_t count)
{
    json_t *root;
    *out = (run_record){0};
    if (json_parse(&root, bytes, count, "lock", NULL) == BERLU_ERR_MEMORY)
        return -1;
    const char *state = json_string_value(json_object_get(root, "state"));
    const char *host = json_string_value(json_object_get(root, "host"));
    json_int_t attempt = json_integer_value(json_object_get(root, "attempt"));
    json_int_t step = json_integer_value(json_object_get(root, "step"));
    int known = 0;
    for (int i = 0; state && i < RUN_STATES; i++)
        if (strcmp(state, run_state_names[i]) == 0)
            known = 1, out->state = (run_state)i;
    known = known && attempt >= 0 && step >= 0;
    if (known) {
        out->attempt = (uint64_t)attempt, out->step = (uint64_t)step;
        out->process = json_integer_value(json_object_get(root, "process"));
        snprintf(out->host, sizeof out->host, "%s", host ? host : "");
    } else {
        *out = (run_record){0};
    }
    json_decref(root);
    return known;
}

/* A damaged record is an empty one; lack of memory is no damage. */
static berlu_status record_read(run_record *out, int fd)
{
    char bytes[RECORD + 1];
    ssize_t got = pread(fd, bytes, RECORD, 0);
    return record_parse(out, bytes, got > 0 ? (size_t)got : 0) < 0 ? berlu_fail_memory(RECORD, "lock") : BERLU_OK;
}

/* ---- the lock -------------------------------------------------------------------------------- */

static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

static berlu_status fail_busy(const folder_handle *run, int fd)
{
    run_record holder;
    char who[128] = "";
    (void)record_read(&holder, fd);
    if (holder.attempt)
        snprintf(who, sizeof who, " (process %lld on %s)", (long long)holder.process, holder.host);
    return berlu_fail(BERLU_ERR_BUSY, "%s: another process is training in this run%s; --wait SECONDS waits for it",
                      run->path, who);
}

static berlu_status fail_lock(const folder_handle *run)
{
    return berlu_fail(
        BERLU_ERR_IO,
        "%s/lock: cannot be locked: %s; this file system may offer no locks (Lustre: mount with -o flock, "
        "NFS: the lock service), so keep the run on another one",
        run->path, strerror(errno));
}

int run_lock_named(const run_lock *lock, const folder_handle *run)
{
    struct stat held, named;
    if (fstat(lock->fd, &held) != 0 || fstatat(run->fd, "lock", &named, 0) != 0)
        return 0;
    return held.st_dev == named.st_dev && held.st_ino == named.st_ino ? 1 : -1;
}

/* One try: BERLU_OK with *fd locked, BERLU_ERR_BUSY, or a failure. */
static berlu_status lock_try(int *out, const folder_handle *run)
{
    int fd = openat(run->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return berlu_fail(BERLU_ERR_IO, "%s/lock: cannot be opened: %s", run->path, strerror(errno));
    struct flock all = whole_file();
    berlu_status status = BERLU_OK;
    if (fcntl(fd, F_OFD_SETLK, &all) != 0)
        status = errno == EAGAIN || errno == EACCES ? fail_busy(run, fd) : fail_lock(run);
    else if (run_lock_named(&(run_lock){.fd = fd}, run) != 1) /* it may have been removed in between */
        status = berlu_fail(BERLU_ERR_BUSY, "%s/lock: was removed while it was being locked", run->path);
    if (status == BERLU_OK)
        *out = fd;
    else
        close(fd);
    return status;
}

berlu_status run_lock_take(run_lock *out, const folder_handle *run, double wait, const atomic_int *stop)
{
    double until = clock_seconds() + wait;
    *out = (run_lock){.fd = -1};
    for (;;) {
        berlu_status status = lock_try(&out->fd, run);
        if (status == BERLU_OK)
            status = record_read(&out->record, out->fd);
        if (status != BERLU_ERR_BUSY || clock_seconds() >= until)
            return status;
        if (stop && *stop)
            return berlu_fail(BERLU_ERR_STOPPED, "%s: stopped while waiting for the process that trains there",
                              run->path);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
}

void run_lock_drop(run_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}

berlu_status run_lock_write(run_lock *lock, const folder_handle *run)
{
    char line[RECORD + 1], host[sizeof lock->record.host] = "";
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c; c++) /* a host name needs no JSON escapes */
        *c = *c < ' ' || *c > '~' || *c == '"' || *c == '\\' ? '?' : *c;
    lock->record.process = getpid();
    snprintf(lock->record.host, sizeof lock->record.host, "%s", host);
    int length = snprintf(line, sizeof line,
                          "{\"state\": \"%s\", \"attempt\": %llu, \"step\": %llu, \"host\": \"%s\", \"process\": %lld}",
                          run_state_names[lock->record.state], (unsigned long long)lock->record.attempt,
                          (unsigned long long)lock->record.step, host, (long long)lock->record.process);
    memset(line + length, ' ', (size_t)(RECORD - length));
    line[RECORD - 1] = '\n';
    if (pwrite(lock->fd, line, RECORD, 0) != RECORD || fsync(lock->fd) != 0)
        return berlu_fail(BERLU_ERR_IO, "%s/lock: cannot be written: %s", run->path, strerror(errno));
    return BERLU_OK;
}

berlu_status run_record_read(run_record *out, int *held, const char *run)
{
    folder_handle folder;
    *out = (run_record){0};
    *held = 0;
    berlu_status status = BERLU_OK;
    TRY(folder_hold(&folder, run));
    int fd = openat(folder.fd, "lock", O_RDWR | O_CLOEXEC);
    if (fd < 0) /* without write permission the record can still be read */
        fd = openat(folder.fd, "lock", O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        status = file_fail_read(file_shown((char[FILE_SHOWN]){0}, &folder, "lock"));
    if (fd >= 0) {
        struct flock all = whole_file();
        *held = fcntl(fd, F_OFD_GETLK, &all) == 0 && all.l_type != F_UNLCK;
        status = record_read(out, fd);
        close(fd);
    }
    folder_release(&folder);
    return status;
}
