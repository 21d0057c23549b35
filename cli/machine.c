/* machine.c - see machine.h. SPDX-License-Identifier: MIT
 *
 * libgomp ends the process when it cannot start a thread, and offers no way to check beforehand. So
 * as many threads as it may need are started here once, before anything is written, and a failure
 * is an ordinary error. If the limit is hit later (because of another process, or lack of memory),
 * libgomp prints its own line and calls exit(): an exit handler adds advice. */
#include "machine.h"

#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"

static const char *guarded; /* the running command */

static void exit_explain(void)
{
    if (guarded)
        fprintf(stderr,
                "berlu: %s: a library ended the process, most likely because the system refused a thread; use fewer "
                "(--threads) or raise the limits (ulimit -u, ulimit -v); what was saved before is whole\n",
                guarded);
}

void machine_guard(const char *command)
{
    static int registered;
    if (!registered)
        registered = atexit(exit_explain) == 0;
    guarded = command;
}

static void *wait_for_the_others(void *lock)
{
    pthread_mutex_lock(lock); /* held until all are started: they must exist simultaneously */
    pthread_mutex_unlock(lock);
    return NULL;
}

/* The number of threads that could be started, up to `count`; `*error` is the reason for fewer. */
static int threads_try(int count, int *error)
{
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int started = 0;
    *error = threads ? 0 : ENOMEM;
    pthread_mutex_lock(&lock);
    while (*error == 0 && started < count)
        if ((*error = pthread_create(&threads[started], NULL, wait_for_the_others, &lock)) == 0)
            started++;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return started;
}

berlu_status machine_threads(int asked)
{
    int most = threads_most(), error, threads = asked > 0 ? asked : omp_get_max_threads();
    if (threads > most) {
        fprintf(stderr, "warning: %d threads are more than four for each of %d cores; %d are used\n", threads, most / 4,
                most);
        threads = most;
    }
    int others = threads - 1, started = others > 0 ? threads_try(others, &error) : 0;
    if (started < others)
        return berlu_fail(BERLU_ERR_MEMORY,
                          "%d of %d threads can be started: %s; use fewer (--threads) or raise the "
                          "limits (ulimit -u, ulimit -v)",
                          started + 1, threads, strerror(error));
    if (asked > 0 || threads == most)
        omp_set_num_threads(threads);
    return BERLU_OK;
}

/* Checks the requested instruction set before anything is computed. Backends and activations read
 * BERLU_ISA when they are created, which is after this: setting it applies --isa to all of them. */
berlu_status machine_prepare(const options *o)
{
    cpu_isa isa = CPU_BEST;
    TRY(machine_threads(options_threads(o)));
    if (!options_given(o, "isa"))
        return cpu_isa_pick(&isa);
    const char *asked = options_string(o, "isa");
    TRY(cpu_isa_parse(&isa, asked));
    if (isa != CPU_BEST && !cpu_has(isa))
        return berlu_fail(BERLU_ERR_UNSUPPORTED, "option --isa: this processor has no %s", asked);
    if (setenv("BERLU_ISA", asked, 1) != 0)
        return berlu_fail_memory(strlen(asked), "the environment");
    return BERLU_OK;
}
