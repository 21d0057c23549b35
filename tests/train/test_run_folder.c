/* test_run_folder.c - one trainer per run folder, on shared disks too, and a folder that others
 * move or replace. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runs.h"
#include "support/command.h"
#include "train/run_lock.h"

/* ---- the lock -------------------------------------------------------------------------------- */

static void two_processes_cannot_train_in_one_run(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    trainer *one, *two;
    tiny_settings(&s, run_place(run, "locked"), NULL);
    assert_int_equal(trainer_open(&one, &s, NULL), BERLU_OK);
    assert_int_equal(trainer_open(&two, &s, NULL), BERLU_OK);
    assert_int_equal(trainer_start(one, 0), BERLU_OK);
    assert_int_equal(trainer_start(two, 0), BERLU_ERR_BUSY);
    assert_non_null(strstr(berlu_last_error(), "another process"));
    assert_int_equal(trainer_start(two, 1), BERLU_ERR_BUSY);
    char who[64];
    snprintf(who, sizeof who, "process %ld on ", (long)getpid());
    assert_non_null(strstr(berlu_last_error(), who));
    assert_int_equal(run_check(run, 1), BERLU_ERR_BUSY);
    trainer_close(one);
    assert_int_equal(run_check(run, 1), BERLU_OK);
    assert_int_equal(trainer_start(two, 1), BERLU_OK);
    trainer_close(two);
    recipe_free(&s);
}

/* The lock is one of a file opened read-write, which NFS servers see; a folder's flock() is
 * local to a machine. */
static int lock_from_outside(const char *run)
{
    char path[FOLDER_PATH];
    int fd = open(folder_path(path, run, "lock"), O_RDWR | O_CREAT, 0666);
    assert_true(fd >= 0);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &all), 0);
    return fd;
}

/* The lock is taken before run.json is written: the second process in an empty folder writes
 * nothing. */
static void of_two_that_start_at_once_one_is_refused(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    run_folder folder;
    int there;
    folder_fresh(run, "at-once");
    int first = lock_from_outside(run);
    assert_int_equal(run_take(&folder, run, &(run_taking){0}, &there), BERLU_ERR_BUSY);
    assert_false(run_exists(run));
    close(first);
    assert_int_equal(run_take(&folder, run, &(run_taking){0}, &there), BERLU_OK);
    assert_false(there);
    run_close(&folder);
}

static void *release_soon(void *context)
{
    usleep(300000);
    close(*(int *)context);
    return NULL;
}

static void who_waits_gets_the_run_when_the_other_ends(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    run_folder folder;
    int there;
    pthread_t thread;
    folder_fresh(run, "waits");
    int first = lock_from_outside(run);
    assert_int_equal(run_take(&folder, run, &(run_taking){.wait = 0.15}, &there), BERLU_ERR_BUSY);
    assert_int_equal(pthread_create(&thread, NULL, release_soon, &first), 0);
    assert_int_equal(run_take(&folder, run, &(run_taking){.wait = 60}, &there), BERLU_OK);
    pthread_join(thread, NULL);
    run_close(&folder);
    atomic_int stop = 1;
    first = lock_from_outside(run);
    assert_int_equal(run_take(&folder, run, &(run_taking){.wait = 60, .stop = &stop}, &there), BERLU_ERR_STOPPED);
    close(first);
}

static volatile int lock_error; /* error that fcntl() returns for a lock; 0: the real call */
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (lock_error && command == F_OFD_SETLK) {
        errno = lock_error;
        return -1;
    }
    return __real_fcntl(fd, command, argument);
}

/* As on Lustre without -o flock: the message must not blame another process. */
static void a_file_system_without_locks_is_reported_as_that(void **state)
{
    (void)state;
    static const int errors[] = {ENOSYS, ENOLCK, EOPNOTSUPP};
    for (size_t i = 0; i < COUNT(errors); i++) {
        char run[FOLDER_PATH];
        run_folder folder;
        int there;
        folder_fresh(run, "no-locks");
        lock_error = errors[i];
        assert_int_equal(run_take(&folder, run, &(run_taking){.wait = 60}, &there), BERLU_ERR_IO);
        lock_error = 0;
        assert_non_null(strstr(berlu_last_error(), strerror(errors[i])));
        assert_null(strstr(berlu_last_error(), "another process"));
    }
}

