/* test_progress.c - the progress line in pseudo-terminals of several widths.
 * SPDX-License-Identifier: MIT
 *
 * A child draws (or is the command itself) with a pseudo-terminal as its stderr; the test reads its
 * output and emulates a terminal: "\r\033[K" restarts a line, colours take no column. A line as
 * wide as the window would wrap, and the next redraw would leave a row of it: this must never
 * happen. The test does not wait: the child moves the start of its work into the past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "progress.h"
#include "support/folder.h"

enum { SEEN = 1 << 20 };
static char seen[SEEN];

/* Runs `child` with a terminal of so many columns as its stderr and keeps what appears there.
 * Returns the exit code. */
static int in_terminal(int columns, void (*child)(void))
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        skip();
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_true(slave >= 0);
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(slave, STDERR_FILENO);
        close(slave);
        close(master);
        child();
        _exit(0);
    }
    close(slave);
    size_t length = 0;
    ssize_t count;
    while ((count = read(master, seen + length, SEEN - 1 - length)) > 0 || (count < 0 && errno == EINTR))
        length += count > 0 ? (size_t)count : 0;
    seen[length] = 0;
    close(master);
    int state = 0;
    assert_int_equal(waitpid(pid, &state, 0), pid);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

/* The longest redrawn line, in columns, as a terminal without wrapping would show it; `last` is the
 * last that was not empty, without colours. */
static size_t widest_redraw(char *last, size_t size)
{
    size_t most = 0;
    char line[4096];
    for (const char *at = strstr(seen, "\r\033[K"); at; at = strstr(at, "\r\033[K")) {
        size_t columns = 0;
        for (at += 4; *at && *at != '\r' && *at != '\n' && columns < sizeof line - 1;) {
            if (*at == '\033') {
                at += strcspn(at, "mK");
                at += *at != 0;
                continue;
            }
            line[columns++] = *at++;
        }
        line[columns] = 0;
        if (strncmp(at, "\r\n", 2) == 0) /* a line of the log, printed once; the terminal writes \r\n for \n */
            continue;
        most = columns > most ? columns : most;
        if (columns > 0)
            snprintf(last, size, "%.500s", line);
    }
    return most;
}

static progress started(const char *note)
{
    progress p;
    progress_start(&p, "train", "images", 7680, 0);
    p.began -= 10000000000u;
    p.rate = 1068;
    progress_note(&p, "%s", note);
    return p;
}

static void draw_a_training(void)
{
    progress p = started("epoch 2/3 evaluating train set, loss 2.2581, top1 12.30, lr 2.69e-05");
    for (uint64_t done = 0; done <= 7680; done += 96) {
        p.shown = 0;
        progress_step(&p, done);
    }
}

static void draw_one_step(void)
{
    progress p = started("epoch 2/3, loss 2.2581, top1 12.30, lr 2.69e-05");
    progress_step(&p, 3840);
}

static void a_line_never_reaches_the_edge_of_the_window(void **state)
{
    (void)state;
    char last[512] = "";
    for (int columns = 2; columns <= 200; columns += columns < 50 ? 1 : 10) {
        assert_int_equal(in_terminal(columns, draw_a_training), 0);
        size_t widest = widest_redraw(last, sizeof last);
        if (widest == 0 || widest >= (size_t)columns || strchr(seen, '\n'))
            fail_msg("%d columns: a line of %zu, '%s'", columns, widest, last);
    }
}

static size_t times(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void a_narrow_terminal_shows_what_matters(void **state)
{
    (void)state;
    char last[512] = "";
    setenv("NO_COLOR", "1", 1);
    in_terminal(150, draw_one_step);
    widest_redraw(last, sizeof last);
    assert_string_equal(last, "train [==============              ]  50% 3840/7680 images, 1068/s, 10.0 s left, "
                              "epoch 2/3, loss 2.2581, top1 12.30, lr 2.69e-05");
    in_terminal(80, draw_one_step);
    widest_redraw(last, sizeof last);
    assert_string_equal(last, "train [=====     ]  50% 1068/s, 10.0 s left, epoch 2/3, loss 2.2581, top1 12.30");
    in_terminal(40, draw_one_step);
    widest_redraw(last, sizeof last);
    assert_string_equal(last, "train 50% 10.0 s left, epoch 2/3");
    unsetenv("NO_COLOR");
}

static void colours_are_for_terminals_that_want_them(void **state)
{
    (void)state;
    static const struct {
        const char *terminal, *none;
        int coloured;
    } cases[] = {{"xterm", NULL, 1}, {"xterm", "", 1}, {"xterm", "1", 0}, {"dumb", NULL, 0}, {NULL, NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cases[i].terminal ? setenv("TERM", cases[i].terminal, 1) : unsetenv("TERM");
        cases[i].none ? setenv("NO_COLOR", cases[i].none, 1) : unsetenv("NO_COLOR");
        in_terminal(100, draw_one_step);
        assert_int_equal(strstr(seen, "\033[32m=") != NULL, cases[i].coloured);
        assert_int_equal(strstr(seen, "\033[0m") != NULL, cases[i].coloured);
    }
    unsetenv("NO_COLOR");
}

static void train_for_a_moment(void)
{
    char path[4096];
    const char *build = getenv("BERLU_BUILD_DIR");
    snprintf(path, sizeof path, "%s/berlu", build ? build : ".");
    execl(path, "berlu", "train", "--model", "vit_micro", "--data", "synthetic", "--act", "berlu", "--recipe", "plain",
          "--patch", "8", "--epochs", "1", "--synthetic-images", "6000", "--run", "run", (char *)NULL);
    _exit(127);
}

/* However fast the machine is: what was redrawn fitted, with one rate in a line. */
static void a_training_fits_40_columns(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], last[512] = "", old[4096];
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(folder_fresh(folder, "cli_progress")), 0);
    assert_int_equal(in_terminal(40, train_for_a_moment), 0);
    assert_true(widest_redraw(last, sizeof last) < 40);
    assert_true(times(last, "/s") <= 1);
    assert_int_equal(chdir(old), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_never_reaches_the_edge_of_the_window),
        cmocka_unit_test(a_narrow_terminal_shows_what_matters),
        cmocka_unit_test(colours_are_for_terminals_that_want_them),
        cmocka_unit_test(a_training_fits_40_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
