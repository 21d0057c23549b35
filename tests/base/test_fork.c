/* test_fork.c - a forked process computes, and gives the same bits. SPDX-License-Identifier: MIT
 *
 * Each child has an alarm: before threads.c watched forks, a child of a process with threads
 * never returned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <berlu/berlu.h>

#include "base/threads.h"

enum { NUMBERS = 1 << 20, PATIENCE = 60 };

/* 0 when `check` is true in a child of this process. */
static int in_child(int (*check)(void *), void *context)
{
    int state = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        _exit(check(context) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &state, 0), child);
    return state;
}

static int has_all_threads(void *context)
{
    (void)context;
    return threads_default() == omp_get_max_threads() && threads_granted(3) == 3;
}

/* Comes first: this process has had no second thread yet. */
static void a_child_of_a_process_without_threads_may_have_some(void **state)
{
    (void)state;
    omp_set_num_threads(2);
    assert_int_equal(in_child(has_all_threads, NULL), 0);
}

typedef struct work {
    berlu_act *act;
    float *x, *y, *dx;
    float grad;
} work;

static void work_run(work *w, int threads)
{
    float alpha = 0.02f;
    berlu_act_call call = {.rows = NUMBERS, .channels = 1, .x = w->x, .dy = w->x, .dx = w->dx};
    call.param[0] = (berlu_act_param_arg){.value = &alpha, .grad = &w->grad};
    call.workspace_bytes = berlu_act_workspace(w->act, BERLU_ACT_BACKWARD, &call);
    call.workspace = malloc(call.workspace_bytes);
    if (berlu_act_forward(w->act, BERLU_F32, w->y, w->x, NUMBERS) != BERLU_OK ||
        berlu_act_run(w->act, BERLU_ACT_BACKWARD, &call, &(berlu_exec){.threads = threads}) != BERLU_OK)
        abort();
    free(call.workspace);
}

static int same_bits_on_one_thread(void *context)
{
    work *parent = context, own = *parent;
    own.y = calloc(NUMBERS, sizeof *own.y), own.dx = calloc(NUMBERS, sizeof *own.dx);
    int same = own.y && own.dx && threads_default() == 1 && threads_granted(7) == 1;
    for (int threads = 0; same && threads < 5; threads += 4) { /* a number that is asked for is not taken either */
        work_run(&own, threads);
        same = memcmp(own.y, parent->y, NUMBERS * sizeof *own.y) == 0 &&
               memcmp(own.dx, parent->dx, NUMBERS * sizeof *own.dx) == 0 && memcmp(&own.grad, &parent->grad, 4) == 0;
    }
    free(own.y);
    free(own.dx);
    return same;
}

/* A server that forks, and whose children fork. */
static int same_bits_in_a_grandchild(void *context)
{
    int state = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        _exit(same_bits_on_one_thread(context) ? 0 : 1);
    }
    return waitpid(child, &state, 0) == child && state == 0;
}

static void a_child_of_a_process_with_threads_computes_the_same_bits_on_one(void **state)
{
    (void)state;
    work w = {.x = malloc(NUMBERS * sizeof(float)),
              .y = malloc(NUMBERS * sizeof(float)),
              .dx = malloc(NUMBERS * sizeof(float))};
    assert_true(w.x && w.y && w.dx);
    assert_int_equal(berlu_act_make(&w.act, "berlu:eps=0.5"), BERLU_OK);
    for (int i = 0; i < NUMBERS; i++)
        w.x[i] = (float)(i % 4001 - 2000) / 1000;
    work_run(&w, 2);
    assert_int_equal(in_child(same_bits_on_one_thread, &w), 0);
    assert_int_equal(in_child(same_bits_in_a_grandchild, &w), 0);
    assert_int_equal(threads_default(), 2); /* the parent goes on as before */
    work_run(&w, 2);
    berlu_act_free(w.act);
    free(w.x), free(w.y), free(w.dx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_of_a_process_without_threads_may_have_some),
        cmocka_unit_test(a_child_of_a_process_with_threads_computes_the_same_bits_on_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
