/* test_signals.c - a host's signal handler never runs while the stack pointer is not on the stack.
 * SPDX-License-Identifier: MIT
 *
 * A timer interrupts products on two threads some thousand times a second. The handler has a
 * stack of its own and looks where the interrupted code had its stack pointer: anywhere but on
 * the thread's stack, an ordinary handler would have written its frame into somebody's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#include "base/status.h"
#include "cpu/gemm.h"

enum { ENOUGH = 100 };

static atomic_int on_stack, elsewhere;
static _Thread_local uintptr_t stack_low, stack_high;

static uintptr_t stack_pointer(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.sp;
#else
    return stack_low;
#endif
}

static void look(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    uintptr_t at = stack_pointer(context);
    if (stack_low == 0)
        return; /* a thread of somebody else */
    atomic_fetch_add(at >= stack_low && at <= stack_high ? &on_stack : &elsewhere, 1);
}

/* Bounds of the calling thread's stack, and another one for its handlers. */
static void *thread_enter(void)
{
    pthread_attr_t attr;
    void *low, *other = malloc(1 << 16);
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    sigaltstack(&(stack_t){.ss_sp = other, .ss_size = 1 << 16}, NULL);
    stack_high = (uintptr_t)low + size;
    stack_low = (uintptr_t)low;
    return other;
}

static void thread_leave(void *other)
{
    stack_low = 0;
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    free(other);
}

/* Shapes of vit_micro and of vit_tiny_cifar: tokens x width x width, as stored and transposed. */
static void products(float *data)
{
    static const int64_t shapes[][3] = {{544, 64, 64}, {544, 256, 64}, {260, 192, 192}, {260, 768, 192}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int turned = 0; turned < 2; turned++) {
            int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
            gemm(m, n, k, 1, (gemm_matrix){data, k, 0}, (gemm_matrix){data + m * k, turned ? k : n, turned}, 0,
                 data + m * k + n * k, n);
        }
}

static void no_signal_finds_the_stack_pointer_outside_of_the_stack(void **state)
{
    (void)state;
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART}, before;
    sigaction(SIGPROF, &action, &before);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 200}, {0, 200}}, NULL);
    for (int threads = 1; threads <= 2; threads++) {
        atomic_store(&on_stack, 0);
        atomic_store(&elsewhere, 0);
#pragma omp parallel num_threads(threads)
        {
            enum { NUMBERS = 1 << 20 };
            float *data = calloc(NUMBERS, sizeof *data);
            void *other = thread_enter();
            while (data && atomic_load(&on_stack) + atomic_load(&elsewhere) < ENOUGH)
                products(data);
            thread_leave(other);
            free(data);
        }
        assert_true(atomic_load(&on_stack) > 0);
        assert_int_equal(atomic_load(&elsewhere), 0);
    }
    setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
    sigaction(SIGPROF, &before, NULL);
}

/* Products leave the thread's mask as they found it. */
static void a_product_leaves_the_mask_alone(void **state)
{
    (void)state;
    sigset_t some, before, after;
    float *data = calloc(1 << 20, sizeof *data);
    assert_non_null(data);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &some, &before);
    products(data);
    pthread_sigmask(SIG_SETMASK, &before, &after);
    for (int i = 1; i < SIGRTMAX; i++)
        assert_int_equal(sigismember(&after, i), i == SIGUSR2);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_signal_finds_the_stack_pointer_outside_of_the_stack),
                                       cmocka_unit_test(a_product_leaves_the_mask_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
