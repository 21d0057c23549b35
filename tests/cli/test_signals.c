/* test_signals.c - signals sent to `berlu train`, and what its threads let through.
 * SPDX-License-Identifier: MIT
 *
 * Runs are too long to end by themselves; only a signal of the test ends them. Loops that wait for
 * a file or a task check that the process still exists, so a wrong end fails instead of waiting for
 * ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signals.h"
#include "machine.h"
#include "signals.h"
#include "support/command.h"
#include "support/folder.h"
#include "support/sanitized.h"

static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};

typedef struct job {
    pid_t pid;
    char run[FOLDER_PATH], log[FOLDER_PATH];
    int ignored, pending; /* at the start of the command: this signal is ignored; is blocked and has come; 0: none */
    int terminal;         /* master of its controlling terminal, -1 without */
    const char *const *more;
} job;

/* A terminal of its own in which this process is in the foreground, as a shell would start it. */
static void terminal_take(const char *name)
{
    setsid();
    int slave = open(name, O_RDWR);
    ioctl(slave, TIOCSCTTY, 0);
    dup2(slave, STDIN_FILENO);
    dup2(slave, STDOUT_FILENO);
    dup2(slave, STDERR_FILENO);
}

static void child_prepare(const job *j, const char *terminal)
{
    sigset_t set;
    sigemptyset(&set);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* never outlives the test */
    unsetenv("OMP_WAIT_POLICY");      /* without it the command starts itself once more (main.c) */
    for (size_t i = 0; i < COUNT(asking); i++)
        signal(asking[i], asking[i] == j->ignored ? SIG_IGN : SIG_DFL);
    if (j->pending) {
        sigaddset(&set, j->pending);
        sigprocmask(SIG_SETMASK, &set, NULL);
        kill(getpid(), j->pending); /* raise() would be for this thread alone */
    } else {
        sigprocmask(SIG_SETMASK, &set, NULL);
    }
    if (terminal)
        terminal_take(terminal);
    else
        dup2(open(j->log, O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
}

static void job_start(job *j, const char *name, int terminal)
{
    char program[FOLDER_PATH];
    const char *words[64] = {"berlu",   "train",  "--run",     j->run,  "--resume",
                             "--quiet", "--data", "synthetic", "--act", "berlu"};
    static const char *const usual[] = {"--model",   "vit_micro", "--image-size",
                                        "16",        "--patch",   "8",
                                        "--batch",   "8",         "--synthetic-images",
                                        "64",        "--epochs",  "100000",
                                        "--lr",      "1e-3",      "--eval-batch",
                                        "16",        "--threads", "3",
                                        "--workers", "2",         NULL};
    size_t count = 10;
    for (const char *const *w = j->more ? j->more : usual; *w; w++)
        words[count++] = *w;
    folder_fresh(j->run, name);
    folder_path(j->log, j->run, "stderr");
    strcat(j->run, "/run");
    snprintf(program, sizeof program, "%s/berlu", getenv("BERLU_BUILD_DIR"));
    j->terminal = terminal ? posix_openpt(O_RDWR | O_NOCTTY) : -1;
    assert_true(!terminal || (j->terminal >= 0 && grantpt(j->terminal) == 0 && unlockpt(j->terminal) == 0));
    const char *slave = terminal ? ptsname(j->terminal) : NULL;
    j->pid = fork();
    if (j->pid == 0) {
        child_prepare(j, slave);
        execv(program, (char *const *)words);
        _exit(127);
    }
    assert_true(j->pid > 0);
}

static int job_lives(const job *j)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)j->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/* Size of a file of the run, -1 when it is not there. */
static long size_in_run(const job *j, const char *name)
{
    char path[FOLDER_PATH + 64];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", j->run, name);
    return stat(path, &s) == 0 ? (long)s.st_size : -1;
}

/* Until metrics.csv has grown `rows` times: the run trains. */
static void job_wait_rows(const job *j, int rows)
{
    for (long before = 0; rows > 0;) {
        long now = size_in_run(j, "metrics.csv");
        rows -= now > before;
        before = now > before ? now : before;
        if (!job_lives(j))
            fail_msg("the run ended by itself");
        usleep(2000);
    }
}

static int job_end(job *j)
{
    int state = 0;
    assert_int_equal(waitpid(j->pid, &state, 0), j->pid);
    if (j->terminal >= 0)
        close(j->terminal);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static void every_signal_that_asks_for_a_stop_saves_and_exits_3(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(asking); i++) {
        job j = {0};
        job_start(&j, "signals-each", 0);
        job_wait_rows(&j, 2);
        kill(j.pid, asking[i]);
        assert_int_equal(job_end(&j), 3);
        assert_true(size_in_run(&j, "checkpoints/last/state.safetensors") > 0);
    }
}

/* The signal is pending before the program starts. */
static void a_signal_at_the_first_line_of_the_command_saves_and_exits_3(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(asking); i++) {
        job j = {.pending = asking[i]};
        job_start(&j, "signals-first", 0);
        assert_int_equal(job_end(&j), 3);
        assert_true(size_in_run(&j, "checkpoints/last/state.safetensors") > 0);
    }
}

