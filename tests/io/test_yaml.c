/* test_yaml.c - YAML comes in as a tree, and what is wrong is named with its line.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "io/yaml.h"

static void assert_refused(const char *source, const char *place, const char *sentence)
{
    yaml_tree tree;
    assert_int_equal(yaml_tree_parse(&tree, source, strlen(source), "f.yaml"), BERLU_ERR_INPUT);
    if (!strstr(berlu_last_error(), place) || !strstr(berlu_last_error(), sentence))
        fail_msg("'%s' names neither '%s' nor '%s'", berlu_last_error(), place, sentence);
}

static void maps_lists_and_texts_keep_their_order_and_places(void **state)
{
    (void)state;
    const char *source = "model: vit_micro\nact: [relu, 'berlu:eps=0.1']\nsub:\n  batch: 8\n  empty:\n";
    yaml_tree tree;
    assert_int_equal(yaml_tree_parse(&tree, source, strlen(source), "f.yaml"), BERLU_OK);
    assert_int_equal(tree.root->kind, YAML_MAP);
    assert_int_equal(tree.root->count, 3);
    const yaml_item *act = yaml_find(tree.root, "act");
    assert_int_equal(act->kind, YAML_LIST);
    assert_int_equal(act->count, 2);
    assert_string_equal(act->first->text, "relu");
    assert_false(act->first->quoted);
    assert_string_equal(act->first->next->text, "berlu:eps=0.1");
    assert_true(act->first->next->quoted);
    const yaml_item *batch = yaml_find(yaml_find(tree.root, "sub"), "batch");
    assert_string_equal(batch->text, "8");
    assert_int_equal(batch->line, 4);
    assert_int_equal(batch->column, 10);
    assert_string_equal(yaml_find(yaml_find(tree.root, "sub"), "empty")->text, "");
    assert_null(yaml_find(tree.root, "nothing"));
    assert_null(yaml_find(act, "model"));
    yaml_fail(&tree, batch, "batch %d is odd", 8);
    assert_string_equal(berlu_last_error(), "f.yaml:4:10: batch 8 is odd");
    yaml_tree_free(&tree);
}

static void an_empty_file_is_an_empty_map(void **state)
{
    (void)state;
    const char *sources[] = {"", "# a comment\n", "---\n", "\n\n"};
    for (size_t i = 0; i < COUNT(sources); i++) {
        yaml_tree tree;
        assert_int_equal(yaml_tree_parse(&tree, sources[i], strlen(sources[i]), "f"), BERLU_OK);
        assert_int_equal(tree.root->kind, YAML_MAP);
        assert_int_equal(tree.root->count, 0);
        yaml_tree_free(&tree);
    }
}

static void what_a_settings_file_never_needs_is_refused_by_name(void **state)
{
    (void)state;
    assert_refused("a: 1\nb: 2\na: 3\n", "f.yaml:3:1", "'a' stands here a second time (first in line 1)");
    assert_refused("a: &x 1\n", "f.yaml:1:4", "anchors");
    assert_refused("a: *x\n", "f.yaml:1:4", "aliases");
    assert_refused("a: !!int 1\n", "f.yaml:1:4", "tags");
    assert_refused("&k a: 1\n", "f.yaml:1:1", "anchors");
    assert_refused("a: 1\n---\nb: 2\n", "f.yaml:2:1", "second document");
    assert_refused("[a, b]: 1\n", "f.yaml:1:1", "a key must be a plain word");
    assert_refused("a: [1, 2\nb: 3\n", "f.yaml:2", "f.yaml");
    assert_refused("a: \"x\\0y\"\n", "f.yaml:1:4", "NUL");
}

static void nesting_and_size_have_limits(void **state)
{
    (void)state;
    text deep = {0}, wide = {0};
    for (int i = 0; i < YAML_DEPTH + 1; i++)
        text_string(&deep, "[");
    assert_refused(deep.data, "f.yaml:1:17", "nested too deeply");
    text_string(&wide, "[");
    for (int i = 0; i < YAML_ITEMS; i++)
        text_string(&wide, "1,\n");
    text_string(&wide, "]");
    assert_refused(wide.data, "f.yaml:20000:", "too many items");
    yaml_tree tree;
    assert_int_equal(yaml_tree_parse(&tree, wide.data, (size_t)YAML_BYTES + 1, "long"), BERLU_ERR_INPUT);
    text_free(&deep);
    text_free(&wide);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    yaml_tree tree;
    assert_int_equal(yaml_tree_read(&tree, "no/such.yaml"), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "no/such.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_lists_and_texts_keep_their_order_and_places),
        cmocka_unit_test(an_empty_file_is_an_empty_map),
        cmocka_unit_test(what_a_settings_file_never_needs_is_refused_by_name),
        cmocka_unit_test(nesting_and_size_have_limits),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
