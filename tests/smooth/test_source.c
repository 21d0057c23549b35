/* test_source.c - the C source that the smoother writes, compiled and compared.
 * SPDX-License-Identifier: MIT
 *
 * All functions go into one shared object, built with the compiler of this build with warnings as
 * errors. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "support/folder.h"
#include <berlu/smooth.h>

enum { MOST = 200 };
static berlu_smooth *functions[MOST];
static size_t count;

static void add(berlu_status status)
{
    if (status != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    count++;
    assert_true(count < MOST);
}

static void functions_make(void)
{
    static const char *const texts[] = {
        "smooth(kinks=-3,1,3; slopes=0.25,1,-0.5,2; eps=0.5; degree=6; at=0.125=7)",
        "smooth(kinks=-1,1; slopes=0,1,0; eps=1; degree=4)",
        "smooth(kinks=-1,1; slopes=0,1,0; eps=0.25,0.5; eps_right=0.75,0.1; degree=9)",
        "smooth(kinks=0.1; slopes=-1,1; eps=0.3; eps_right=0.4; degree=7; form=collinear)",
        "smooth(slopes=2; at=1=3)",
        "smooth(kinks=1e6; slopes=0,1e-3; eps=100; degree=16)",
    };
    for (size_t i = 0; berlu_smooth_name(i); i++)
        for (int degree = 2; degree <= (i < 8 ? 16 : 5); degree += i < 8 ? 2 : 1)
            add(berlu_smooth_named(&functions[count], berlu_smooth_name(i), NULL, 0.375, degree));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add(berlu_smooth_parse(&functions[count], texts[i]));
}

/* The first have names that C or <math.h> has too. */
static const char *name_of(char out[32], size_t i)
{
    static const char *const taken[] = {"double", "fabs", "NAN", "main", "x"};
    snprintf(out, 32, "f%zu", i);
    return i < sizeof taken / sizeof *taken ? taken[i] : out;
}

static void *source_load(void)
{
    char folder[FOLDER_PATH], source[FOLDER_PATH], object[FOLDER_PATH], command[4 * FOLDER_PATH], name[32];
    folder_fresh(folder, "smooth_source");
    folder_path(source, folder, "functions.c");
    folder_path(object, folder, "functions.so");
    text all = {0};
    for (size_t i = 0; i < count; i++) {
        char *one;
        assert_int_equal(berlu_smooth_source(functions[i], name_of(name, i), &one), BERLU_OK);
        text_string(&all, one);
        free(one);
    }
    assert_int_equal(text_status(&all), BERLU_OK);
    assert_int_equal(file_write_atomic(source, all.data, all.length), BERLU_OK);
    text_free(&all);
    snprintf(command, sizeof command,
             "%s -std=c99 -Wall -Wextra -Werror -O1 -ffp-contract=off -shared -fPIC -o '%s' '%s' -lm", TEST_COMPILER,
             object, source);
    assert_int_equal(system(command), 0);
    void *library = dlopen(object, RTLD_NOW);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

/* Points of interest: joins and kinks, and points between and beyond. */
static size_t points_make(const berlu_smooth *f, double *x)
{
    size_t n = 0;
    x[n++] = -1e7, x[n++] = 1e7, x[n++] = 0;
    for (size_t i = 0; i < berlu_smooth_kink_count(f); i++) {
        berlu_transition t;
        assert_int_equal(berlu_smooth_transition(f, i, &t), BERLU_OK);
        x[n++] = t.from, x[n++] = t.to, x[n++] = t.x;
        x[n++] = nextafter(t.from, -INFINITY), x[n++] = nextafter(t.to, INFINITY);
        for (int k = -12; k <= 112; k++)
            x[n++] = t.from + (t.to - t.from) * k / 100.0;
    }
    return n;
}

/* The same formula in the same order but for constants folded into one: a few roundings of the
 * larger of value and terms. */
static void source_computes_what_the_library_computes(void **state)
{
    (void)state;
    functions_make();
    void *library = source_load();
    for (size_t i = 0; i < count; i++) {
        char name[64], short_name[32];
        double x[1000];
        snprintf(name, sizeof name, "smooth_%s", name_of(short_name, i));
        double (*value)(double) = (double (*)(double))(size_t)dlsym(library, name);
        snprintf(name, sizeof name, "smooth_%s_slope", name_of(short_name, i));
        double (*slope)(double) = (double (*)(double))(size_t)dlsym(library, name);
        assert_true(value && slope);
        size_t points = points_make(functions[i], x);
        double lipschitz = berlu_smooth_lipschitz(functions[i]);
        for (size_t k = 0; k < points; k++) {
            double y = berlu_smooth_value(functions[i], x[k]);
            double slack = 64 * 0x1p-53 * (fabs(y) + lipschitz * (fabs(x[k]) + 4));
            assert_true(fabs(value(x[k]) - y) <= slack);
            assert_true(fabs(slope(x[k]) - berlu_smooth_slope(functions[i], x[k])) <= 1e-10 * lipschitz);
        }
        assert_true(isnan(value(NAN)) && isnan(slope(NAN)));
        assert_true(value(INFINITY) == berlu_smooth_value(functions[i], INFINITY));
        assert_true(value(-INFINITY) == berlu_smooth_value(functions[i], -INFINITY));
        berlu_smooth_free(functions[i]);
    }
    dlclose(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(source_computes_what_the_library_computes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
