/* cmd_study_status.c - `berlu study status|list`: how the runs of a study stand. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "study/scheduler.h"
#include "study_open.h"

static const option_row status_rows[] = {STUDY_ROWS, KNOWN_ROW, {0}};

static berlu_status status_study(options *o)
{
    opened x;
    berlu_status status = study_open(&x, o);
    if (status != BERLU_OK)
        return status;
    if (x.s.kind == STUDY_COST) {
        status = study_cost_answer(o, &x, 0);
        opened_free(&x);
        return status;
    }
    if ((status = study_runs_find(&x, o)) == BERLU_OK)
        status = study_answer(o, &x, 0, 0);
    for (size_t i = 0; !options_json(o) && i < x.runs.count; i++) {
        const study_entry *r = &x.runs.items[i];
        if (r->state == STUDY_RUNNING || r->state == STUDY_CUT || r->state == STUDY_FAILED)
            printf("  %-8s %-28s seed %-3lld step %llu  %s\n", study_state_names[r->state], x.s.cells[r->cell].label,
                   (long long)r->seed, (unsigned long long)r->record.step, r->path);
    }
    opened_free(&x);
    return status;
}

const command cmd_study_status = {"study status", "how far a study is",
                                  "Reads the run folders; works while the study runs, from anywhere.\n\n"
                                  "    berlu study status studies/quick.yaml",
                                  status_rows, status_study};

static const option_row list_rows[] = {
    STUDY_ROWS,
    KNOWN_ROW,
    {"commands", OPTION_FLAG, .help = "a command per run that is not done, for xargs or GNU parallel"},
    {0}};

static void word_print(const char *word)
{
    int plain = *word != 0;
    for (const char *c = word; *c; c++)
        plain = plain && (strchr("-_./:=,+@%", *c) || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                          (*c >= 'A' && *c <= 'Z'));
    if (plain) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (const char *c = word; *c; c++)
        fputs(*c == '\'' ? "'\\''" : (char[]){*c, 0}, stdout);
    putchar('\'');
}

static berlu_status list_study(options *o)
{
    opened x;
    char program[STUDY_PATH];
    berlu_status status = study_open_runs(&x, o);
    if (status != BERLU_OK)
        return status;
    status = program_path(program);
    for (size_t i = 0; i < x.runs.count && status == BERLU_OK; i++) {
        const study_entry *r = &x.runs.items[i];
        arena memory = {0};
        if (!options_flag(o, "commands"))
            printf("%s %-8s seed %-3lld %s\n", r->key, study_state_names[r->state], (long long)r->seed,
                   x.s.cells[r->cell].label);
        else if (r->same_as == i && r->state != STUDY_DONE && r->state != STUDY_FAILED) {
            char **words = study_command(&memory, &x.s, r, &(study_schedule){.program = program});
            for (size_t k = 0; words && words[k]; k++) {
                word_print(words[k]);
                putchar(words[k + 1] ? ' ' : '\n');
            }
        }
        arena_free(&memory);
    }
    opened_free(&x);
    return status;
}

const command cmd_study_list = {"study list", "the runs of a study, or their commands",
                                "    berlu study list studies/quick.yaml --commands | xargs -P 2 -I{} sh -c '{}'",
                                list_rows, list_study};
