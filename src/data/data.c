/* data.c - parses the text of --data; code common to all kinds of sets.
 * SPDX-License-Identifier: MIT
 *
 * A text is `synthetic`, KIND:PATH, or a path that is tried with the kinds in the order of the
 * table. Broken images are recorded here, once each, so that a run can report which it left out. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/source.h"

const char *const data_split_names[DATA_SPLITS] = {"train", "test"};

static const data_kind *const kinds[] = {&data_synthetic, &data_cifar10, &data_cifar100, &data_packed, &data_folder};

static const data_kind *kind_named(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i]->name) == length && strncmp(kinds[i]->name, name, length) == 0)
            return kinds[i];
    return NULL;
}

enum { PLACE = 4096 };

/* KIND:PATH is split only where KIND is known, so that a path may contain a colon. A published set
 * may come without a path; `place` then holds the folder that was found. */
static berlu_status kind_of(const char *text, const data_kind **kind, const char **path, char place[PLACE])
{
    const char *colon = strchr(text, ':');
    *path = text;
    *kind = kind_named(text, strlen(text));
    if (*kind == &data_synthetic) {
        *path = "";
        return BERLU_OK;
    }
    int bare = *kind && !file_exists(text) && !folder_exists(text);
    if (!bare && colon && !colon[1])
        bare = (*kind = kind_named(text, (size_t)(colon - text))) != NULL;
    if (bare && (*kind)->options & HAS_ARCHIVE) {
        *path = place;
        return data_find(*kind, place, PLACE);
    }
    *kind = colon ? kind_named(text, (size_t)(colon - text)) : NULL;
    if (*kind) {
        *path = colon + 1;
        return BERLU_OK;
    }
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i]->recognise && kinds[i]->recognise(text)) {
            *kind = kinds[i];
            return BERLU_OK;
        }
    if (!file_exists(text) && !folder_exists(text))
        return data_unknown(text);
    return berlu_fail(BERLU_ERR_INPUT,
                      "%s: is no packed set, and has not the name of an archive of CIFAR; write cifar10:PATH or "
                      "cifar100:PATH where it is one, unpack any other archive and give its folder",
                      text);
}

static size_t bad_allowed(const data_options *o, const data_info *info)
{
    return o->max_bad_given ? o->max_bad : (info->images[DATA_TRAIN] + info->images[DATA_TEST]) / 1000;
}

/* Refuses options without effect, such as labels that would not be read. */
static berlu_status options_check(const data_kind *kind, const char *text, const data_options *o)
{
    const struct {
        int given;
        unsigned bit;
        const char *option, *why;
    } rows[] = {
        {o->labels && strcmp(o->labels, "coarse") == 0, HAS_COARSE, "labels", "has no coarse labels; cifar100 has"},
        {o->class_order && strcmp(o->class_order, "timm") == 0, HAS_CLASS_ORDER, "class-order",
         "has a fixed order of classes; folders have a choice"},
        {o->val_labels != NULL, HAS_VAL_LABELS, "val-labels", "has its own labels; flat val folders need a list"},
        {o->sha256 != NULL, HAS_ARCHIVE, "sha256", "is no archive"},
        {o->max_bad_given, HAS_FILES, "max-bad", "has no files that could be broken one by one"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].given && !(kind->options & rows[i].bit))
            return berlu_fail(BERLU_ERR_ARG, "%s: %s (%s) %s", rows[i].option, text, kind->name, rows[i].why);
    return BERLU_OK;
}

/* ImageNet's classes are called n01440764: then the customary mean and deviation are the set's
 * own. */
static int classes_are_imagenets(const data_info *info)
{
    for (size_t k = 0; k < info->classes; k++) {
        const char *name = info->class_names[k];
        if (name[0] != 'n' || strspn(name + 1, "0123456789") != 8 || name[9])
            return 0;
    }
    return info->classes > 0;
}

