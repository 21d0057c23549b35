/* test_options.c - one table drives parsing, defaults, ranges, errors and settings files.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "output.h"
#include "support/fail.h"

static const option_row rows[] = {
    {"model", OPTION_STRING, .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "which network"},
    {"more", OPTION_STRINGS, .flags = OPTION_ARGUMENT, .help = "more of them"},
    {"batch", OPTION_INT, "N", .standard = "128", .least = 1, .most = 65536, .help = "images per step"},
    {"lr", OPTION_FLOAT, .help = "learning rate"},
    {"weight-decay", OPTION_FLOAT, .standard = "0.05", .least = 0, .most = 1, .help = "decay"},
    {"keep", OPTION_CHOICE, .standard = "input", .choices = "input|both|output", .help = "what is kept"},
    {"kinks", OPTION_FLOATS, .flags = OPTION_MANY, .help = "where it bends"},
    {"n", OPTION_INTS, .standard = "16Ki,256Ki", .least = 0, .most = 1e12, .help = "sizes"},
    {"act", OPTION_STRINGS, .standard = "gelu", .help = "activation"},
    {"graph", OPTION_OPTIONAL, .choices = "text|dot", .help = "print the graph"},
    {"resume", OPTION_FLAG, .help = "go on"},
    {"ema", OPTION_FLAG, .help = "average"},
    {0}};

/* Parses words up to NULL. */
static berlu_status parse(options **o, const char *first, ...)
{
    char *words[32] = {(char *)first};
    int count = first != NULL;
    va_list args;
    va_start(args, first);
    while (count && count < 31 && (words[count] = va_arg(args, char *)))
        count++;
    va_end(args);
    return options_parse(o, rows, count, words);
}

static void assert_error(const char *part, const char *first, const char *second)
{
    options *o;
    assert_int_equal(parse(&o, "vit", first, second, NULL), BERLU_ERR_ARG);
    if (!strstr(berlu_last_error(), part))
        fail_msg("'%s' is not in '%s'", part, berlu_last_error());
    options_free(o);
}

static void defaults_hold_until_something_is_given(void **state)
{
    (void)state;
    options *o;
    assert_int_equal(parse(&o, "vit", NULL), BERLU_OK);
    assert_string_equal(options_string(o, "model"), "vit");
    assert_int_equal(options_int(o, "batch"), 128);
    assert_true(options_float(o, "weight-decay") == 0.05);
    assert_true(isnan(options_float(o, "lr")));
    assert_int_equal(options_choice(o, "keep"), 0);
    assert_int_equal(options_choice(o, "graph"), -1);
    assert_null(options_string(o, "graph"));
    assert_int_equal(options_count(o, "n"), 2);
    assert_int_equal(options_ints(o, "n")[1], 262144);
    assert_string_equal(options_strings(o, "act")[0], "gelu");
    assert_int_equal(options_count(o, "more"), 0);
    assert_false(options_given(o, "batch"));
    assert_false(options_json(o));
    assert_int_equal(options_threads(o), 0);
    options_free(o);
}

static void every_type_is_read_in_both_spellings(void **state)
{
    (void)state;
    options *o;
    assert_int_equal(parse(&o, "vit", "a", "b", "--batch=64", "--lr", "1e-3", "--keep", "both", "--kinks", "-3,-1", "2",
                           "-0x1p-3", "--graph=dot", "--ema", "--json", "--threads", "2", "--isa=scalar", NULL),
                     BERLU_OK);
    assert_int_equal(options_count(o, "more"), 2);
    assert_string_equal(options_strings(o, "more")[1], "b");
    assert_int_equal(options_int(o, "batch"), 64);
    assert_true(options_float(o, "lr") == 1e-3);
    assert_int_equal(options_choice(o, "keep"), 1);
    assert_string_equal(options_string(o, "keep"), "both");
    assert_int_equal(options_count(o, "kinks"), 4);
    const double want[] = {-3, -1, 2, -0.125};
    assert_memory_equal(options_floats(o, "kinks"), want, sizeof want);
    assert_string_equal(options_string(o, "graph"), "dot");
    assert_true(options_flag(o, "ema") && options_json(o));
    assert_int_equal(options_threads(o), 2);
    assert_int_equal(options_isa(o), CPU_SCALAR);
    assert_true(options_given(o, "batch"));
    options_free(o);
}

