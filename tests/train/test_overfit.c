/* test_overfit.c - every family learns one batch by heart, and a linear map does not need more.
 * SPDX-License-Identifier: MIT */
#include <omp.h>

#include "runs.h"

/* The micro network of a family at its own size; fewer images than the option's 32 keep it to a
 * second. */
static void learns_by_heart(const char *model, const char *act)
{
    char run[FOLDER_PATH], model_line[64], act_line[64];
    train_settings s;
    train_result r;
    snprintf(model_line, sizeof model_line, "model=%s", model);
    snprintf(act_line, sizeof act_line, "act=%s", act);
    const char *const extra[] = {model_line, act_line,  "overfit_batch=1", "image_size=", "patch=",
                                 "epochs=",  "batch=8", "max_steps=120",   "threads=2",   NULL};
    tiny_settings(&s, run_place(run, model), extra);
    if (run_with(&s, 0, NULL, &r) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_true(r.updates == 120);
    if (!(r.last.test_loss < 0.01))
        fail_msg("%s: a loss of %g after %d updates", model, r.last.test_loss, 120);
    assert_true(r.last.train_top1 == 100);
    recipe_free(&s);
}

static void vit_learns_one_batch_by_heart(void **state)
{
    (void)state;
    learns_by_heart("vit_micro", "berlu");
}

static void deit_learns_one_batch_by_heart(void **state)
{
    (void)state;
    learns_by_heart("deit_micro", "berlu");
}

static void tnt_learns_one_batch_by_heart(void **state)
{
    (void)state;
    learns_by_heart("tnt_micro", "berlu");
}

static void convnext_learns_one_batch_by_heart(void **state)
{
    (void)state;
    learns_by_heart("convnext_micro", "berlu");
}

int main(void)
{
    omp_set_num_threads(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vit_learns_one_batch_by_heart),
        cmocka_unit_test(deit_learns_one_batch_by_heart),
        cmocka_unit_test(tnt_learns_one_batch_by_heart),
        cmocka_unit_test(convnext_learns_one_batch_by_heart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
