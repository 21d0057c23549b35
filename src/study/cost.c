/* cost.c - measures the cells of a study in interleaved rounds. SPDX-License-Identifier: MIT
 *
 * cost.h has the design. study_cost_run() goes through the measurements that the store lacks;
 * place() gives the cell of the i-th one of a round, measure() runs the command in a process of its
 * own and joins its rows. */
#include "study/cost.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "study/process.h"
#include "study/store_internal.h"

enum { KEEPS = 3 };

/* ---- one measurement ------------------------------------------------------------------------- */

/* Settings of a cell that decide what a step costs; the rest of a training run does not. */
static int is_bench_setting(const char *key)
{
    static const char *const keys[] = {"image_size", "patch",     "stride",     "stem",   "act_params",
                                       "classes",    "drop_path", "act",        "device", "precision",
                                       "residual",   "batch",     "algorithms", NULL};
    for (size_t i = 0; keys[i]; i++)
        if (strcmp(keys[i], key) == 0)
            return 1;
    return 0;
}

static void words_add(arena *memory, char **words, size_t *count, const char *option, const char *value)
{
    words[(*count)++] = arena_printf(memory, "--%s", option);
    words[(*count)++] = arena_strdup(memory, value);
}

/* The recipe's batch where the file gives none. */
static void batch_add(arena *memory, char **words, size_t *count, const study *s, size_t cell)
{
    train_settings resolved;
    char number[32];
    if (study_setting_of(&s->cells[cell], "batch") ||
        study_run_settings(s, &(study_run){.cell = cell}, &resolved) != BERLU_OK)
        return;
    snprintf(number, sizeof number, "%lld", (long long)resolved.batch);
    recipe_free(&resolved);
    words_add(memory, words, count, "batch", number);
}

/* The command of one measurement, NULL-terminated; `verb` is "step" or "memory". */
static char **command_of(arena *memory, const study *s, size_t cell, const study_cost *how, const char *verb)
{
    const study_cell *c = &s->cells[cell];
    const char *model = study_setting_of(c, "model"), *keep = study_setting_of(c, "keep");
    size_t most = 32, count = 0;
    char number[32];
    for (size_t i = 0; i < c->settings.count; i++)
        most += 2 * c->settings.items[i].count;
    char **words = ARENA_ARRAY(memory, char *, most);
    if (!words)
        return NULL;
    const char *const first[] = {how->program, "bench", verb, model ? model : "vit_tiny_cifar", "--json"};
    for (size_t i = 0; i < COUNT(first); i++)
        words[count++] = arena_strdup(memory, first[i]);
    for (size_t i = 0; i < c->settings.count; i++)
        for (size_t k = 0; k < c->settings.items[i].count && is_bench_setting(c->settings.items[i].key); k++)
            words_add(memory, words, &count, recipe_find(c->settings.items[i].key)->option,
                      c->settings.items[i].values[k]);
    batch_add(memory, words, &count, s, cell);
    words_add(memory, words, &count, "keep", keep ? keep : "all");
    words_add(memory, words, &count, "steps", "5"); /* on a GPU each brings twenty more, enqueued at once */
    words_add(memory, words, &count, "seconds", "0.5");
    if (how->threads) {
        snprintf(number, sizeof number, "%d", how->threads);
        words_add(memory, words, &count, "threads", number);
    }
    words[count] = NULL;
    for (size_t i = 0; i < count; i++)
        if (!words[i])
            return NULL;
    return words;
}

static berlu_status bench_run(json_t **out, const study_cost *how, const study *s, size_t cell, const char *verb)
{
    arena memory = {0};
    text answer = {0}, messages = {0};
    char **words = command_of(&memory, s, cell, how, verb);
    berlu_status status;
    TRY_DONE(words ? study_process_run(words, how->device, how->stop, &answer, &messages)
                   : berlu_fail_memory(0, "a command line"));
    *out = json_loads(answer.data ? answer.data : "", 0, NULL);
    if (!json_is_array(json_object_get(*out, "rows")))
        status = berlu_fail(BERLU_ERR_IO, "bench %s answered with something else than rows", verb);
done:
    arena_free(&memory);
    text_free(&answer);
    text_free(&messages);
    return status;
}

