/* smooth_yaml.c - see smooth_yaml.h. SPDX-License-Identifier: MIT
 *
 * Each key is parsed as text by the settings of the command line, so ranges and messages are the
 * same; this file adds only YAML's lists and the line of a mistake. */
#include "io/smooth_yaml.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "smooth/settings.h"

static int ends_in_yaml(const char *words, size_t length)
{
    return (length > 5 && memcmp(words + length - 5, ".yaml", 5) == 0) ||
           (length > 4 && memcmp(words + length - 4, ".yml", 4) == 0);
}

size_t smooth_yaml_path(const char *words)
{
    size_t length = strlen(words);
    if (strncmp(words, "smooth(", 7) == 0)
        return 0;
    if (ends_in_yaml(words, length))
        return length;
    const char *keys = strrchr(words, ':');
    if (keys && strchr(keys, '='))
        length = (size_t)(keys - words);
    return memchr(words, '/', length) || ends_in_yaml(words, length) ? length : 0;
}

/* [0, 1, 0] as "0,1,0"; the anchor [0, 1] as "0=1". */
static berlu_status list_join(text *out, const yaml_tree *tree, const yaml_item *list)
{
    const char *between = strcmp(list->key, "at") == 0 ? "=" : ",";
    for (const yaml_item *item = list->first; item; item = item->next) {
        if (item->kind != YAML_TEXT)
            return yaml_fail(tree, item, "%s must be a list of numbers", list->key);
        text_string(out, item == list->first ? "" : between);
        text_string(out, item->text);
    }
    return text_status(out);
}

static berlu_status key_take(smooth_settings *settings, const yaml_tree *tree, const yaml_item *item)
{
    text joined = {0};
    berlu_status status;
    if (item->kind == YAML_MAP)
        return yaml_fail(tree, item, "%s must be a number or a list of numbers", item->key);
    if (item->kind == YAML_LIST)
        TRY_DONE(list_join(&joined, tree, item));
    const char *value = item->kind == YAML_TEXT ? item->text : joined.data ? joined.data : "";
    status = settings_set(settings, item->key, value);
    if (status == BERLU_ERR_ARG)
        status = yaml_fail(tree, item, "%s", berlu_last_error());
done:
    text_free(&joined);
    return status;
}

static berlu_status name_take(char name[SMOOTH_NAME], const yaml_tree *tree, const yaml_item *item)
{
    if (item->kind != YAML_TEXT || !name_is_identifier(item->text) || strlen(item->text) >= SMOOTH_NAME)
        return yaml_fail(tree, item, "name must be a word: a letter, then letters, digits and '_', at most %d",
                         SMOOTH_NAME - 1);
    strcpy(name, item->text);
    return BERLU_OK;
}

berlu_status smooth_yaml_take(berlu_smooth **out, char name[SMOOTH_NAME], const yaml_tree *tree)
{
    *out = NULL;
    *name = '\0';
    if (tree->root->kind != YAML_MAP)
        return yaml_fail(tree, tree->root, "expected keys and values (kinks, slopes, ...)");
    smooth_settings settings;
    settings_start(&settings);
    berlu_status status;
    for (const yaml_item *item = tree->root->first; item; item = item->next)
        TRY_DONE(strcmp(item->key, "name") == 0 ? name_take(name, tree, item) : key_take(&settings, tree, item));
    status = settings_make(&settings, out);
    if (status == BERLU_ERR_ARG)
        status = berlu_fail(BERLU_ERR_INPUT, "%s: %s", tree->name, berlu_last_error());
done:
    settings_free(&settings);
    return status;
}

berlu_status smooth_yaml_read(berlu_smooth **out, char name[SMOOTH_NAME], const char *path)
{
    yaml_tree tree;
    *out = NULL;
    TRY(yaml_tree_read(&tree, path));
    berlu_status status = smooth_yaml_take(out, name, &tree);
    yaml_tree_free(&tree);
    return status;
}
