/* test_engine_memory.c - every allocation of building and making an engine may fail.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/image_set.h"
#include "graph/cases.h"
#include "support/fail.h"

static berlu_status build_and_create(const graph_case *c, const backend *machine, const berlu_act *act, engine **out)
{
    graph *g = NULL;
    *out = NULL;
    berlu_status status = graph_create(&g);
    if (status != BERLU_OK)
        return status;
    c->build(g, act);
    engine_options o = c->options;
    o.backend = machine;
    o.threads = 1;
    o.ema = o.profile = 1;
    o.accumulate = 4;
    status = graph_status(g);
    if (status == BERLU_OK)
        status = engine_create(out, g, &o);
    graph_free(g);
    return status;
}

static void a_failed_allocation_leaves_nothing_behind(void **state)
{
    (void)state;
    backend folding = *cpu_f64_backend(); /* with every pass */
    folding.fold_weights = 1;
    for (int i = graph_case_count % 7 ? graph_case_count % 7 - 1 : 6; i < graph_case_count; i += 7) { /* the last too */
        const graph_case *c = &graph_cases[i];
        berlu_act *act = NULL;
        engine *e = NULL;
        berlu_status status;
        if (c->act)
            assert_int_equal(berlu_act_make(&act, c->act), BERLU_OK);
        for (int machine = 0; machine < 2; machine++) {
            const backend *b = machine ? &folding : cpu_backend();
            for (int n = 1;
                 fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = build_and_create(c, b, act, &e), fail_hit(); n++) {
                assert_int_equal(status, BERLU_ERR_MEMORY);
                assert_null(e);
            }
            assert_int_equal(status, BERLU_OK);
            engine_free(e);
        }
        berlu_act_free(act);
    }
}

static berlu_status images_take(engine *e)
{
    static const float levels[IMAGE_LEVELS];
    static const uint8_t pixels[2 * 3 * 8 * 8];
    image_set *set = NULL;
    berlu_status status = image_set_create(&set, cpu_backend(), engine_device(e), 8, 2, levels);
    if (status == BERLU_OK)
        status = image_set_write(set, 0, 2, pixels);
    if (status == BERLU_OK)
        status = engine_use_images(e, set);
    image_set_free(set);
    return status;
}

static void a_set_of_images_survives_every_failed_allocation(void **state)
{
    (void)state;
    prepared p = case_prepare(&graph_cases[0], cpu_backend(), 1);
    berlu_status status;
    int n = 1;
    for (; fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = images_take(p.e), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(status, BERLU_OK);
    assert_true(n > 3);
    case_free(&p);
}

/* Views and profiles are made on request, long after the engine; they too may find no memory. */
static void looking_at_a_graph_survives_every_failed_allocation(void **state)
{
    (void)state;
    const graph_case *c = &graph_cases[graph_case_count - 1];
    graph_case profiled = *c;
    profiled.options.profile = 1;
    prepared p = case_prepare(&profiled, cpu_backend(), 1);
    engine_options o = c->options;
    berlu_status status;
    o.backend = cpu_backend();
    assert_int_equal(engine_forward(p.e, &p.step), BERLU_OK);
    for (int what = 0; what < 3; what++) {
        text out = {0};
        for (int n = 1; fail_after(FAIL_ALLOC | FAIL_ARENA, n),
                 status = what == 0   ? engine_profile_text(p.e, &(engine_profile){.by = PROFILE_BY_SHAPE}, &out)
                          : what == 1 ? engine_pass_print(p.g, &o, PASS_PLAN, &out, 0)
                                      : engine_pass_print(p.g, &o, PASS_FUSE, &out, 1),
                 fail_hit();
             n++) {
            assert_int_equal(status, BERLU_ERR_MEMORY);
            text_free(&out);
        }
        assert_int_equal(status, BERLU_OK);
        assert_true(out.length > 100);
        text_free(&out);
    }
    case_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_allocation_leaves_nothing_behind),
        cmocka_unit_test(a_set_of_images_survives_every_failed_allocation),
        cmocka_unit_test(looking_at_a_graph_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