static run_record record_of(const char *run, int expect_held)
{
    run_record r;
    int held;
    assert_int_equal(run_record_read(&r, &held, run), BERLU_OK);
    assert_int_equal(held, expect_held);
    return r;
}

static void the_lock_file_tells_state_attempt_and_step(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    stopper stop = {.phase = "train", .at = 5};
    tiny_settings(&s, run_place(run, "record"), NULL);
    assert_int_equal(run_with(&s, 1, &stop, NULL), BERLU_ERR_STOPPED);
    run_record r = record_of(run, 0);
    assert_true(r.state == RUN_STOPPED && r.attempt == 1 && r.step == 5 && r.process == getpid() && *r.host);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    r = record_of(run, 0);
    assert_true(r.state == RUN_DONE && r.attempt == 2 && r.step == 24);
    trainer *t;
    assert_int_equal(trainer_open(&t, &s, NULL), BERLU_OK);
    assert_int_equal(trainer_start(t, 1), BERLU_OK);
    assert_true(record_of(run, 1).state == RUN_WAITING);
    trainer_close(t); /* as one that is killed: nothing more is written */
    assert_true(record_of(run, 0).attempt == 3);
    recipe_free(&s);
    const char *const extra[] = {"lr=1e30", "clip=0", "warmup=0", "weight_decay=0", NULL};
    tiny_settings(&s, run_place(run, "record-failed"), extra);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_NUMERIC);
    assert_true(record_of(run, 0).state == RUN_FAILED);
    recipe_free(&s);
}

static void a_damaged_lock_file_loses_no_run(void **state)
{
    (void)state;
    static const char *const damages[] = {"",         "{",  "{\"state\": \"eaten\", \"attempt\": 1}",
                                          "\xff\xfe", "[]", "{\"attempt\": -4}"};
    char run[FOLDER_PATH], path[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(run, "lock-damaged"), (const char *const[]){"max_steps=16", NULL});
    tiny_settings(&s, run, (const char *const[]){"max_steps=16", NULL});
    for (size_t i = 0; i < COUNT(damages); i++) {
        int fd = open(folder_path(path, run, "lock"), O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, damages[i], strlen(damages[i])), strlen(damages[i]));
        close(fd);
        assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
        assert_true(record_of(run, 0).state == RUN_DONE && record_of(run, 0).step == 16);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    recipe_free(&s);
}

/* On NFS the files of a run just started on another machine may be invisible for a minute; the lock
 * file reveals it. */
static void a_run_whose_other_files_are_not_seen_is_not_called_a_foreign_folder(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    run_folder folder;
    int there;
    run_whole(run_place(run, "not-seen"), (const char *const[]){"epochs=1", NULL});
    assert_int_equal(unlink(folder_path(path, run, "run.json")), 0);
    assert_int_equal(run_check(run, 1), BERLU_OK);
    assert_int_equal(run_take(&folder, run, &(run_taking){.resume = 1}, &there), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "its lock file tells of a run but run.json is not there"));
    assert_int_equal(run_check(run, 0), BERLU_ERR_ARG);
    folder_fresh(run, "not-a-run-but-locked");
    assert_int_equal(file_write_atomic(folder_path(path, run, "lock"), "mine", 4), BERLU_OK);
    assert_int_equal(file_write_atomic(folder_path(path, run, "thesis.txt"), "x", 1), BERLU_OK);
    assert_int_equal(run_check(run, 1), BERLU_ERR_ARG);
    assert_int_equal(run_take(&folder, run, &(run_taking){.resume = 1}, &there), BERLU_ERR_ARG);
    char *bytes;
    assert_int_equal(file_read_all(&bytes, NULL, folder_path(path, run, "lock"), 100), BERLU_OK);
    assert_string_equal(bytes, "mine");
    free(bytes);
}

