/* yaml.h - a YAML file as a small tree of texts. SPDX-License-Identifier: MIT
 *
 * People write settings and studies in YAML; those need only maps, lists and scalars. Scalars stay
 * texts: the consumer of a key knows its type, and the message about a wrong value can then name
 * the line. Features that a settings file never needs are refused by name: anchors and aliases (a
 * few lines of them can stand for gigabytes), tags, several documents, the same key twice. Reading
 * never recurses deeper than YAML_DEPTH and never holds more than YAML_ITEMS items. */
#ifndef IO_YAML_H
#define IO_YAML_H

#include <stddef.h>

#include "base/arena.h"

enum { YAML_DEPTH = 16, YAML_ITEMS = 20000, YAML_BYTES = 4 << 20 };

typedef enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP } yaml_kind;

typedef struct yaml_item yaml_item;
struct yaml_item {
    yaml_kind kind;
    const char *key;  /* inside a map; else NULL */
    const char *text; /* YAML_TEXT; "" for nothing at all */
    int quoted;       /* quoted, so "no" is a text and not a null */
    int line, column; /* of the value, counted from 1 */
    size_t count;     /* of the items below */
    yaml_item *first, *next;
};

typedef struct yaml_tree {
    yaml_item *root; /* a map with no items for an empty file */
    const char *name;
    arena memory;
} yaml_tree;

/* `name` begins every message ("study.yaml:3:5: ..."). Failures are BERLU_ERR_INPUT. */
berlu_status yaml_tree_parse(yaml_tree *out, const char *bytes, size_t count, const char *name);
berlu_status yaml_tree_read(yaml_tree *out, const char *path);
void yaml_tree_free(yaml_tree *tree);

/* The item under `key` of a map, or NULL. */
const yaml_item *yaml_find(const yaml_item *map, const char *key);

/* A failure that points at an item: "name:line:column: ..." */
berlu_status yaml_fail(const yaml_tree *tree, const yaml_item *item, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
