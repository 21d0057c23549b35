/* commands.h - the type of a command and the table of commands. SPDX-License-Identifier: MIT
 *
 * To add a command `berlu NAME` (or `berlu GROUP NAME`):
 *   1. write cli/cmd_NAME.c with const command cmd_NAME = {"name", "summary", "longer text", rows,
 *      run}; a command of a group is const command cmd_act_eval = {"act eval", ...}; several may
 *      share one file;
 *   2. add _(NAME) to the list in commands.c and the file to cli/CMakeLists.txt.
 * Parsing, --help, "did you mean", exit codes and error lines follow from the table (options.h);
 * JSON is written with output.h, progress with progress.h.
 *
 * run() receives checked options and returns a status. On failure it prints nothing: main() prints
 * the one line "berlu: NAME: message" from berlu_last_error() and chooses the exit code. A command
 * checks all its input before it writes anything. With --json stdout holds one JSON object and
 * nothing else; progress and notes go to stderr. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

typedef struct command {
    const char *name;       /* "doctor", "act eval" */
    const char *summary;    /* one line for the list of commands: lower case, no full stop */
    const char *text;       /* paragraphs for --help, examples indented by two spaces; NULL: none */
    const option_row *rows; /* NULL: only the common ones */
    berlu_status (*run)(options *o);
} command;

extern const command *const commands[]; /* NULL-terminated, in the order of --help */

/* The layout of a command's --help, which may depend on its other options; most have no groups. */
help_layout command_layout(const command *cmd, const options *o);

/* The command meant by another name ("plot": "act plot"), or NULL. `group`: the first word, where
 * that was right. */
const char *hint_command(const char *word, const char *group);

#endif