static void the_small_print_of_parsing_holds(void **state)
{
    (void)state;
    options *o;
    assert_int_equal(parse(&o, "--ema", "--no-ema", "--graph", "--batch", "1", "--batch", "2", "--", "--vit", NULL),
                     BERLU_OK);
    assert_false(options_flag(o, "ema"));
    assert_string_equal(options_string(o, "graph"), "text"); /* no value: the first choice */
    assert_int_equal(options_int(o, "batch"), 2);            /* the last one counts */
    assert_string_equal(options_string(o, "model"), "--vit");
    options_free(o);
    assert_int_equal(parse(&o, "vit", "--act", "relu", "--act=gelu", NULL), BERLU_OK);
    assert_int_equal(options_count(o, "act"), 2); /* replaces the default, then adds */
    assert_string_equal(options_strings(o, "act")[0], "relu");
    options_free(o);
    assert_int_equal(parse(&o, "vit", "--n", "1Ki,2Mi,3Gi,1e3", NULL), BERLU_OK);
    const int64_t sizes[] = {1024, 2 << 20, 3ll << 30, 1000};
    assert_memory_equal(options_ints(o, "n"), sizes, sizeof sizes);
    options_free(o);
}

static void long_lists_keep_all_their_entries(void **state)
{
    (void)state;
    char list[8000] = "0";
    for (int i = 1; i < 1000; i++)
        sprintf(list + strlen(list), ",%d", i);
    options *o;
    assert_int_equal(parse(&o, "vit", "--kinks", list, NULL), BERLU_OK);
    assert_int_equal(options_count(o, "kinks"), 1000);
    for (int i = 0; i < 1000; i++)
        assert_true(options_floats(o, "kinks")[i] == i);
    options_free(o);
}

static void mistakes_are_named_with_what_would_be_right(void **state)
{
    (void)state;
    assert_error("unknown option --bacth; did you mean --batch?", "--bacth", "3");
    assert_error("unknown option --thread; did you mean --threads?", "--thread=2", NULL);
    assert_error("unknown option --zzzzzz; --help", "--zzzzzz", NULL);
    assert_error("unknown option --model", "--model", "x"); /* an argument, not an option */
    assert_error("unknown option -b", "-b", NULL);
    assert_error("option --batch: '0' is outside 1 to 65536", "--batch", "0");
    assert_error("option --batch: '65537' is outside", "--batch=65537", NULL);
    assert_error("'99999999999999999999' is outside 1 to 65536", "--batch", "99999999999999999999");
    assert_error("'-1e300' is outside 1 to 65536", "--batch", "-1e300");
    assert_error("'1.5' is not a whole number", "--batch", "1.5");
    assert_error("'8Xi' is not a whole number", "--batch", "8Xi");
    assert_error("'' is not a whole number", "--batch=", NULL);
    assert_error("option --batch needs a value", "--batch", NULL);
    assert_error("option --batch needs a value", "--batch", "--ema");
    assert_error("option --lr: 'fast' is not a number", "--lr", "fast");
    assert_error("option --lr: 'inf' is not finite", "--lr", "inf");
    assert_error("option --weight-decay: '-0.1' is outside 0 to 1", "--weight-decay", "-0.1");
    assert_error("option --weight-decay: 'nan' is outside 0 to 1", "--weight-decay", "nan");
    assert_error("option --keep: 'outptu' is not one of input|both|output; did you mean 'output'?", "--keep", "outptu");
    assert_error("option --kinks: 'x' is not a number", "--kinks", "1,x");
    assert_error("option --kinks: '' is not a number", "--kinks", "1,,2");
    assert_error("option --graph: 'png' is not one of", "--graph=png", NULL);
    assert_error("option --ema: 'maybe' is neither", "--ema=maybe", NULL);
}

