/* test_onnx.c - ONNX files when memory or disk run out, and timm's configurations.
 * SPDX-License-Identifier: MIT
 *
 * That the files compute what the engine computes is a matter of tests/python/test_export.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "cpu/cpu.h"
#include "models/onnx.h"
#include "models/timm.h"
#include "models/weights.h"
#include "support/fail.h"
#include "support/folder.h"

static void open_model(model **m, engine **e, const char *name, const char *act)
{
    const engine_options how = {.backend = cpu_backend(), .batch = 1};
    const model_options options = {.acts = &act, .act_count = 1};
    assert_int_equal(model_create(m, name, &options), BERLU_OK);
    assert_int_equal(engine_create(e, (*m)->graph, &how), BERLU_OK);
    assert_int_equal(weights_init(*e, 1, NULL), BERLU_OK);
}

static void a_failed_allocation_or_write_leaves_no_file(void **state)
{
    (void)state;
    static const struct {
        const char *name, *act;
    } cases[] = {{"tnt_micro", "smooth(kinks=-1,1; slopes=0,1,0; eps=0.5; degree=4)"},
                 {"convnext_micro", "berlu:degree=4"},
                 {"deit_micro", "elu"}};
    char folder[FOLDER_PATH], path[FOLDER_PATH];
    const onnx_options options = {.functions = 1};
    folder_path(path, folder_fresh(folder, "models_onnx"), "m.onnx");
    for (size_t i = 0; i < COUNT(cases); i++) {
        model *m = NULL;
        engine *e = NULL;
        berlu_status status = BERLU_OK;
        open_model(&m, &e, cases[i].name, cases[i].act);
        int step = 1;
        for (int n = 1;
             fail_after(FAIL_ALLOC | FAIL_ARENA, n), status = model_write_onnx(path, m, e, &options), fail_hit();
             n += step++ % 7 + 1) {
            assert_true(status == BERLU_ERR_MEMORY || status == BERLU_ERR_UNSUPPORTED);
            assert_false(file_exists(path));
        }
        assert_int_equal(status, BERLU_OK);
        assert_true(file_exists(path));
        unlink(path);
        for (int n = 1; fail_after(FAIL_WRITE, n), status = model_write_onnx(path, m, e, &options), fail_hit(); n++) {
            assert_int_equal(status, BERLU_ERR_IO);
            assert_false(file_exists(path));
        }
        assert_int_equal(status, BERLU_OK);
        unlink(path);
        engine_free(e);
        model_free(m);
    }
}

static berlu_status configured(text *out, const char *name, const char *const *acts, int count, int per_channel)
{
    model *m = NULL;
    const model_options options = {.acts = acts, .act_count = count, .per_channel = per_channel};
    assert_int_equal(model_create(&m, name, &options), BERLU_OK);
    *out = (text){0};
    berlu_status status = timm_config(
        out, m, &(timm_images){.mean = "0.5,0.5,0.5", .std = "0.26,0.26,0.26", .filter = "bicubic", .mode = "center"});
    model_free(m);
    return status;
}

static void timm_is_told_everything_or_refused(void **state)
{
    (void)state;
    static const char *const berlu[] = {"berlu"}, *const gelu[] = {"gelu"};
    static const char *const several[] = {"gelu", "relu", "gelu", "gelu"};
    text t;
    for (size_t i = 0; model_name(i); i++) { /* every model that timm has */
        int linear = strcmp(model_name(i), "linear") == 0;
        assert_int_equal(configured(&t, model_name(i), gelu, linear ? 0 : 1, 0),
                         linear ? BERLU_ERR_UNSUPPORTED : BERLU_OK);
        assert_true(linear || !strstr(t.data, "act_layer"));
        text_free(&t);
    }
    assert_int_equal(configured(&t, "vit_tiny", berlu, 1, 0), BERLU_OK);
    assert_non_null(strstr(t.data, "\"architecture\": \"vit_tiny_patch16_224\""));
    assert_non_null(strstr(t.data, "\"act_layer\": \"berlu:alpha=0.01,eps=0.01,degree=2,learn=alpha\""));
    text_free(&t);
    assert_int_equal(configured(&t, "vit_micro", several, 4, 0), BERLU_ERR_UNSUPPORTED);
    assert_int_equal(configured(&t, "tnt_micro", berlu, 1, 0), BERLU_ERR_UNSUPPORTED);
    assert_int_equal(configured(&t, "vit_micro", berlu, 1, 1), BERLU_ERR_UNSUPPORTED);
    assert_non_null(strstr(berlu_last_error(), "berlu.timm.load(RUN)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_allocation_or_write_leaves_no_file),
        cmocka_unit_test(timm_is_told_everything_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