static void a_signal_that_was_ignored_at_the_start_stays_ignored(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(asking); i++) {
        job j = {.ignored = asking[i]};
        job_start(&j, "signals-ignored", 0);
        job_wait_rows(&j, 1);
        for (int again = 0; again < 3; again++) {
            kill(j.pid, asking[i]);
            job_wait_rows(&j, 3); /* a stop would come before the next epoch */
        }
        kill(j.pid, asking[(i + 1) % COUNT(asking)]);
        assert_int_equal(job_end(&j), 3);
    }
}

/* Steps so long that nothing can be saved between signals sent together. Pending ones are taken by
 * number. */
static const char *const slow[] = {
    "--model", "vit_tiny_cifar", "--batch",   "32", "--synthetic-images", "64", "--epochs",           "100000",
    "--lr",    "1e-3",           "--threads", "1",  "--workers",          "1",  "--checkpoint-every", "1",
    NULL};

/* Step of the newest whole checkpoint; 0: none yet. */
static long newest_step(const job *j)
{
    char path[FOLDER_PATH + 64];
    long newest = 0;
    snprintf(path, sizeof path, "%s/checkpoints", j->run);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (strncmp(e->d_name, "step-", 5) == 0 && atol(e->d_name + 5) > newest)
            newest = atol(e->d_name + 5);
    if (folder)
        closedir(folder);
    return newest;
}

static void a_second_signal_is_the_same_request_and_a_third_ends_at_once(void **state)
{
    (void)state;
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGTERM};
    for (size_t sent = 2; sent <= 3; sent++) {
        job j = {.more = slow};
        job_start(&j, "signals-third", 0);
        while (newest_step(&j) < 2)
            assert_true(job_lives(&j) && usleep(2000) == 0);
        for (size_t i = 0; i < sent; i++)
            kill(j.pid, numbers[i]);
        assert_int_equal(job_end(&j), sent == 2 ? 3 : 128 + SIGTERM);
        /* ended at once or not, the run goes on from the newest checkpoint: it is whole */
        long newest = newest_step(&j);
        assert_true(newest >= 2);
        j.pending = SIGTERM;
        job again = j;
        again.pid = fork();
        if (again.pid == 0) {
            child_prepare(&again, NULL);
            char program[FOLDER_PATH];
            snprintf(program, sizeof program, "%s/berlu", getenv("BERLU_BUILD_DIR"));
            execl(program, "berlu", "train", "--run", j.run, "--resume", "--quiet", NULL);
            _exit(127);
        }
        assert_int_equal(job_end(&again), 3);
        char *said, wanted[64];
        snprintf(wanted, sizeof wanted, "stopped at step %ld", newest);
        assert_int_equal(file_read_all(&said, NULL, j.log, 1 << 16), BERLU_OK);
        assert_null(strstr(said, "broken"));
        if (!strstr(said, wanted))
            fail_msg("'%s' does not say '%s'", said, wanted);
        free(said);
    }
}

static void ctrl_c_at_a_terminal_saves_and_ends_by_the_signal(void **state)
{
    (void)state;
    job j = {0};
    job_start(&j, "signals-terminal", 1);
    job_wait_rows(&j, 2);
    assert_int_equal(write(j.terminal, "\003", 1), 1);
    assert_int_equal(job_end(&j), 128 + SIGINT);
    assert_true(size_in_run(&j, "checkpoints/last/state.safetensors") > 0);

    job_start(&j, "signals-terminal", 1); /* sent by a program, at a terminal or not: 3 */
    job_wait_rows(&j, 2);
    kill(j.pid, SIGINT);
    assert_int_equal(job_end(&j), 3);
}