static void a_busy_run_is_exit_4(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    command_result r;
    run_whole(run_place(run, "busy"), (const char *const[]){"epochs=1", NULL});
    int other = lock_from_outside(run);
    command_run(&r, "train", "--run", run, "--resume", "--quiet", NULL);
    assert_int_equal(r.code, 4);
    assert_non_null(strstr(r.err, "another process is training in this run"));
    command_free(&r);
    command_run(&r, "train", "--run", run, "--resume", "--quiet", "--wait", "0.3", NULL);
    assert_int_equal(r.code, 4);
    command_free(&r);
    close(other);
    command_run(&r, "train", "--run", run, "--resume", "--quiet", "--wait", "0.3", NULL);
    assert_int_equal(r.code, 0);
    command_free(&r);
}

/* ---- folders that others change -------------------------------------------------------------- */

static int same_file(const char *folder, const char *name, const struct stat *info)
{
    char path[FOLDER_PATH];
    struct stat found;
    return stat(folder_path(path, folder, name), &found) == 0 && found.st_ino == info->st_ino;
}

typedef struct mover {
    char run[FOLDER_PATH], moved[FOLDER_PATH];
    uint64_t at;
    int replace, done;
} mover;

/* In the middle of the run's first epoch. */
static void mover_tick(void *context, const train_progress *p)
{
    mover *m = context;
    if (m->done || p->update < m->at)
        return;
    m->done = 1;
    assert_int_equal(rename(m->run, m->moved), 0);
    if (m->replace)
        run_whole(m->run, (const char *const[]){"epochs=1", NULL});
}

static void moved(const char *place, int replace)
{
    char base[FOLDER_PATH], path[FOLDER_PATH];
    train_settings s;
    trainer *t;
    mover m = {.at = 3, .replace = replace};
    folder_fresh(base, place);
    folder_path(m.run, base, "run");
    folder_path(m.moved, base, "moved");
    train_hooks hooks = {.progress = mover_tick, .context = &m};
    tiny_settings(&s, m.run, NULL);
    assert_int_equal(trainer_open(&t, &s, &hooks), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    struct stat settings;
    assert_int_equal(stat(folder_path(path, m.run, "run.json"), &settings), 0);
    assert_int_equal(trainer_run(t, NULL), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), "moved, removed or replaced"));
    trainer_close(t);
    assert_true(same_file(m.moved, "run.json", &settings));
    assert_true(folder_exists(folder_path(path, m.moved, "checkpoints/step-00000008"))); /* nothing is lost */
    if (!replace) {
        assert_false(folder_exists(m.run)); /* not recreated */
    } else {
        csv_table rows = metrics_of(m.run); /* one epoch of the other run, and nothing of ours */
        assert_int_equal(rows.rows, 1);
        csv_free(&rows);
    }
    recipe_free(&s);
    tiny_settings(&s, m.moved, NULL); /* resumes at its new path */
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    run_whole(folder_path(path, base, "whole"), NULL);
    runs_equal(path, m.moved);
    recipe_free(&s);
}

static void a_run_whose_folder_is_moved_saves_into_it_and_ends(void **state)
{
    (void)state;
    moved("moved", 0);
}

static void a_run_whose_folder_is_replaced_does_not_touch_the_new_one(void **state)
{
    (void)state;
    moved("replaced", 1);
}

typedef struct remover {
    const char *run, *only; /* that file of it */
    uint64_t at;
    int read_only, again, done; /* again: the file is recreated */
} remover;