static double number_at(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *word_at(const json_t *row, const char *key)
{
    const char *word = json_string_value(json_object_get(row, key));
    return word ? word : "";
}

/* Rows of `bench step`, with the memory of the row of `bench memory` that has the same policy. */
static size_t rows_join(cost_row rows[KEEPS], const json_t *times, const json_t *memory)
{
    size_t count = 0;
    const json_t *list = json_object_get(times, "rows"), *other = json_object_get(memory, "rows");
    for (size_t i = 0; i < json_array_size(list) && count < KEEPS; i++) {
        const json_t *row = json_array_get(list, i), *same = NULL;
        for (size_t k = 0; k < json_array_size(other); k++)
            if (strcmp(word_at(json_array_get(other, k), "keep"), word_at(row, "keep")) == 0)
                same = json_array_get(other, k);
        rows[count++] = (cost_row){.keep = word_at(row, "keep"),
                                   .machine = word_at(row, "machine"),
                                   .forward_ms = number_at(row, "forward_ms"),
                                   .backward_ms = number_at(row, "backward_ms"),
                                   .update_ms = number_at(row, "update_ms"),
                                   .images_per_s = number_at(row, "images_per_s"),
                                   .kept_bytes = number_at(same, "kept_bytes"),
                                   .planned_bytes = number_at(same, "planned_bytes"),
                                   .peak_bytes = number_at(same, "peak_bytes")};
    }
    return count;
}

static berlu_status measure(const study_cost *how, const study *s, store *index, size_t cell, int again, int round)
{
    json_t *times = NULL, *memory = NULL;
    cost_row rows[KEEPS];
    berlu_status status;
    TRY_DONE(bench_run(&times, how, s, cell, "step"));
    if (round == 0)
        TRY_DONE(bench_run(&memory, how, s, cell, "memory"));
    size_t count = rows_join(rows, times, memory);
    for (size_t i = 0; i < count; i++) {
        rows[i].cell = s->cells[cell].label;
        rows[i].again = again;
        rows[i].round = round;
    }
    status = store_put_cost(index, s->name, rows, count);
done:
    json_decref(times);
    json_decref(memory);
    return status == BERLU_OK || status == BERLU_ERR_STOPPED ? status : berlu_fail_in(status, s->cells[cell].label);
}

/* ---- all of them ----------------------------------------------------------------------------- */

size_t study_cost_count(const study *s)
{
    return (s->cell_count + 1) * (size_t)s->rounds;
}

/* Whether the store has a measurement. One of its policies is enough: they are written together. */
static berlu_status is_done(int *out, store *index, const study *s, size_t cell, int again, int round)
{
    sqlite3_stmt *q;
    berlu_status status =
        store_prepare(index, &q, "SELECT 1 FROM cost WHERE study=? AND cell=? AND again=? AND round=? LIMIT 1");
    if (status != BERLU_OK)
        return status;
    store_bind_text(q, 1, s->name);
    store_bind_text(q, 2, s->cells[cell].label);
    sqlite3_bind_int(q, 3, again);
    sqlite3_bind_int(q, 4, round);
    int rc = sqlite3_step(q);
    *out = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = store_fail(index, "reading");
    sqlite3_finalize(q);
    return status;
}

/* The i-th measurement of a round: the cells in turn, from another one each round, and the first
 * cell a second time half a round away: side by side the two would differ by less than cells that
 * are far apart. */
static void place(const study *s, int round, size_t i, size_t *cell, int *again)
{
    size_t all = s->cell_count + 1, second = all / 2, at = (i + (size_t)round) % all;
    *again = at == second;
    *cell = *again ? 0 : at - (at > second);
}

berlu_status study_cost_done(size_t *out, store *index, const study *s)
{
    *out = 0;
    for (int round = 0; round < (int)s->rounds; round++)
        for (size_t i = 0; i <= s->cell_count; i++) {
            size_t cell;
            int again, done = 0;
            place(s, round, i, &cell, &again);
            TRY(is_done(&done, index, s, cell, again, round));
            *out += (size_t)done;
        }
    return BERLU_OK;
}

berlu_status study_cost_run(const study_cost *how, const study *s, store *index)
{
    size_t all = study_cost_count(s), finished = 0;
    double began = clock_seconds();
    TRY(study_cost_done(&finished, index, s));
    for (size_t n = 0; n < all; n++) {
        size_t cell;
        int again, done = 0, round = (int)(n / (s->cell_count + 1));
        place(s, round, n % (s->cell_count + 1), &cell, &again);
        if (how->only && !strstr(s->cells[cell].label, how->only))
            continue;
        TRY(is_done(&done, index, s, cell, again, round));
        if (done)
            continue;
        if ((how->stop && *how->stop) || (how->seconds > 0 && clock_seconds() - began >= how->seconds))
            return berlu_fail(BERLU_ERR_STOPPED, "stopped; what was measured is saved");
        if (how->tick)
            how->tick(how->context, s->cells[cell].label, round, finished, all);
        TRY(measure(how, s, index, cell, again, round));
        finished++;
    }
    return BERLU_OK;
}
