/* signals.h - a signal asks a command to save and end. SPDX-License-Identifier: MIT
 *
 *     signals_hold();                      // main(), before any thread: nothing is delivered any more
 *     signals_start(name);                 // one thread takes what comes, also what came since signals_hold()
 *     ... while (!*signals_stop()) ...
 *     return signals_finish(code);
 *
 * No handler is ever installed (base/signals.h says why). SIGINT, SIGTERM, SIGHUP, SIGUSR1,
 * SIGUSR2 and SIGXCPU ask for a stop, unless they were ignored when the process began (nohup,
 * jobs in the background): those stay ignored. A second one within ten seconds is the same
 * request, because launchers send it twice; after that the next one ends the process at once.
 * Only commands that keep a state do this (main.c); all others keep the system's defaults. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdatomic.h>

#include <berlu/status.h>

void signals_hold(void);

/* Around an exec of this program by itself: what the process began with goes along, and signals
 * stay held meanwhile. */
void signals_hand_on(void);
void signals_keep(void); /* the exec failed */

/* A child of fork() gets the mask back that the process began with; posix_spawn() would need
 * that as an attribute, so fork. `name` is the command's, for the line that says that it ended
 * at once. */
berlu_status signals_start(const char *name);

/* Whether this process has a handler for any signal from outside: the work of a library that was
 * loaded into it. */
int signals_caught(void);

/* Non-zero once a stop was asked for. */
const atomic_int *signals_stop(void);

/* The exit code to end with: `code`, except that a stop or success after Ctrl-C at a terminal
 * ends the process here, by that signal, so that a shell's loop over runs ends with it. */
int signals_finish(int code);

#endif
