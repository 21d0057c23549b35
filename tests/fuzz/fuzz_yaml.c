/* fuzz_yaml.c - any bytes as a settings file. SPDX-License-Identifier: MIT
 *
 * A tree that was accepted keeps its own rules: the depth, the number of items, one value per key,
 * places in the file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/yaml.h"

static size_t walk(const yaml_item *item, int depth)
{
    size_t items = 1, below = 0;
    if (depth > YAML_DEPTH || item->line < 1 || item->column < 1 || (item->kind == YAML_TEXT) != (item->text != NULL))
        abort();
    for (const yaml_item *child = item->first; child; child = child->next, below++) {
        if ((item->kind == YAML_MAP) != (child->key != NULL) || (child->key && yaml_find(item, child->key) != child))
            abort();
        items += walk(child, depth + 1);
    }
    if (below != item->count)
        abort();
    return items;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    yaml_tree tree;
    if (yaml_tree_parse(&tree, (const char *)bytes, size, "fuzz") == BERLU_OK) {
        if (walk(tree.root, 0) > YAML_ITEMS + 1)
            abort();
        yaml_tree_free(&tree);
    }
    return 0;
}