static void remover_tick(void *context, const train_progress *p)
{
    remover *r = context;
    char path[FOLDER_PATH];
    if (r->done || p->update < r->at)
        return;
    r->done = 1;
    if (r->read_only) {
        assert_int_equal(chmod(folder_path(path, r->run, "checkpoints"), 0555), 0);
        assert_int_equal(chmod(r->run, 0555), 0);
    } else if (r->only) {
        assert_int_equal(unlink(folder_path(path, r->run, r->only)), 0);
        if (r->again)
            assert_int_equal(file_write_atomic(path, "{}", 2), BERLU_OK);
    } else {
        assert_int_equal(folder_remove(r->run), BERLU_OK);
    }
}

static void a_run_whose_folder_is_removed_ends_and_does_not_make_it_again(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    trainer *t;
    remover r = {.run = run_place(run, "removed"), .at = 11};
    tiny_settings(&s, run, NULL);
    assert_int_equal(trainer_open(&t, &s, &(train_hooks){.progress = remover_tick, .context = &r}), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    assert_int_equal(trainer_run(t, NULL), BERLU_ERR_IO);
    assert_non_null(strstr(berlu_last_error(), "moved, removed or replaced"));
    assert_non_null(strstr(berlu_last_error(), "its checkpoints were removed too"));
    trainer_close(t);
    assert_false(folder_exists(run));
    recipe_free(&s);
}

/* As `rm -rf` leaves it when the run writes at the same time. Without its lock file the folder
 * would be anybody's; a run without run.json cannot be resumed. The work so far is saved, unless
 * another process may be writing there. */
static void a_run_that_loses_its_lock_or_run_json_saves_and_ends(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int again;
        uint64_t kept;
    } cases[] = {{"lock", 0, 16}, {"lock", 1, 8}, {"run.json", 0, 16}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char run[FOLDER_PATH], path[FOLDER_PATH], kept[64], *before;
        train_settings s;
        trainer *t;
        remover r = {.run = run_place(run, "lost-file"), .only = cases[i].name, .at = 11, .again = cases[i].again};
        tiny_settings(&s, run, NULL);
        assert_int_equal(trainer_open(&t, &s, &(train_hooks){.progress = remover_tick, .context = &r}), BERLU_OK);
        assert_int_equal(trainer_start(t, 0), BERLU_OK);
        assert_int_equal(file_read_all(&before, NULL, folder_path(path, run, "run.json"), 1 << 20), BERLU_OK);
        assert_int_equal(trainer_run(t, NULL), BERLU_ERR_IO);
        snprintf(kept, sizeof kept, "the checkpoint of step %u is kept", (unsigned)cases[i].kept);
        if (!strstr(berlu_last_error(), cases[i].name) || !strstr(berlu_last_error(), kept))
            fail_msg("%s", berlu_last_error());
        trainer_close(t);
        assert_int_equal(file_write_atomic(path, before, strlen(before)), BERLU_OK); /* as the message asks for */
        free(before);
        assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
        run_whole(run_place(path, "lost-file-whole"), NULL);
        runs_equal(path, run);
        recipe_free(&s);
    }
}

/* Root may still write there; then nothing happens. */
static void a_run_whose_folder_becomes_read_only_keeps_its_last_checkpoint(void **state)
{
    (void)state;
    char run[FOLDER_PATH], whole[FOLDER_PATH], path[FOLDER_PATH];
    train_settings s;
    trainer *t;
    remover r = {.run = run_place(run, "read-only"), .at = 11, .read_only = 1};
    tiny_settings(&s, run, NULL);
    assert_int_equal(trainer_open(&t, &s, &(train_hooks){.progress = remover_tick, .context = &r}), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    berlu_status status = trainer_run(t, NULL);
    assert_int_equal(status, geteuid() == 0 ? BERLU_OK : BERLU_ERR_IO);
    if (status != BERLU_OK)
        assert_non_null(strstr(berlu_last_error(), "the checkpoint of step 8 is kept"));
    trainer_close(t);
    assert_int_equal(chmod(run, 0777), 0);
    assert_int_equal(chmod(folder_path(path, run, "checkpoints"), 0777), 0);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK);
    run_whole(run_place(whole, "read-only-whole"), NULL);
    runs_equal(whole, run);
    recipe_free(&s);
}

