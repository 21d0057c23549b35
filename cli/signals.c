/* signals.c - see signals.h. SPDX-License-Identifier: MIT
 *
 * The waiting thread blocks only the signals it waits for, so every other signal is delivered to it
 * with its default action: Ctrl-Z stops, Ctrl-\ dumps a core. A signal that is blocked everywhere
 * reaches sigwaitinfo() even if it is ignored, so ignored ones must not be in the set. */
#include "signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"
#include "base/status.h"

static const char handed[] = "BERLU_SIGNAL_MASK"; /* the initial mask, passed across signals_hand_on() */
static const uint64_t patience = 10000000000u;    /* ns in which a second signal is the same request */

static sigset_t original, asking; /* the initial mask of the process; signals that request a stop */
static const char *command_name;
static atomic_int stop, at_terminal;

enum { SIGNALS = 64 };

void signals_hold(void)
{
    const char *text = getenv(handed);
    signals_block(&original);
    if (!text)
        return;
    sigemptyset(&original);
    for (int i = 1; i <= SIGNALS && text[i - 1]; i++)
        if (text[i - 1] == '1')
            sigaddset(&original, i);
    unsetenv(handed);
}

void signals_hand_on(void)
{
    char text[SIGNALS + 1] = "";
    for (int i = 1; i <= SIGNALS; i++)
        text[i - 1] = sigismember(&original, i) == 1 ? '1' : '0';
    setenv(handed, text, 1); /* on failure the new process image regards the held mask as the original */
}

void signals_keep(void)
{
    unsetenv(handed);
}

/* Gives a forked process our initial mask. */
static void child_begin(void)
{
    signals_restore(&original);
}

/* Performs the signal's default action. A run needs no cleanup: its files are consistent at any
 * moment. */
static _Noreturn void end_by(int number)
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    raise(number);
    _exit(128 + number);
}

/* The kernel repeats SIGXCPU every second beyond the limit of processor time: always one
 * request. */
static void *signals_take(void *unused)
{
    sigset_t mine = original;
    uint64_t first = 0;
    int count = 0;
    for (int i = 1; i <= SIGNALS; i++)
        if (sigismember(&asking, i) == 1)
            sigaddset(&mine, i);
    signals_restore(&mine);
    for (;;) {
        siginfo_t info;
        int number = sigwaitinfo(&asking, &info);
        if (number < 0 || (count > 0 && number == SIGXCPU))
            continue;
        if (++count == 1) {
            first = clock_ns();
            int typed = number == SIGINT && info.si_code == SI_KERNEL; /* kill() would be SI_USER */
            if (typed && isatty(STDERR_FILENO))
                fputs("\nstopping: the state is saved first (two more end at once)\n", stderr);
            atomic_store(&at_terminal, typed);
            atomic_store(&stop, 1);
        } else if (count > 2 || clock_ns() - first > patience) {
            fprintf(stderr, "berlu: %s: ended at once by signal %d; what was saved before is whole\n", command_name,
                    number);
            end_by(number);
        }
    }
    return unused;
}

static void asking_choose(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
    sigemptyset(&asking);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&asking, numbers[i]);
    }
}

berlu_status signals_start(const char *name)
{
    enum { STACK = 256 << 10 }; /* small: the usual megabytes would count against a memory limit */
    pthread_t thread;
    pthread_attr_t how;
    command_name = name;
    asking_choose();
    pthread_atfork(NULL, NULL, child_begin);
    int failed = pthread_attr_init(&how);
    if (!failed) {
        pthread_attr_setstacksize(&how, STACK);
        pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
        failed = pthread_create(&thread, &how, signals_take, NULL);
        pthread_attr_destroy(&how);
    }
    return failed ? berlu_fail(BERLU_ERR_MEMORY, "no thread to wait for signals: %s", strerror(failed)) : BERLU_OK;
}

int signals_caught(void)
{
    sigset_t outside;
    signals_outside(&outside);
    for (int i = 1; i <= SIGNALS; i++) {
        struct sigaction now;
        if (sigismember(&outside, i) == 1 && sigaction(i, NULL, &now) == 0 && now.sa_handler != SIG_DFL &&
            now.sa_handler != SIG_IGN)
            return 1;
    }
    return 0;
}

const atomic_int *signals_stop(void)
{
    return &stop;
}

int signals_finish(int code)
{
    if (atomic_load(&at_terminal) && (code == 0 || code == 3)) {
        fflush(NULL);
        end_by(SIGINT);
    }
    return code;
}
