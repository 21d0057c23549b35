/* algorithms.c - product algorithms as a list, a text and a file. SPDX-License-Identifier: MIT
 *
 * The list is searched by shape, machine and version; there are some dozen entries. A file is read
 * whole, line by line, and any line of another form refuses it. Writing joins the list with what
 * the file holds by then, because several processes share one cache. */
#include "cuda/algorithms.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const char heading[] = "berlu cuBLASLt algorithms 1";
enum { FILE_LIMIT = 1 << 22 };

/* ---- the list -------------------------------------------------------------------------------- */

void algorithms_free(algorithm_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->entries[i].machine);
    free(list->entries);
    *list = (algorithm_list){0};
}

const algorithm_entry *algorithms_find(const algorithm_list *list, const char *machine, const char *version,
                                       const char *shape)
{
    for (int i = 0; i < list->count; i++) {
        const algorithm_entry *e = &list->entries[i];
        if (strcmp(e->shape, shape) == 0 && strcmp(e->machine, machine) == 0 &&
            (!version || strcmp(e->version, version) == 0))
            return e;
    }
    return NULL;
}

static algorithm_entry *entry_new(algorithm_list *list)
{
    if (list->count == list->capacity) {
        int more = list->capacity ? 2 * list->capacity : 32;
        algorithm_entry *grown = realloc(list->entries, (size_t)more * sizeof *grown);
        if (!grown)
            return NULL;
        list->entries = grown;
        list->capacity = more;
    }
    return &list->entries[list->count];
}

berlu_status algorithms_set(algorithm_list *list, const char *machine, const char *version, const char *shape,
                            const lt_algorithm *algorithm)
{
    const algorithm_entry *old = algorithms_find(list, machine, version, shape);
    if (old) {
        list->entries[old - list->entries].algorithm = *algorithm;
        return BERLU_OK;
    }
    size_t first = strlen(machine) + 1, second = strlen(version) + 1, third = strlen(shape) + 1;
    algorithm_entry *e = entry_new(list);
    char *words = e ? malloc(first + second + third) : NULL;
    if (!words)
        return berlu_fail_memory(first + second + third, "a product algorithm");
    memcpy(words, machine, first);
    memcpy(words + first, version, second);
    memcpy(words + first + second, shape, third);
    *e = (algorithm_entry){words, words + first, words + first + second, *algorithm};
    list->count++;
    return BERLU_OK;
}

/* ---- the text -------------------------------------------------------------------------------- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int bytes_parse(lt_algorithm *out, const char *hex)
{
    if (strlen(hex) != 2 * LT_ALGORITHM_BYTES)
        return 0;
    for (int i = 0; i < LT_ALGORITHM_BYTES; i++) {
        int high = digit_of(hex[2 * i]), low = digit_of(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        out->bytes[i] = (unsigned char)(high << 4 | low);
    }
    return 1;
}

/* machine|version|shape|digits; splits the line in place. */
static berlu_status line_parse(algorithm_list *list, char *line, const char *name, int number)
{
    char *words[4] = {line};
    lt_algorithm algorithm;
    for (int i = 1; i < 4; i++) {
        words[i] = strchr(words[i - 1], '|');
        if (!words[i] || words[i] == words[i - 1])
            return berlu_fail(BERLU_ERR_INPUT, "%s: line %d: machine|version|shape|algorithm was expected", name,
                              number);
        *words[i]++ = '\0';
    }
    if (!bytes_parse(&algorithm, words[3]))
        return berlu_fail(BERLU_ERR_INPUT, "%s: line %d: an algorithm is %d hexadecimal digits", name, number,
                          2 * LT_ALGORITHM_BYTES);
    return algorithms_set(list, words[0], words[1], words[2], &algorithm);
}

int algorithms_is_text(const char *words)
{
    return strncmp(words, heading, sizeof heading - 1) == 0;
}

berlu_status algorithms_parse(algorithm_list *list, const char *data, size_t size, const char *name)
{
    berlu_status status = BERLU_OK;
    char *copy = malloc(size + 1);
    if (!copy)
        return berlu_fail_memory(size, name);
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    int number = 0;
    if (strlen(copy) != size)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: a text was expected, and this holds a zero byte", name);
    for (char *line = copy, *next; status == BERLU_OK && *line; line = next) {
        char *end = strchr(line, '\n');
        next = end ? end + 1 : line + strlen(line);
        if (end)
            *end = '\0';
        if (++number == 1 && strcmp(line, heading) != 0)
            status = berlu_fail(BERLU_ERR_INPUT, "%s: line 1: '%s' was expected", name, heading);
        else if (number > 1)
            status = line_parse(list, line, name, number);
    }
    if (status == BERLU_OK && number == 0)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: the file is empty; line 1 should be '%s'", name, heading);
    free(copy);
    return status;
}

void algorithms_print(const algorithm_list *list, text *out)
{
    text_add(out, "%s\n", heading);
    for (int i = 0; i < list->count; i++) {
        const algorithm_entry *e = &list->entries[i];
        text_add(out, "%s|%s|%s|", e->machine, e->version, e->shape);
        for (int k = 0; k < LT_ALGORITHM_BYTES; k++)
            text_add(out, "%02x", e->algorithm.bytes[k]);
        text_string(out, "\n");
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

berlu_status algorithms_read(algorithm_list *list, const char *path)
{
    char *data = NULL;
    size_t size = 0;
    if (!file_exists(path))
        return BERLU_OK;
    berlu_status status = file_read_all(&data, &size, path, FILE_LIMIT);
    if (status == BERLU_OK)
        status = algorithms_parse(list, data, size, path);
    free(data);
    return status;
}

/* Another process may have added lines since we read the file; ours win. One of two that write at
 * the same moment loses its new lines, and the next run makes those choices anew. */
berlu_status algorithms_write(const algorithm_list *list, const char *path)
{
    algorithm_list all = {0};
    text out = {0};
    berlu_status status = algorithms_read(&all, path);
    if (status == BERLU_ERR_INPUT) { /* no file of ours: the reader refused it, or a cache is replaced */
        algorithms_free(&all);
        status = BERLU_OK;
    }
    TRY_DONE(status);
    for (int i = 0; i < list->count; i++) {
        const algorithm_entry *e = &list->entries[i];
        TRY_DONE(algorithms_set(&all, e->machine, e->version, e->shape, &e->algorithm));
    }
    algorithms_print(&all, &out);
    status = file_write_text(NULL, path, &out);
done:
    text_free(&out);
    algorithms_free(&all);
    return status;
}
