/* test_memory.c - every allocation of the analyses fails once.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "../train/runs.h"
#include "analyze/branch.h"
#include "analyze/card.h"
#include "analyze/contour.h"
#include "analyze/landscape.h"
#include "analyze/landscape_file.h"
#include "analyze/regions.h"
#include "analyze/spectrum.h"
#include "analyze/svd.h"
#include "support/fail.h"

static void a_network_that_finds_no_memory_says_so(void **state)
{
    (void)state;
    berlu_act *act;
    depth d;
    const depth_settings settings = {.q = 1, .c0 = 0.5, .layers = 2, .threads = 1, .width = 8};
    assert_int_equal(berlu_act_make(&act, "berlu"), BERLU_OK);
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = depth_find(&d, act, &settings), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 3); /* the plane, leaky relu and its text, the network */
    berlu_act_free(act);
}

static void a_card_that_cannot_be_drawn_leaves_no_file(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    berlu_act *act, *centred;
    card c = {0};
    folder_fresh(folder, "analyze_card");
    folder_path(path, folder, "card.svg");
    assert_int_equal(berlu_act_make(&act, "smelu:scale=2"), BERLU_OK);
    berlu_status status;
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = act_centred(&centred, act), fail_hit(); n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_null(centred);
    }
    assert_int_equal(status, BERLU_OK);
    berlu_act_free(centred);
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = card_plot(&c, act, "smelu", path), fail_hit();
         n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    assert_int_equal(status, BERLU_OK);
    assert_int_equal(access(path, F_OK), 0);
    berlu_act_free(act);
}

/* Opens the run, takes a gradient and the bounds of its branches. */
static berlu_status run_look(const char *run)
{
    opened o;
    branch *branches = NULL;
    size_t count;
    double loss, *gradient = NULL;
    const opened_options options = {.name = run, .images = 4, .batch = 4, .threads = 1};
    berlu_status status = opened_make(&o, &options);
    if (status != BERLU_OK)
        return status;
    status = opened_checkpoint(&o);
    if (status == BERLU_OK && !(gradient = malloc(o.parameters * sizeof *gradient)))
        status = BERLU_ERR_MEMORY;
    if (status == BERLU_OK)
        status = opened_loss(&o, &loss, gradient);
    if (status == BERLU_OK)
        status = branches_find(&branches, &count, &o, 1);
    free(branches);
    free(gradient);
    opened_free(&o);
    return status;
}

/* On a network that takes no time. */
static void a_landscape_that_finds_no_memory_says_so(void **state)
{
    (void)state;
    static const char *const settings[][2] = {{"image_size", "4"}};
    const opened_options options = {
        .name = "linear", .settings = settings, .setting_count = 1, .images = 4, .batch = 4, .threads = 1};
    const landscape_options tiny = {
        .directions = 2, .points = 1, .grid = 3, .radius = 0.1, .eigenvalues = 1, .steps = 2, .rho = 0.1};
    opened o;
    spectrum s;
    landscape l;
    berlu_status status;
    if (opened_make(&o, &options) != BERLU_OK || opened_start(&o) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = spectrum_find(&s, &o, 1), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    spectrum_free(&s);
    int n = 1;
    for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = landscape_find(&l, &o, &tiny), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 10);
    landscape_free(&l);
    opened_free(&o);
}

static void a_run_that_finds_no_memory_says_so(void **state)
{
    (void)state;
    static const char *const one[] = {"epochs=1", "synthetic_images=16", NULL};
    char run[FOLDER_PATH];
    berlu_status status;
    int n = 1;
    run_whole(run_place(run, "analyze_memory"), one);
    for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = run_look(run), fail_hit(); n++)
        if (status != BERLU_ERR_MEMORY && (status == BERLU_OK || !strstr(berlu_last_error(), "memory"))) /* a checkpoint
            that cannot be read is passed over, and the last of them named */
            fail_msg("allocation %d: %d, %s", n, status, berlu_last_error());
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 50);
    regions r;
    for (n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = regions_read(&r, run), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    regions_free(&r);
    arena memory = {0};
    contour c;
    const double square[4] = {0, 1, 1, 0}, side[2] = {0, 1};
    for (n = 1;
         fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = contour_find(&c, &memory, square, side, 2, 0.4), fail_hit();
         n++) {
        assert_int_equal(status, BERLU_ERR_MEMORY);
        arena_free(&memory);
    }
    assert_int_equal(status, BERLU_OK);
    arena_free(&memory);
    const float matrix[4] = {1, 2, 3, 4};
    double values[2];
    for (n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = singular_values(values, matrix, 2, 2), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
}

/* Written whole or not at all; read to the same bits, or refused by name. */
static void a_landscape_file_survives_failures(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    const landscape_summary s = {1.0 / 3, 0.1, 1e-7, NAN, NAN, "3 test images"};
    static const char *const broken[] = {"", "[", "[1]", "{\"how\": 1}",
                                         "{\"how\": \"x\", \"loss\": 1, \"gradient\": 1}"};
    landscape_summary back;
    folder_fresh(folder, "analyze_landscape_file");
    folder_path(path, folder, LANDSCAPE_FILE);
    berlu_status status;
    assert_int_equal(landscape_load(&back, folder), BERLU_ERR_INPUT);
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = landscape_save(folder, &s), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    for (int n = 1; fail_after(FAIL_WRITE | FAIL_SHORT | FAIL_SYNC, n), status = landscape_save(folder, &s), fail_hit();
         n++)
        assert_int_equal(status, BERLU_ERR_IO);
    assert_int_equal(status, BERLU_OK);
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = landscape_load(&back, folder), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    assert_true(back.loss == s.loss && back.gradient == s.gradient && back.sharpness == s.sharpness);
    assert_true(isnan(back.eigenvalue) && isnan(back.error));
    assert_string_equal(back.how, s.how);
    for (size_t i = 0; i < COUNT(broken); i++) {
        assert_int_equal(file_write_atomic(path, broken[i], strlen(broken[i])), BERLU_OK);
        assert_int_equal(landscape_load(&back, folder), BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), LANDSCAPE_FILE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_that_finds_no_memory_says_so),
        cmocka_unit_test(a_card_that_cannot_be_drawn_leaves_no_file),
        cmocka_unit_test(a_landscape_that_finds_no_memory_says_so),
        cmocka_unit_test(a_run_that_finds_no_memory_says_so),
        cmocka_unit_test(a_landscape_file_survives_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
