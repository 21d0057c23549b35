/* test_confusion.c - the plot of a confusion matrix names its classes, few or many.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "confusion.h"
#include "support/folder.h"

enum { MOST = 150 };

/* Class k is answered rightly three times and taken for the next one once. */
static char *drawn_as(size_t classes, const char *const *names)
{
    static char folder[FOLDER_PATH], path[FOLDER_PATH];
    float logits[MOST];
    confusion c = {0};
    char *svg = NULL;
    for (size_t k = 0; k < classes; k++) {
        for (size_t image = 0; image < 4; image++) {
            memset(logits, 0, sizeof logits);
            logits[(k + (image == 3)) % classes] = 1;
            confusion_add(&c, logits, classes, k);
        }
    }
    folder_path(path, folder_fresh(folder, "cli_confusion"), "matrix.svg");
    assert_int_equal(confusion_save(&c, names, "title", "subtitle", path), BERLU_OK);
    assert_int_equal(file_read_all(&svg, NULL, path, 1 << 22), BERLU_OK);
    confusion_free(&c);
    return svg;
}

static char *drawn(size_t classes)
{
    static char texts[MOST][16];
    const char *names[MOST];
    for (size_t k = 0; k < classes; k++) {
        snprintf(texts[k], sizeof texts[k], "kind<%zu", k);
        names[k] = texts[k];
    }
    return drawn_as(classes, names);
}

static void few_classes_have_names_and_numbers(void **state)
{
    (void)state;
    char *svg = drawn(10);
    assert_non_null(strstr(svg, ">kind&lt;9</text>"));
    assert_non_null(strstr(svg, ">75</text>"));
    assert_null(strstr(svg, "<title>"));
    free(svg);
}

static void many_classes_have_names_and_cells_that_say_their_number(void **state)
{
    (void)state;
    char *svg = drawn(100);
    assert_non_null(strstr(svg, ">kind&lt;99</text>"));
    assert_null(strstr(svg, ">75</text>"));
    assert_non_null(strstr(svg, "<title>kind&lt;7 as kind&lt;8: 25 %</title>"));
    free(svg);
}

static void more_than_fit_are_drawn_without_names(void **state)
{
    (void)state;
    char *svg = drawn(MOST);
    assert_null(strstr(svg, "kind"));
    assert_non_null(strstr(svg, "</svg>"));
    free(svg);
}

/* Names of folders are bytes; the plot is UTF-8 whatever they are, and cuts between characters. */
static void names_may_be_long_and_of_any_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"a\u540d\u540d\u540d\u540d\u540d\u540d", "\xff\xfe <bad>",
                                        "\u00fc\u00fc\u00fc\u00fc a name that is long"};
    char *svg = drawn_as(3, names);
    assert_int_equal(utf8_span(svg), strlen(svg));
    assert_non_null(strstr(svg, ">a\u540d\u540d\u540d\u540d\u540d\u540d</text>"));
    assert_non_null(strstr(svg, ">\uFFFD\uFFFD &lt;bad&gt;</text>"));
    assert_non_null(strstr(svg, ">\u00fc\u00fc\u00fc\u00fc a n\u2026t is long</text>"));
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_classes_have_names_and_numbers),
        cmocka_unit_test(many_classes_have_names_and_cells_that_say_their_number),
        cmocka_unit_test(more_than_fit_are_drawn_without_names),
        cmocka_unit_test(names_may_be_long_and_of_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