/* ---- masks
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct task {
    uint64_t blocked, caught;
} task;

static size_t tasks_read(const job *j, task *out, size_t most)
{
    char path[FOLDER_PATH], line[256];
    snprintf(path, sizeof path, "/proc/%d/task", (int)j->pid);
    DIR *folder = opendir(path);
    size_t count = 0;
    for (struct dirent *e; folder && count < most && (e = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", (int)j->pid, e->d_name);
        FILE *file = *e->d_name == '.' ? NULL : fopen(path, "r");
        unsigned long long blocked = 0, caught = 0;
        int found = 0;
        while (file && fgets(line, sizeof line, file))
            found += sscanf(line, "SigBlk: %llx", &blocked) == 1 || sscanf(line, "SigCgt: %llx", &caught) == 1;
        if (file)
            fclose(file);
        if (found == 2)
            out[count++] = (task){blocked, caught};
    }
    if (folder)
        closedir(folder);
    return count;
}

/* Bit n - 1 is signal n, as in /proc. 32 and 33 belong to the C library and cannot be blocked. */
static uint64_t outside_bits(void)
{
    sigset_t set;
    uint64_t bits = 0;
    signals_outside(&set);
    for (int i = 1; i <= 64; i++)
        if (i != 32 && i != 33 && i != SIGKILL && i != SIGSTOP && sigismember(&set, i) == 1)
            bits |= UINT64_C(1) << (i - 1);
    return bits;
}

static void every_thread_but_one_blocks_all_signals_from_outside_and_none_is_caught(void **state)
{
    (void)state;
    enum { SAMPLES = 50, LEAST = 1 + 1 + 2 + 2 }; /* main, the one that waits, OpenMP's, the loader's */
    uint64_t outside = outside_bits();
    job j = {0};
    job_start(&j, "signals-masks", 0);
    job_wait_rows(&j, 1);
    for (int sample = 0; sample < SAMPLES;) {
        task tasks[64];
        size_t count = tasks_read(&j, tasks, COUNT(tasks)), open = 0;
        assert_true(job_lives(&j));
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(tasks[i].caught & outside, 0);
            open += (tasks[i].blocked & outside) != outside;
        }
        assert_int_equal(open, 1);
        sample += count >= LEAST;
        usleep(1000);
    }
    kill(j.pid, SIGTERM);
    assert_int_equal(job_end(&j), 3);
}

static int has_only_usr2_blocked(void)
{
    sigset_t now;
    int right = sigprocmask(SIG_BLOCK, NULL, &now) == 0;
    for (int i = 1; i < 32; i++)
        right &= sigismember(&now, i) == (i == SIGUSR2);
    return right;
}

static int child_begins_right(void)
{
    int state = 1;
    pid_t child = fork();
    if (child == 0)
        _exit(has_only_usr2_blocked() ? 0 : 1);
    return waitpid(child, &state, 0) == child && state == 0;
}

static void a_child_begins_with_the_mask_the_command_began_with(void **state)
{
    (void)state;
    int code = 1;
    pid_t command = fork(); /* stands for the command */
    if (command == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        sigprocmask(SIG_SETMASK, &set, NULL);
        signals_hold();
        if (has_only_usr2_blocked() || signals_start("test") != BERLU_OK || !child_begins_right())
            _exit(2);
        signals_hand_on(); /* as before an exec of itself, and after it */
        signals_hold();
        _exit(!getenv("BERLU_SIGNAL_MASK") && child_begins_right() ? 0 : 3);
    }
    assert_int_equal(waitpid(command, &code, 0), command);
    assert_int_equal(code, 0);
}

/* ---- limits
 * ------------------------------------------------------------------------------------------------------------ */

static void a_limit_on_the_size_of_files_is_an_error_and_no_signal(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], run[FOLDER_PATH];
    struct rlimit before, small;
    command_result r;
    if (SANITIZED_THREAD)
        skip(); /* its own memory is a file's */
    folder_path(run, folder_fresh(folder, "signals-size"), "run");
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){100 << 10, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    command_run(&r, "train", "--model", "vit_micro", "--image-size", "16", "--patch", "8", "--data", "synthetic",
                "--synthetic-images", "64", "--act", "berlu", "--batch", "8", "--epochs", "1", "--eval-batch", "16",
                "--lr", "1e-3", "--quiet", "--run", run, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, strerror(EFBIG)));
    command_free(&r);
}

