/* signals.h - signals that request a command to save and exit. SPDX-License-Identifier: MIT
 *
 *     signals_hold();                      // main(), before any thread: blocks delivery
 *     signals_start(name);                 // one thread receives signals, also pending ones
 *     ... while (!*signals_stop()) ...
 *     return signals_finish(code);
 *
 * No handler is ever installed (base/signals.h explains why). SIGINT, SIGTERM, SIGHUP, SIGUSR1,
 * SIGUSR2 and SIGXCPU request a stop, unless they were ignored when the process started (nohup,
 * background jobs): those stay ignored. A second one within ten seconds counts as the same request,
 * because launchers send it twice; a later one ends the process immediately. Only commands that
 * save a state do this (main.c); all others have the system's defaults. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdatomic.h>

#include <berlu/status.h>

void signals_hold(void);

/* Around an exec of this program by itself: passes the initial mask on and keeps signals
 * blocked. */
void signals_hand_on(void);
void signals_keep(void); /* the exec failed */

/* A child of fork() gets the initial mask of the process; posix_spawn() would need it as an
 * attribute, so use fork. `name` is the command's, for the line printed when it ends
 * immediately. */
berlu_status signals_start(const char *name);

/* Whether a library loaded into this process has installed a handler for any external signal. */
int signals_caught(void);

/* Non-zero once a stop was requested. */
const atomic_int *signals_stop(void);

/* Returns the exit code `code`, except that a stop or success after Ctrl-C at a terminal ends the
 * process here by that signal, so that a shell loop over runs ends too. */
int signals_finish(int code);

#endif
