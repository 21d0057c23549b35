/* signals.h - keeps signals away from a thread. SPDX-License-Identifier: MIT
 *
 * A handler runs on the stack of the thread it interrupts. Code generated at run time by a
 * matrix library may point the stack pointer into heap memory, and then the signal's frame
 * overwrites whatever lies below it. A thread that computes therefore blocks every signal that
 * comes from outside. Those that report a fault of the thread's own instruction stay open:
 * blocked they would end the process all the same, without the host's handler or a sanitizer
 * seeing them. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

/* All signals but the synchronous ones. */
static inline void signals_outside(sigset_t *set)
{
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigfillset(set);
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        sigdelset(set, synchronous[i]);
}

/* Blocks them on the calling thread; threads that it starts inherit that. `before` is for
 * signals_restore(). */
static inline void signals_block(sigset_t *before)
{
    sigset_t outside;
    signals_outside(&outside);
    pthread_sigmask(SIG_BLOCK, &outside, before);
}

static inline void signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
