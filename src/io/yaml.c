/* yaml.c - libyaml's events, collected into the tree of yaml.h. SPDX-License-Identifier: MIT
 *
 * The grammar of events: a value is a scalar, or a start, values, an end. read_value() implements
 * it; everything else here is limits and messages. */
#include "io/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"

typedef struct reader {
    yaml_parser_t parser;
    yaml_tree *tree;
    size_t items;
} reader;

berlu_status yaml_fail(const yaml_tree *tree, const yaml_item *item, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return berlu_fail(BERLU_ERR_INPUT, "%s:%d:%d: %s", tree->name, item->line, item->column, message);
}

static berlu_status fail_at(const reader *r, yaml_mark_t mark, const char *what)
{
    return berlu_fail(BERLU_ERR_INPUT, "%s:%zu:%zu: %s", r->tree->name, mark.line + 1, mark.column + 1, what);
}

static berlu_status next_event(reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return BERLU_OK;
    if (r->parser.error == YAML_MEMORY_ERROR)
        return berlu_fail_memory(0, r->tree->name);
    return fail_at(r, r->parser.problem_mark, r->parser.problem ? r->parser.problem : "not YAML");
}

static berlu_status item_new(reader *r, const yaml_event_t *event, yaml_kind kind, yaml_item **out)
{
    if (++r->items > YAML_ITEMS)
        return fail_at(r, event->start_mark, "too many items for a settings file");
    yaml_item *item = ARENA_NEW(&r->tree->memory, yaml_item);
    if (!item)
        return BERLU_ERR_MEMORY;
    item->kind = kind;
    item->line = (int)event->start_mark.line + 1;
    item->column = (int)event->start_mark.column + 1;
    *out = item;
    return BERLU_OK;
}

/* A text without NUL inside: keys and values are C strings from here on. */
static berlu_status text_copy(reader *r, const yaml_event_t *event, const char **out)
{
    const char *value = (const char *)event->data.scalar.value;
    if (strlen(value) != event->data.scalar.length)
        return fail_at(r, event->start_mark, "a NUL byte inside a text");
    *out = arena_strdup(&r->tree->memory, value);
    return *out ? BERLU_OK : BERLU_ERR_MEMORY;
}

/* Anchors, aliases and tags are refused before anything is stored. */
static berlu_status event_check(const reader *r, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_ALIAS_EVENT)
        return fail_at(r, event->start_mark, "aliases are not allowed here; write the value out");
    if (event->type == YAML_SCALAR_EVENT)
        anchor = event->data.scalar.anchor, tag = event->data.scalar.tag;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        anchor = event->data.sequence_start.anchor, tag = event->data.sequence_start.tag;
    if (event->type == YAML_MAPPING_START_EVENT)
        anchor = event->data.mapping_start.anchor, tag = event->data.mapping_start.tag;
    if (anchor)
        return fail_at(r, event->start_mark, "anchors are not allowed here; write the value out");
    if (tag)
        return fail_at(r, event->start_mark, "tags are not allowed here; write the plain value");
    return BERLU_OK;
}

static berlu_status read_value(reader *r, const yaml_event_t *event, int depth, yaml_item **out);

/* An event as a key that `map` does not have yet. */
static berlu_status read_key(reader *r, const yaml_item *map, const yaml_event_t *event, const char **key)
{
    TRY(event_check(r, event));
    if (event->type != YAML_SCALAR_EVENT)
        return fail_at(r, event->start_mark, "a key must be a plain word");
    TRY(text_copy(r, event, key));
    const yaml_item *twin = yaml_find(map, *key);
    if (!twin)
        return BERLU_OK;
    char what[160];
    snprintf(what, sizeof what, "the key '%.60s' stands here a second time (first in line %d)", *key, twin->line);
    return fail_at(r, event->start_mark, what);
}

