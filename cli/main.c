/* main.c - finds the command, parses its options, runs it, reports failures.
 * SPDX-License-Identifier: MIT
 *
 * This is the only place that maps a status to an exit code and prints the error line. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/text.h"
#include "commands.h"
#include "commit.h"
#include "cpu/gemm.h"
#include "machine.h"
#include "output.h"
#include "plot_target.h"
#include "progress.h"
#include "signals.h"

static int exit_code(berlu_status status)
{
    switch (status) {
    case BERLU_OK:
        return 0;
    case BERLU_ERR_ARG:
    case BERLU_ERR_INPUT:
    case BERLU_ERR_UNSUPPORTED:
        return 2; /* bad input, nothing was written */
    case BERLU_ERR_STOPPED:
        return 3; /* interrupted, state saved */
    case BERLU_ERR_BUSY:
        return 4; /* another process trains in this run */
    default:
        return 1; /* memory, input and output, device, a number that is not finite */
    }
}

static int tell(const char *name, berlu_status status)
{
    int red = status != BERLU_OK && terminal_colours(STDERR_FILENO);
    if (status != BERLU_OK)
        fprintf(stderr, "%sberlu: %s%s%s%s\n", red ? "\033[31m" : "", name, *name ? ": " : "", red ? "\033[0m" : "",
                berlu_last_error());
    return exit_code(status);
}

/* Whether `name` is the command `cmd` or the group it belongs to ("act" of "act eval"). */
static int in_group(const command *cmd, const char *group)
{
    size_t length = strlen(group);
    return strncmp(cmd->name, group, length) == 0 && cmd->name[length] == ' ';
}

static void list_print(FILE *file, const char *group)
{
    for (const command *const *cmd = commands; *cmd; cmd++)
        if (!group || in_group(*cmd, group))
            fprintf(file, "  %-18s ", (*cmd)->name), help_wrap(file, (*cmd)->summary, 21, 21, "");
}

static void help_print(FILE *file)
{
    fputs("berlu - smooth activation functions: a library, an engine and a laboratory\n\n"
          "usage: berlu COMMAND [options]\n\ncommands\n",
          file);
    list_print(file, NULL);
    fputs("\n`berlu help COMMAND` shows its options, `berlu --version` the version.\n"
          "Exit: 0 done, 1 failed at run time, 2 bad input (nothing was written),\n"
          "3 interrupted (state saved), 4 another process is at work there.\n",
          file);
}

static void command_help(const command *cmd, const options *o)
{
    printf("berlu %s - ", cmd->name);
    help_wrap(stdout, cmd->summary, strlen("berlu  - ") + strlen(cmd->name), 4, "");
    printf("\nusage: berlu %s", cmd->name);
    options_usage(stdout, cmd->rows);
    if (cmd->text) {
        putchar('\n');
        help_text(stdout, cmd->text);
    }
    help_layout layout = command_layout(cmd, o);
    options_help(stdout, cmd->rows, &layout);
}

/* Finds "act eval" in two words or "doctor" in one; "smooth check" goes before "smooth". `words` is
 * the number used. NULL: there is none. */
static const command *command_find(int argc, char *const *argv, int *words)
{
    const command *one = NULL;
    for (const command *const *cmd = commands; *cmd; cmd++) {
        const char *space = strchr((*cmd)->name, ' ');
        if (!space && strcmp((*cmd)->name, argv[0]) == 0)
            one = *cmd;
        if (space && argc > 1 && in_group(*cmd, argv[0]) && strcmp(space + 1, argv[1]) == 0) {
            *words = 2;
            return *cmd;
        }
    }
    if (one)
        *words = 1;
    return one;
}

/* Suggests the nearest name: among the first words of all commands, or the second words of a
 * group. */
static berlu_status fail_unknown(const char *word, const char *group)
{
    enum { MOST = 64, WORD = 32 };
    char words[MOST][WORD];
    const char *names[MOST + 1] = {0};
    size_t count = 0;
    for (const command *const *cmd = commands; *cmd && count < MOST; cmd++) {
        if (group && !in_group(*cmd, group))
            continue;
        const char *from = group ? strchr((*cmd)->name, ' ') + 1 : (*cmd)->name;
        snprintf(words[count], WORD, "%.*s", (int)strcspn(from, " "), from);
        names[count] = words[count];
        count++;
    }
    const char *near = hint_command(word, group);
    near = near ? near : nearest_name(word, names);
    if (near)
        return berlu_fail(BERLU_ERR_ARG, "unknown command '%s'; did you mean '%s'?", word, near);
    return berlu_fail(BERLU_ERR_ARG, "unknown command '%s'; `berlu%s%s --help` lists them", word, group ? " " : "",
                      group ? group : "");
}

static int is_group(const char *name)
{
    for (const command *const *cmd = commands; *cmd; cmd++)
        if (in_group(*cmd, name))
            return 1;
    return 0;
}

static int is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* `berlu --json doctor`: the command is the first word that names one. */
static berlu_status fail_order(int argc, char *const *argv)
{
    int words = 0;
    for (int i = 1; i < argc; i++)
        if (is_group(argv[i]) || command_find(argc - i, argv + i, &words))
            return berlu_fail(BERLU_ERR_ARG, "options come after the command: berlu %s%s%s ... %s", argv[i],
                              words > 1 ? " " : "", words > 1 ? argv[i + 1] : "", argv[0]);
    return berlu_fail(BERLU_ERR_ARG, "unknown option %s; `berlu --help` lists the commands", argv[0]);
}

