/* fuzz_options.c - any words as a command line and as keys of a settings file.
 * SPDX-License-Identifier: MIT
 *
 * Input lines are the words. Whatever was taken must lie in its range and be writable as JSON. */
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "output.h"

static const option_row rows[] = {{"name", OPTION_STRING, .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "a name"},
                                  {"rest", OPTION_STRINGS, .flags = OPTION_ARGUMENT, .help = "more names"},
                                  {"count", OPTION_INT, .standard = "3", .least = -5, .most = 1000, .help = "a count"},
                                  {"size", OPTION_INT, .help = "any size"},
                                  {"rate", OPTION_FLOAT, .standard = "0.5", .least = 0, .most = 1, .help = "a rate"},
                                  {"kind", OPTION_CHOICE, .choices = "a|bee|sea", .help = "a kind"},
                                  {"kinks", OPTION_FLOATS, .flags = OPTION_MANY, .help = "numbers"},
                                  {"sizes", OPTION_INTS, .least = 0, .most = 1e9, .help = "whole numbers"},
                                  {"act", OPTION_STRINGS, .help = "words"},
                                  {"graph", OPTION_OPTIONAL, .choices = "text|dot", .help = "maybe a word"},
                                  {"dry-run", OPTION_FLAG, .help = "a flag"},
                                  {0}};

static void check(const options *o)
{
    if (options_int(o, "count") < -5 || options_int(o, "count") > 1000 || !(options_float(o, "rate") >= 0) ||
        !(options_float(o, "rate") <= 1) || options_choice(o, "kind") > 2 || options_choice(o, "graph") > 1)
        abort();
    for (size_t i = 0; i < options_count(o, "sizes"); i++)
        if (options_ints(o, "sizes")[i] < 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    enum { MOST = 64 };
    char *copy = malloc(size + 1), *words[MOST] = {0};
    if (!copy)
        return 0;
    memcpy(copy, bytes, size);
    copy[size] = 0;
    int count = 0;
    for (char *rest = NULL, *word = strtok_r(copy, "\n", &rest); word && count < MOST;
         word = strtok_r(NULL, "\n", &rest))
        words[count++] = word;
    options *o;
    if (options_parse(&o, rows, count, words) == BERLU_OK)
        check(o);
    options_free(o);
    free(copy);
    return 0;
}
