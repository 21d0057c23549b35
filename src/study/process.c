/* process.c - starts a child with pipes, or runs it to its end and keeps its output.
 * SPDX-License-Identifier: MIT
 *
 * process.h has the promises. study_process_start() forks and leaves the rest to child_run();
 * study_process_run() reads both pipes until they end and turns the exit code into a status with
 * the last line as its message. */
#include "study/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MOST = 1 << 20 };

static berlu_status pipes_make(int out[2], int err[2])
{
    if (pipe2(out, O_CLOEXEC) != 0)
        return berlu_fail(BERLU_ERR_IO, "a pipe to a worker: %s", strerror(errno));
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[0]);
        close(out[1]);
        return berlu_fail(BERLU_ERR_IO, "a pipe to a worker: %s", strerror(errno));
    }
    return BERLU_OK;
}

/* Runs in the child: default signals, an end together with the parent, output into the pipes. */
static void child_run(char *const *words, int out, int err, int device, pid_t parent)
{
    char visible[16];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* the parent died before prctl() */
        _exit(3);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (device >= 0) {
        snprintf(visible, sizeof visible, "%d", device);
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    }
    execv(words[0], words);
    dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

berlu_status study_process_start(study_process *p, char *const *words, int device)
{
    int out[2], err[2];
    TRY(pipes_make(out, err));
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        child_run(words, out[1], err[1], device, parent);
    int reason = errno;
    close(out[1]);
    close(err[1]);
    if (child < 0) {
        close(out[0]);
        close(err[0]);
        return berlu_fail(BERLU_ERR_IO, "starting a worker: %s", strerror(reason));
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    *p = (study_process){.id = child, .out = out[0], .err = err[0]};
    return BERLU_OK;
}

/* Returns 0 at the end of the output. Bytes beyond the limit are read and dropped, so that the
 * writer never blocks. */
static int output_take(int fd, text *out)
{
    char piece[4096];
    ssize_t got = read(fd, piece, sizeof piece);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (out->length + (size_t)got <= OUTPUT_MOST)
        text_bytes(out, piece, (size_t)got);
    return got > 0;
}

static const char *last_line(const text *err)
{
    size_t end = err->length;
    while (end && err->data[end - 1] == '\n')
        end--;
    size_t at = end;
    while (at && err->data[at - 1] != '\n')
        at--;
    return at < end ? err->data + at : "no message";
}

static berlu_status exit_status(int code, const text *err)
{
    if (WIFEXITED(code) && WEXITSTATUS(code) == 0)
        return text_status(err);
    /* Ctrl-C in a terminal reaches the child too, maybe before this process has noticed it. */
    if (WIFSIGNALED(code) && (WTERMSIG(code) == SIGINT || WTERMSIG(code) == SIGTERM || WTERMSIG(code) == SIGHUP))
        return berlu_fail(BERLU_ERR_STOPPED, "stopped");
    if (WIFSIGNALED(code))
        return berlu_fail(BERLU_ERR_IO, "a worker ended by signal %d", WTERMSIG(code));
    const char *line = last_line(err);
    return berlu_fail(WEXITSTATUS(code) == 2 ? BERLU_ERR_INPUT : BERLU_ERR_IO, "%.*s", (int)strcspn(line, "\n"), line);
}

berlu_status study_process_run(char *const *words, int device, const atomic_int *stop, text *out, text *err)
{
    study_process p;
    int open_out = 1, open_err = 1, stopped = 0, code = 0;
    TRY(study_process_start(&p, words, device));
    while (open_out || open_err) {
        struct pollfd fds[2] = {{.fd = open_out ? p.out : -1, .events = POLLIN},
                                {.fd = open_err ? p.err : -1, .events = POLLIN}};
        if (!stopped && stop && *stop) {
            stopped = 1;
            kill((pid_t)p.id, SIGTERM);
        }
        poll(fds, 2, 250);
        if (open_out && fds[0].revents)
            open_out = output_take(p.out, out);
        if (open_err && fds[1].revents)
            open_err = output_take(p.err, err);
    }
    close(p.out);
    close(p.err);
    while (waitpid((pid_t)p.id, &code, 0) < 0 && errno == EINTR)
        ;
    berlu_status status = text_status(out);
    if (status == BERLU_OK)
        status = exit_status(code, err);
    return stopped ? berlu_fail(BERLU_ERR_STOPPED, "stopped") : status;
}
