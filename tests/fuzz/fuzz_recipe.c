/* fuzz_recipe.c - any bytes as a run.json or as a settings file: settings that hold together, or a
 * refusal. SPDX-License-Identifier: MIT
 *
 * The first byte says which. Settings that were taken are written and read again: the text must not
 * change. */
#include <stdlib.h>
#include <string.h>

#include "train/constraint.h"
#include "train/run_folder.h"

static void check_round_trip(const train_settings *s)
{
    text one = {0}, two = {0};
    train_settings back;
    text_string(&one, "{\"settings\": ");
    recipe_json(s, NULL, &one);
    text_string(&one, "}");
    if (one.failed) { /* a text that is not UTF-8 has no JSON */
        text_free(&one);
        return;
    }
    if (run_json_parse(&back, NULL, one.data, one.length, "again") != BERLU_OK)
        abort();
    recipe_json(&back, NULL, &two);
    if (two.failed || strncmp(one.data + 13, two.data, two.length) != 0)
        abort();
    text_free(&one);
    text_free(&two);
    recipe_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    train_settings s;
    yaml_tree tree;
    if (size == 0)
        return 0;
    const char *rest = (const char *)bytes + 1;
    if (bytes[0] == 'j') {
        if (run_json_parse(&s, NULL, rest, size - 1, "run.json") != BERLU_OK)
            return 0;
        check_round_trip(&s);
    } else {
        if (yaml_tree_parse(&tree, rest, size - 1, "settings.yaml") != BERLU_OK)
            return 0;
        recipe_init(&s);
        if (recipe_set_yaml(&s, &tree, tree.root) == BERLU_OK && recipe_resolve(&s) == BERLU_OK)
            check_round_trip(&s);
        yaml_tree_free(&tree);
    }
    recipe_free(&s);
    return 0;
}