/* `berlu act`, `berlu act --help`, `berlu act evil`, `berlu evil`, `berlu -v` */
static int no_command(int argc, char *const *argv)
{
    const char *group = is_group(argv[0]) ? argv[0] : NULL;
    if (strcmp(argv[0], "-v") == 0)
        return tell("", berlu_fail(BERLU_ERR_ARG, "unknown option -v; the version is --version or -V"));
    if (argv[0][0] == '-')
        return tell("", fail_order(argc, argv));
    if (!group)
        return tell("", fail_unknown(argv[0], NULL));
    if (argc > 1 && !is_help(argv[1]))
        return tell(group, fail_unknown(argv[1], group));
    FILE *file = argc > 1 ? stdout : stderr;
    fprintf(file, "usage: berlu %s COMMAND [options]\n\ncommands\n", group);
    list_print(file, group);
    return argc > 1 ? 0 : 2;
}

/* Commands that poll *signals_stop() and save their state: a signal means save and exit 3
 * (signals.h). */
static int is_stoppable(const command *cmd)
{
    static const char *const names[] = {"train", "data get", "study run", "study verify"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(cmd->name, names[i]) == 0)
            return 1;
    return 0;
}

static int command_run(const command *cmd, int argc, char *const *argv)
{
    options *o = NULL;
    berlu_status status = is_stoppable(cmd) ? signals_start(cmd->name) : BERLU_OK;
    if (status != BERLU_OK)
        return tell(cmd->name, status);
    if (is_stoppable(cmd) || !signals_caught())
        gemm_expect_no_handlers();
    machine_guard(cmd->name);
    TRY_DONE(options_parse(&o, cmd->rows, argc, argv));
    if (options_flag(o, "help"))
        command_help(cmd, o);
    else {
        TRY_DONE(machine_prepare(o));
        TRY_DONE(plot_target_take(o));
        TRY_DONE(cmd->run(o));
    }
    status = output_flush();
done:
    options_free(o);
    machine_guard(NULL);
    return signals_finish(tell(cmd->name, status));
}

/* OpenMP's threads spin for milliseconds while they wait and take cores from the threads that load
 * images: an epoch of a small model took several times as long. Not spinning at all is no better: a
 * sleeping thread takes tens of microseconds to wake, and a step waits a hundred times. So they
 * spin briefly (vit_micro, patch 8, batch 8, two cores, images/s: 880 without, 3,200 with 1,000
 * iterations, 3,700 with 10,000; while another process occupies one core 3,000, 1,100 and 450).
 * libgomp reads its policy when it is loaded, so the command executes itself again with the policy
 * set, unless the user has chosen one. A failure only costs speed. */
static void spin_little(const command *cmd, char **argv)
{
    static const char *const loading[] = {"train", "eval", "predict", "demo"};
    for (size_t i = 0; i < COUNT(loading); i++)
        if (strcmp(cmd->name, loading[i]) == 0 && !getenv("OMP_WAIT_POLICY") && !getenv("GOMP_SPINCOUNT") &&
            setenv("OMP_WAIT_POLICY", "passive", 1) == 0 && setenv("GOMP_SPINCOUNT", "1000", 1) == 0) {
            if (is_stoppable(cmd))
                signals_hand_on();
            execv("/proc/self/exe", argv);
            signals_keep();
        }
}

/* `berlu help`, `berlu help train`, `berlu help act`, `berlu help train --recipe plain` */
static int help_run(int argc, char *const *argv)
{
    char *words[64] = {0};
    int used = 0;
    const command *cmd = argc > 0 ? command_find(argc, argv, &used) : NULL;
    if (argc == 0) {
        help_print(stdout);
        return tell("", output_flush());
    }
    if (!cmd)
        return no_command(2, (char *const[]){argv[0], argc > 1 ? argv[1] : "--help", NULL});
    words[0] = "--help";
    for (int i = used; i < argc && i - used + 1 < (int)COUNT(words); i++)
        words[i - used + 1] = argv[i];
    return command_run(cmd, argc - used + 1 < (int)COUNT(words) ? argc - used + 1 : (int)COUNT(words), words);
}

/* The first file opened would take the number of a closed standard stream, and messages would go
 * into that file. A folder takes the number instead: it can be neither read nor written. */
static void streams_hold(void)
{
    int fd;
    do
        fd = open("/", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    streams_hold();
    prctl(PR_SET_NAME, "berlu"); /* after re-executing itself it would be called "exe" in ps and top */
    signal(SIGPIPE, SIG_IGN);    /* a closed pipe is an error of write(), reported like any other */
    signal(SIGXFSZ, SIG_IGN);    /* likewise a file larger than `ulimit -f` allows */
    if (argc < 2) {
        help_print(stderr);
        return 2;
    }
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0)
        return help_run(argc - 2, argv + 2);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("berlu %s%s%s%s\n", berlu_version(), *BERLU_COMMIT ? " (" : "", BERLU_COMMIT, *BERLU_COMMIT ? ")" : "");
        return tell("", output_flush());
    }
    int words = 0;
    const command *cmd = command_find(argc - 1, argv + 1, &words);
    if (cmd && is_stoppable(cmd))
        signals_hold();
    if (cmd)
        spin_little(cmd, argv);
    return cmd ? command_run(cmd, argc - 1 - words, argv + 1 + words) : no_command(argc - 1, argv + 1);
}
