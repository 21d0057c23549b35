/* command.h - runs the built command and keeps what it said. SPDX-License-Identifier: MIT
 *
 *     command_result r;
 *     command_run(&r, "act", "list", "--json", NULL);
 *     assert_int_equal(r.code, 0);
 *     ... r.out, r.err ...
 *     command_free(&r);
 *
 * The command is BERLU_BUILD_DIR/berlu; it runs in the current folder with this process's
 * environment. */
#ifndef TESTS_SUPPORT_COMMAND_H
#define TESTS_SUPPORT_COMMAND_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct command_result {
    int code;        /* exit code; 128 + signal when one ended it */
    char *out, *err; /* never NULL */
    size_t out_size; /* `out` may hold zeros */
} command_result;

static inline char *command_slurp(FILE *file, size_t *size)
{
    long length = (fseek(file, 0, SEEK_END), ftell(file));
    char *data = calloc(1, (size_t)length + 1);
    rewind(file);
    *size = data ? fread(data, 1, (size_t)length, file) : 0;
    fclose(file);
    return data;
}

/* `memory` bounds the address space in bytes (0: no bound); `out_path` takes standard output
 * instead of r->out. */
static inline void command_run_with(command_result *r, char *const *words, size_t memory, const char *out_path)
{
    FILE *out = out_path ? fopen(out_path, "w") : tmpfile(), *err = tmpfile();
    if (!out || !err)
        abort();
    pid_t child = fork();
    if (child == 0) {
        char path[4096];
        const char *build = getenv("BERLU_BUILD_DIR");
        struct rlimit limit = {memory, memory};
        snprintf(path, sizeof path, "%s/berlu", build ? build : ".");
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        if (memory)
            setrlimit(RLIMIT_AS, &limit);
        execv(path, words);
        perror(path);
        _exit(127);
    }
    int state = 0;
    size_t size;
    if (child < 0 || waitpid(child, &state, 0) != child)
        abort();
    r->code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    r->out = out_path ? (fclose(out), calloc(1, 1)) : command_slurp(out, &r->out_size);
    r->err = command_slurp(err, &size);
}

__attribute__((sentinel)) static inline void command_run(command_result *r, const char *first, ...)
{
    char *words[128] = {"berlu", (char *)first};
    va_list args;
    va_start(args, first);
    for (size_t i = 2; first && i < 127 && (words[i] = va_arg(args, char *)); i++)
        ;
    va_end(args);
    command_run_with(r, words, 0, NULL);
}

static inline void command_free(command_result *r)
{
    free(r->out);
    free(r->err);
    *r = (command_result){0};
}

#endif