berlu_status data_open(data_source **out, const char *text, const data_options *options)
{
    const data_options defaults = {0};
    const data_options *o = options ? options : &defaults;
    const data_kind *kind;
    const char *path;
    char place[PLACE];
    TRY(kind_of(text, &kind, &path, place));
    TRY(options_check(kind, text, o));
    data_source *s = calloc(1, sizeof *s);
    if (!s)
        return berlu_fail_memory(sizeof *s, "a data set");
    pthread_mutex_init(&s->lock, NULL);
    s->kind = kind;
    s->info.kind = kind->name;
    s->info.class_order = "fixed";
    s->info.path = arena_strdup(&s->memory, path);
    berlu_status status = s->info.path ? kind->open(s, path, o) : BERLU_ERR_MEMORY;
    if (status != BERLU_OK) {
        data_close(s);
        return status;
    }
    s->max_bad = bad_allowed(o, &s->info);
    s->info.published |= classes_are_imagenets(&s->info);
    *out = s;
    return BERLU_OK;
}

void data_close(data_source *s)
{
    if (!s)
        return;
    s->kind->close(s);
    free(s->bad);
    arena_free(&s->memory);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const data_info *data_describe(const data_source *s)
{
    return &s->info;
}

int data_label(const data_source *s, data_split split, size_t index)
{
    assert(index < s->info.images[split]);
    return s->kind->label(s, split, index);
}

const char *data_name(const data_source *s, data_split split, size_t index, char *out, size_t size)
{
    if (s->kind->name_of)
        return s->kind->name_of(s, split, index, out, size);
    snprintf(out, size, "%s/%zu", data_split_names[split], index);
    return out;
}

berlu_status data_read(data_source *s, data_split split, size_t index, const image_request *request, image *out)
{
    if (index >= s->info.images[split])
        return berlu_fail(BERLU_ERR_ARG, "image %zu of %zu in split %s", index, s->info.images[split],
                          data_split_names[split]);
    return s->kind->read(s, split, index, request, out);
}

/* With the lock held. */
static berlu_status bad_add(data_source *s, data_split split, size_t index, const char *message)
{
    if (s->bad_count == s->bad_capacity) {
        size_t capacity = s->bad_capacity ? 2 * s->bad_capacity : 16;
        data_bad *grown = realloc(s->bad, capacity * sizeof *grown);
        if (!grown)
            return berlu_fail_memory(capacity * sizeof *grown, "the list of broken files");
        s->bad = grown;
        s->bad_capacity = capacity;
    }
    const char *copy = arena_strdup(&s->memory, message);
    if (!copy)
        return BERLU_ERR_MEMORY;
    s->bad[s->bad_count++] = (data_bad){split, index, copy};
    return BERLU_OK;
}

/* With the lock held. */
static berlu_status bad_remember(data_source *s, data_split split, size_t index)
{
    for (size_t i = s->skipped; i < s->bad_count; i++)
        if (s->bad[i].split == split && s->bad[i].index == index)
            return BERLU_OK;
    if (s->bad_count - s->skipped == s->max_bad)
        return berlu_fail(BERLU_ERR_INPUT, "%s (broken file number %zu, --max-bad allows %zu)", berlu_last_error(),
                          s->max_bad + 1, s->max_bad);
    return bad_add(s, split, index, berlu_last_error());
}

berlu_status data_report_skipped(data_source *s, const char *message)
{
    berlu_status status = bad_add(s, DATA_TRAIN, 0, message);
    s->skipped += status == BERLU_OK;
    return status;
}

berlu_status data_report_bad(data_source *s, data_split split, size_t index)
{
    pthread_mutex_lock(&s->lock);
    berlu_status status = bad_remember(s, split, index);
    pthread_mutex_unlock(&s->lock);
    return status;
}

size_t data_bad_count(const data_source *s)
{
    data_source *shared = (data_source *)(uintptr_t)s; /* const does not cover the lock */
    pthread_mutex_lock(&shared->lock);
    size_t count = s->bad_count;
    pthread_mutex_unlock(&shared->lock);
    return count;
}

void data_bad_warn(const data_source *s, size_t *told, const berlu_log *log)
{
    enum { NAMED = 20 };
    size_t count = data_bad_count(s);
    for (; *told < count && *told < NAMED; (*told)++)
        log_line(log, BERLU_LOG_WARNING, "left out: %s", data_bad_message(s, *told));
    if (*told < count)
        log_line(log, BERLU_LOG_WARNING, "left out: %zu images by now (berlu data info --verify names them)", count);
    *told = count;
}

const char *data_bad_message(const data_source *s, size_t n)
{
    data_source *shared = (data_source *)(uintptr_t)s;
    pthread_mutex_lock(&shared->lock);
    const char *message = s->bad[n].message;
    pthread_mutex_unlock(&shared->lock);
    return message;
}