static berlu_status read_children(reader *r, yaml_item *parent, int depth)
{
    yaml_event_type_t end = parent->kind == YAML_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    yaml_item **link = &parent->first;
    for (;;) {
        yaml_event_t event;
        const char *key = NULL;
        TRY(next_event(r, &event));
        int done = event.type == end;
        berlu_status status = BERLU_OK;
        if (!done && parent->kind == YAML_MAP) {
            status = read_key(r, parent, &event, &key);
            yaml_event_delete(&event);
            if (status != BERLU_OK || (status = next_event(r, &event)) != BERLU_OK)
                return status;
        }
        yaml_item *item = NULL;
        if (status == BERLU_OK && !done)
            status = read_value(r, &event, depth, &item);
        yaml_event_delete(&event);
        if (status != BERLU_OK || done)
            return status;
        item->key = key;
        *link = item;
        link = &item->next;
        parent->count++;
    }
}

static berlu_status read_value(reader *r, const yaml_event_t *event, int depth, yaml_item **out)
{
    TRY(event_check(r, event));
    yaml_kind kind = event->type == YAML_MAPPING_START_EVENT    ? YAML_MAP
                     : event->type == YAML_SEQUENCE_START_EVENT ? YAML_LIST
                                                                : YAML_TEXT;
    if (kind != YAML_TEXT && depth >= YAML_DEPTH)
        return fail_at(r, event->start_mark, "nested too deeply");
    TRY(item_new(r, event, kind, out));
    if (kind != YAML_TEXT)
        return read_children(r, *out, depth + 1);
    (*out)->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return text_copy(r, event, &(*out)->text);
}

/* Stream start, at most one document, stream end. */
static berlu_status read_stream(reader *r)
{
    for (int documents = 0;;) {
        yaml_event_t event;
        berlu_status status = next_event(r, &event);
        if (status != BERLU_OK)
            return status;
        yaml_event_type_t type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT && documents++)
            status = fail_at(r, event.start_mark, "a second document; one file holds one");
        else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                 type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
            status = read_value(r, &event, 0, &r->tree->root);
        yaml_event_delete(&event);
        if (status != BERLU_OK || type == YAML_STREAM_END_EVENT)
            return status;
    }
}

/* An empty file, or one with comments only, is an empty map. */
static berlu_status root_check(yaml_tree *tree)
{
    yaml_item *root = tree->root;
    if (!root || (root->kind == YAML_TEXT && !*root->text && !root->quoted)) {
        root = ARENA_NEW(&tree->memory, yaml_item);
        if (!root)
            return BERLU_ERR_MEMORY;
        *root = (yaml_item){.kind = YAML_MAP, .line = 1, .column = 1};
        tree->root = root;
    }
    return BERLU_OK;
}

berlu_status yaml_tree_parse(yaml_tree *out, const char *bytes, size_t count, const char *name)
{
    yaml_tree tree = {0};
    reader r = {.tree = &tree};
    if (count > YAML_BYTES)
        return berlu_fail(BERLU_ERR_INPUT, "%s: %zu bytes is too long for a settings file", name, count);
    if (!yaml_parser_initialize(&r.parser))
        return berlu_fail_memory(0, name);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, count);
    tree.name = arena_strdup(&tree.memory, name);
    berlu_status status = tree.name ? read_stream(&r) : BERLU_ERR_MEMORY;
    if (status == BERLU_OK)
        status = root_check(&tree);
    yaml_parser_delete(&r.parser);
    if (status != BERLU_OK) {
        yaml_tree_free(&tree);
        return status;
    }
    *out = tree;
    return BERLU_OK;
}

berlu_status yaml_tree_read(yaml_tree *out, const char *path)
{
    char *bytes;
    size_t count;
    TRY(file_read_all(&bytes, &count, path, YAML_BYTES));
    berlu_status status = yaml_tree_parse(out, bytes, count, path);
    free(bytes);
    return status;
}

void yaml_tree_free(yaml_tree *tree)
{
    arena_free(&tree->memory);
    *tree = (yaml_tree){0};
}

const yaml_item *yaml_find(const yaml_item *map, const char *key)
{
    for (const yaml_item *item = map->first; map->kind == YAML_MAP && item; item = item->next)
        if (strcmp(item->key, key) == 0)
            return item;
    return NULL;
}