static void more_than_four_threads_a_core_are_cut_and_reported(void **state)
{
    (void)state;
    command_result r;
    command_run(&r, "doctor", "--json", "--threads", "1024", NULL);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.err, "warning: 1024 threads"));
    assert_null(strstr(r.out, "\"threads\": 1024"));
    command_free(&r);
    command_run(&r, "doctor", "--threads", "4", NULL);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.err, "");
    command_free(&r);
}

/* Stacks of 4 GiB in an address space of 6: the second one does not fit. */
static void threads_that_the_system_refuses_are_an_error_before_anything_is_written(void **state)
{
    (void)state;
    if (SANITIZED)
        skip(); /* terabytes of addresses are reserved */
    struct rlimit before, large;
    command_result r;
    getrlimit(RLIMIT_STACK, &before);
    large = (struct rlimit){(rlim_t)4 << 30, before.rlim_max};
    if (setrlimit(RLIMIT_STACK, &large) != 0)
        skip();
    command_run_with(&r, (char *[]){"berlu", "doctor", "--threads", "4", NULL}, (size_t)6 << 30, NULL);
    setrlimit(RLIMIT_STACK, &before);
    assert_int_equal(r.code, 1);
    assert_string_equal(r.out, "");
    assert_int_equal(strncmp(r.err, "berlu: doctor: 2 of 4 threads can be started", 44), 0);
    assert_int_equal(strchr(r.err, '\n') - r.err + 1, strlen(r.err));
    command_free(&r);
}

static void an_exit_by_a_library_is_explained(void **state)
{
    (void)state;
    for (int done = 0; done < 2; done++) {
        char line[512] = "";
        int ends[2], code;
        assert_int_equal(pipe(ends), 0);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            machine_guard("train");
            if (done)
                machine_guard(NULL);
            exit(1); /* as libgomp does */
        }
        close(ends[1]);
        FILE *file = fdopen(ends[0], "r");
        char *got = fgets(line, sizeof line, file);
        fclose(file);
        assert_int_equal(waitpid(child, &code, 0), child);
        assert_int_equal(WEXITSTATUS(code), 1);
        if (done)
            assert_null(got);
        else
            assert_int_equal(strncmp(line, "berlu: train: a library ended the process", 41), 0);
    }
}

static void a_setting_that_is_not_utf8_is_refused_by_name_and_nothing_is_written(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], run[FOLDER_PATH];
    command_result r;
    folder_path(run, folder_fresh(folder, "signals-utf8"), "r\xff");
    for (int which = 0; which < 2; which++) {
        command_run(&r, "train", "--model", "vit_micro", "--data", which ? "d\xe2\x82" : "synthetic", "--act", "berlu",
                    "--run", which ? folder : run, NULL);
        assert_int_equal(r.code, 2);
        assert_non_null(strstr(r.err, which ? "data: 'd\\xe2...' is not UTF-8" : "\\xff...' is not UTF-8"));
        command_free(&r);
    }
    assert_int_equal(rmdir(folder), 0); /* still empty */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_begins_with_the_mask_the_command_began_with),
        cmocka_unit_test(an_exit_by_a_library_is_explained),
        cmocka_unit_test(every_signal_that_asks_for_a_stop_saves_and_exits_3),
        cmocka_unit_test(a_signal_at_the_first_line_of_the_command_saves_and_exits_3),
        cmocka_unit_test(a_signal_that_was_ignored_at_the_start_stays_ignored),
        cmocka_unit_test(a_second_signal_is_the_same_request_and_a_third_ends_at_once),
        cmocka_unit_test(ctrl_c_at_a_terminal_saves_and_ends_by_the_signal),
        cmocka_unit_test(every_thread_but_one_blocks_all_signals_from_outside_and_none_is_caught),
        cmocka_unit_test(a_limit_on_the_size_of_files_is_an_error_and_no_signal),
        cmocka_unit_test(more_than_four_threads_a_core_are_cut_and_reported),
        cmocka_unit_test(threads_that_the_system_refuses_are_an_error_before_anything_is_written),
        cmocka_unit_test(a_setting_that_is_not_utf8_is_refused_by_name_and_nothing_is_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