/* Only where it takes back what a settings file gave does an empty text mean something. */
static void an_empty_text_is_refused(void **state)
{
    (void)state;
    static const option_row texts[] = {{"file", OPTION_STRING, .flags = OPTION_ARGUMENT, .help = "which file"},
                                       {"svg", OPTION_STRING, "FILE", .help = "the plot"},
                                       {"init", OPTION_STRING, "FILE", .help = "weights", .flags = OPTION_EMPTY},
                                       {0}};
    options *o;
    assert_int_equal(options_parse(&o, texts, 1, (char *[]){""}), BERLU_ERR_ARG);
    assert_string_equal(berlu_last_error(), "argument file is empty: a text is expected");
    options_free(o);
    assert_int_equal(options_parse(&o, texts, 2, (char *[]){"--svg", ""}), BERLU_ERR_ARG);
    assert_string_equal(berlu_last_error(), "option --svg is empty: FILE is expected");
    options_free(o);
    assert_int_equal(options_parse(&o, texts, 1, (char *[]){"--svg="}), BERLU_ERR_ARG);
    options_free(o);
    assert_int_equal(options_parse(&o, texts, 1, (char *[]){"--init="}), BERLU_OK);
    assert_string_equal(options_string(o, "init"), "");
    options_free(o);
    assert_error("option --act is empty", "--act", "");
    assert_error("argument more is empty", "a", "");
}

static void a_missing_argument_is_named(void **state)
{
    (void)state;
    options *o;
    assert_int_equal(parse(&o, "--ema", NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "argument model is missing"));
    options_free(o);
    assert_int_equal(options_parse(&o, NULL, 1, (char *[]){"extra"}), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "unexpected argument 'extra'"));
    options_free(o);
}

static void help_wins_over_a_mistake(void **state)
{
    (void)state;
    options *o;
    assert_int_equal(parse(&o, "--batch", "x", "--help", NULL), BERLU_OK);
    assert_true(options_flag(o, "help"));
    options_free(o);
    assert_int_equal(parse(&o, "-h", NULL), BERLU_OK);
    assert_true(options_flag(o, "help"));
    options_free(o);
}

static void help_names_every_row_its_range_and_default(void **state)
{
    (void)state;
    char *help = NULL;
    size_t size;
    FILE *file = open_memstream(&help, &size);
    options_usage(file, rows);
    options_help(file, rows, NULL);
    fclose(file);
    const char *const parts[] = {
        " MODEL [MORE...] [options]", "--batch N", "from 1 (default: 128)", "--keep input|both|output",
        "--graph[=text|dot]",         "--resume",  "--threads N",           "--isa"};
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!strstr(help, parts[i]))
            fail_msg("help lacks '%s':\n%s", parts[i], help);
    free(help);
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    options *o;
    berlu_status status;
    char list[6000] = "0";
    for (int i = 1; i < 700; i++)
        strcat(list, ",1");
    int n;
    for (n = 1; fail_after(FAIL_ALLOC, n), status = parse(&o, "vit", "--kinks", list, "--act", "x", NULL), fail_hit();
         n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        options_free(o);
    }
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 2);
    options_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_hold_until_something_is_given),
        cmocka_unit_test(every_type_is_read_in_both_spellings),
        cmocka_unit_test(the_small_print_of_parsing_holds),
        cmocka_unit_test(long_lists_keep_all_their_entries),
        cmocka_unit_test(mistakes_are_named_with_what_would_be_right),
        cmocka_unit_test(an_empty_text_is_refused),
        cmocka_unit_test(a_missing_argument_is_named),
        cmocka_unit_test(help_wins_over_a_mistake),
        cmocka_unit_test(help_names_every_row_its_range_and_default),
        cmocka_unit_test(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