/* On NFS a reader's open file stays behind as .nfs...: here, a folder that only root-less rmdir
 * refuses. */
static volatile int keep_old; /* whether names that hold ".nfs" can be removed */
int __real_unlinkat(int at, const char *name, int flags);
int __wrap_unlinkat(int at, const char *name, int flags);
int __wrap_unlinkat(int at, const char *name, int flags)
{
    if (keep_old && strncmp(name, ".nfs", 4) == 0) {
        errno = EBUSY;
        return -1;
    }
    return __real_unlinkat(at, name, flags);
}

typedef struct counted_log {
    int warnings;
    char last[512];
} counted_log;

static void log_count(void *context, berlu_log_level level, const char *line)
{
    counted_log *c = context;
    if (level != BERLU_LOG_WARNING)
        return;
    c->warnings++;
    snprintf(c->last, sizeof c->last, "%s", line);
}

typedef struct holder {
    const char *run;
    int done;
} holder;

static void holder_tick(void *context, const train_progress *p)
{
    holder *h = context;
    char path[FOLDER_PATH];
    if (!h->done && p->update >= 3) /* the reader of checkpoint 2 */
        h->done =
            file_write_atomic(folder_path(path, h->run, "checkpoints/step-00000002/.nfs0001"), "x", 1) == BERLU_OK;
}

static void an_old_checkpoint_that_cannot_be_removed_is_reported_once(void **state)
{
    (void)state;
    char run[FOLDER_PATH], whole[FOLDER_PATH], path[FOLDER_PATH];
    static const char *const extra[] = {"checkpoint_every=2", "epochs=2", NULL};
    train_settings s;
    trainer *t;
    counted_log counted = {0};
    berlu_log log = {.write = log_count, .context = &counted};
    tiny_settings(&s, run_place(run, "unremovable"), extra);
    holder h = {.run = run};
    train_hooks hooks = {.progress = holder_tick, .context = &h, .log = &log};
    keep_old = 1;
    assert_int_equal(trainer_open(&t, &s, &hooks), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    assert_int_equal(trainer_run(t, NULL), BERLU_OK);
    keep_old = 0;
    trainer_close(t);
    assert_int_equal(h.done, 1);
    assert_int_equal(counted.warnings, 1);
    assert_non_null(strstr(counted.last, "cannot be removed"));
    assert_true(folder_exists(folder_path(path, run, "checkpoints/.old-step-00000002")));
    run_whole(run_place(whole, "unremovable-whole"), extra);
    runs_equal(whole, run);
    assert_int_equal(run_with(&s, 1, NULL, NULL), BERLU_OK); /* tried again */
    assert_false(folder_exists(path));
    recipe_free(&s);
}

int main(void)
{
    omp_set_num_threads(1); /* products of this size do not gain, and tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_cannot_train_in_one_run),
        cmocka_unit_test(of_two_that_start_at_once_one_is_refused),
        cmocka_unit_test(who_waits_gets_the_run_when_the_other_ends),
        cmocka_unit_test(a_file_system_without_locks_is_reported_as_that),
        cmocka_unit_test(the_lock_file_tells_state_attempt_and_step),
        cmocka_unit_test(a_damaged_lock_file_loses_no_run),
        cmocka_unit_test(a_run_whose_other_files_are_not_seen_is_not_called_a_foreign_folder),
        cmocka_unit_test(a_busy_run_is_exit_4),
        cmocka_unit_test(a_run_whose_folder_is_moved_saves_into_it_and_ends),
        cmocka_unit_test(a_run_whose_folder_is_replaced_does_not_touch_the_new_one),
        cmocka_unit_test(a_run_whose_folder_is_removed_ends_and_does_not_make_it_again),
        cmocka_unit_test(a_run_that_loses_its_lock_or_run_json_saves_and_ends),
        cmocka_unit_test(a_run_whose_folder_becomes_read_only_keeps_its_last_checkpoint),
        cmocka_unit_test(an_old_checkpoint_that_cannot_be_removed_is_reported_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
