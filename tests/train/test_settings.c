/* test_settings.c - every setting does what it says.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <omp.h>

#include "io/safetensors.h"
#include "runs.h"
#include "train/curves.h"
#include "train/eval_run.h"

static void accumulating_equals_one_large_batch(void **state)
{
    (void)state;
    char one[FOLDER_PATH], two[FOLDER_PATH];
    const char *const large[] = {"batch=16", "epochs=2", NULL}, *const small[] = {"batch=8", "accumulate=2", "epochs=2",
                                                                                  NULL};
    run_whole(run_place(one, "large"), large);
    run_whole(run_place(two, "small"), small);
    for (size_t e = 0; e < 2; e++) {
        double a = metric(one, e, "train_loss"), b = metric(two, e, "train_loss");
        assert_true(fabs(a - b) < 1e-4 * a);
        a = metric(one, e, "grad_norm"), b = metric(two, e, "grad_norm");
        assert_true(fabs(a - b) < 1e-3 * a);
    }
}

static void learning_lowers_the_loss(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"epochs=8", NULL};
    run_whole(run_place(run, "learns"), extra);
    assert_true(metric(run, 7, "train_loss") < 0.8 * metric(run, 0, "train_loss"));
    assert_true(metric(run, 7, "train_top1") > metric(run, 0, "train_top1"));
}

static void sgd_learns_too(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"epochs=8", "optimizer=sgd", "lr=0.1", "nesterov=1", NULL};
    run_whole(run_place(run, "sgd"), extra);
    assert_true(metric(run, 7, "train_loss") < 0.95 * metric(run, 0, "train_loss"));
}

static void frozen_activation_parameters_stay_where_they_are(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"act_freeze=1", "epochs=1", NULL};
    run_whole(run_place(run, "frozen"), extra);
    assert_true(metric(run, 0, "alpha.blocks.0.mlp.act") == (double)0.01f);
    run_whole(run_place(run, "not-frozen"), (const char *const[]){"epochs=1", NULL});
    assert_true(metric(run, 0, "alpha.blocks.0.mlp.act") != (double)0.01f);
}

static void constraints_hold_and_the_lipschitz_constant_follows(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    /* a large rate drives alpha about; the interval holds it, and L = max(1, |alpha|) */
    const char *const extra[] = {"act_constraint=alpha:0.25:0.5", "act_lr=100", "epochs=2", NULL};
    run_whole(run_place(run, "bounded"), extra);
    for (size_t e = 0; e < 2; e++)
        for (int b = 0; b < 4; b++) {
            char name[64];
            snprintf(name, sizeof name, "alpha.blocks.%d.mlp.act", b);
            double alpha = metric(run, e, name);
            assert_true(alpha >= 0.25 && alpha <= 0.5);
        }
    assert_true(metric(run, 1, "lipschitz") == 1);
    const char *const wide[] = {"act=berlu:alpha=-3", "act_constraint=alpha::-2", "epochs=1", NULL};
    run_whole(run_place(run, "expansive"), wide);
    double most = 0;
    for (int b = 0; b < 4; b++) {
        char name[64];
        snprintf(name, sizeof name, "alpha.blocks.%d.mlp.act", b);
        most = fmax(most, fabs(metric(run, 0, name)));
    }
    assert_true(fabs(metric(run, 0, "lipschitz") - most) < 1e-6 && most > 2);
}

static void the_figures_of_a_site_add_up(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"act=relu", "epochs=1", NULL};
    run_whole(run_place(run, "figures"), extra);
    double left = metric(run, 0, "left.blocks.1.mlp.act"), right = metric(run, 0, "right.blocks.1.mlp.act");
    assert_true(left > 0.1 && right > 0.1);
    assert_true(fabs(left + right + metric(run, 0, "inside.blocks.1.mlp.act") - 1) < 1e-12);
    assert_true(metric(run, 0, "dead.blocks.1.mlp.act") >= 0 && metric(run, 0, "dead.blocks.1.mlp.act") < 1);
    assert_true(metric(run, 0, "grad.blocks.1.mlp.act") > 0 && metric(run, 0, "var.blocks.1.mlp.act") > 0);
    assert_true(metric(run, 0, "y_mean.blocks.1.mlp.act") > metric(run, 0, "mean.blocks.1.mlp.act"));
    assert_true(isnan(metric(run, 0, "alpha.blocks.1.mlp.act")));
}

static void one_batch_can_be_learned_by_heart(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    const char *const extra[] = {"overfit_batch=1", "epochs=", NULL};
    train_settings s;
    tiny_settings(&s, run_place(run, "overfit"), extra);
    train_result r;
    assert_int_equal(run_with(&s, 0, NULL, &r), BERLU_OK);
    assert_int_equal(r.updates, 200);
    assert_true(r.last.test_loss < 0.01);
    assert_true(r.last.train_top1 == 100);
    recipe_free(&s);
}

static void a_student_learns_from_a_teachers_run(void **state)
{
    (void)state;
    char teacher[FOLDER_PATH], run[FOLDER_PATH], line[FOLDER_PATH + 16];
    run_whole(run_place(teacher, "teacher"), NULL);
    snprintf(line, sizeof line, "teacher=%s", teacher);
    const char *const kinds[] = {"distill=hard", "distill=soft"};
    for (size_t k = 0; k < 2; k++) {
        const char *const extra[] = {"model=deit_micro", line, kinds[k], "epochs=2", NULL};
        run_whole(run_place(run, kinds[k]), extra);
        assert_true(metric(run, 1, "train_loss") < metric(run, 0, "train_loss"));
    }
    train_settings s; /* a model with one head cannot be distilled */
    const char *const wrong[] = {line, "distill=hard", NULL};
    tiny_settings(&s, run_place(run, "one-head"), wrong);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_false(run_exists(run));
    recipe_free(&s);
}

static void eval_gives_the_figures_of_the_last_row(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    run_whole(run_place(run, "eval"), NULL);
    score s;
    eval_request request = {.run = run, .which = "last", .batch = 5};
    assert_int_equal(eval_run(&request, &s), BERLU_OK);
    assert_true(score_top1(&s) == metric(run, 2, "test_top1"));
    assert_true(fabs(score_loss(&s) - metric(run, 2, "test_loss")) < 1e-6);
    request.which = "best";
    assert_int_equal(eval_run(&request, &s), BERLU_OK);
    request.which = "17";
    assert_int_equal(eval_run(&request, &s), BERLU_ERR_INPUT);
    request.which = "24abc";
    assert_int_equal(eval_run(&request, &s), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "24abc"));
}

/* The network of a file of ours is in its metadata: a smaller patch needs no option, and a given one is taken. */
static void weights_say_the_sizes_of_their_network(void **state)
{
    (void)state;
    static const char *const few[][2] = {{"synthetic_images", "64"}, {"patch", "4"}};
    char run[FOLDER_PATH], path[2 * FOLDER_PATH];
    score of_run, of_file;
    run_whole(run_place(run, "sizes"), NULL); /* 16 x 16 images, patches of 8: not vit_micro's own */
    snprintf(path, sizeof path, "%s/checkpoints/last/model.safetensors", run);
    eval_request r = {.run = run, .which = "last", .batch = 5};
    assert_int_equal(eval_run(&r, &of_run), BERLU_OK);
    eval_request w = {.run = "vit_micro", .weights = path, .batch = 5, .data = "synthetic"};
    w.settings = few, w.setting_count = 1;
    if (eval_run(&w, &of_file) != BERLU_OK)
        fail_msg("%s", berlu_last_error());
    assert_int_equal(of_run.top1, of_file.top1);
    w.setting_count = 2;
    assert_int_equal(eval_run(&w, &of_file), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "the model wants"));
}

static void a_teachers_file_says_its_activation_or_is_asked_for_it(void **state)
{
    (void)state;
    char teacher[FOLDER_PATH], run[FOLDER_PATH], line[2 * FOLDER_PATH], path[FOLDER_PATH];
    const char *const small[] = {"model=deit_micro", line, "distill=hard", "image_size=", "patch=", "epochs=1", NULL};
    train_settings s;
    run_whole(run_place(teacher, "teacher-file"),
              (const char *const[]){"act=prelu", "image_size=", "patch=", "epochs=1", NULL});
    snprintf(line, sizeof line, "teacher=vit_micro:%s/checkpoints/last/model.safetensors", teacher);
    run_whole(run_place(run, "from-file"), small);
    snprintf(line, sizeof line, "teacher=vit_micro:%s", folder_path(path, teacher, "bare.safetensors"));
    safetensors *file; /* the same weights as another program would leave them */
    char full[2 * FOLDER_PATH];
    snprintf(full, sizeof full, "%s/checkpoints/last/model.safetensors", teacher);
    assert_int_equal(safetensors_open(&file, full), BERLU_OK);
    size_t count = safetensors_count(file);
    st_tensor *tensors = calloc(count, sizeof *tensors);
    for (size_t i = 0; i < count; i++)
        tensors[i] = *safetensors_at(file, i);
    assert_int_equal(safetensors_write(path, tensors, count, NULL, 0), BERLU_OK);
    free(tensors);
    safetensors_close(file);
    tiny_settings(&s, run_place(run, "from-bare-file"), small);
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "--teacher-act"));
    recipe_free(&s);
    run_whole(run, (const char *const[]){small[0], small[1], small[2], small[3], small[4], small[5],
                                         "teacher_act=prelu", NULL});
}

static void settings_of_learned_parameters_need_some(void **state)
{
    (void)state;
    static const char *const idle[] = {"act_lr=2", "act_decay=0.1", "act_freeze=1",
                                       "act_constraint=alpha:0:", "act_params=channel"};
    for (size_t i = 0; i < COUNT(idle); i++) {
        char run[FOLDER_PATH];
        train_settings s;
        tiny_settings(&s, run_place(run, "idle"), (const char *const[]){"act=relu", idle[i], NULL});
        assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
        assert_non_null(strstr(berlu_last_error(), "relu has no learned parameter"));
        assert_false(run_exists(run));
        recipe_free(&s);
    }
}

/* Sums of the backward run in another order, so losses agree within rounding. */
static void attention_recomputed_plans_less_memory_for_the_same_losses(void **state)
{
    (void)state;
    char kept[FOLDER_PATH], recomputed[FOLDER_PATH];
    train_result a = run_whole(run_place(kept, "attention-kept"), (const char *const[]){"epochs=2", NULL});
    train_result b = run_whole(run_place(recomputed, "attention-recomputed"),
                               (const char *const[]){"epochs=2", "recompute_attention=1", NULL});
    assert_true(b.planned_bytes < a.planned_bytes);
    for (size_t e = 0; e < 2; e++) {
        double of_kept = metric(kept, e, "train_loss");
        assert_true(fabs(metric(recomputed, e, "train_loss") - of_kept) < 1e-6 * of_kept);
    }

    train_settings s;
    tiny_settings(&s, run_place(kept, "no-attention"),
                  (const char *const[]){"model=convnext_micro", "patch=", "recompute_attention=1", NULL});
    assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "convnext_micro has no attention"));
    assert_false(run_exists(kept));
    recipe_free(&s);
}

static void the_curves_of_a_run_are_drawn(void **state)
{
    (void)state;
    char run[FOLDER_PATH], path[FOLDER_PATH];
    unsigned char *bytes = NULL;
    size_t size = 0;
    run_whole(run_place(run, "curves"), (const char *const[]){"epochs=2", NULL});
    assert_int_equal(curves_save(folder_path(path, run, "curves.svg"), run), BERLU_OK);
    assert_int_equal(file_in_all(&bytes, &size, path), BERLU_OK);
    assert_non_null(memmem(bytes, size, "accuracy", 8));
    assert_non_null(memmem(bytes, size, "training", 8));
    free(bytes);
    assert_int_not_equal(curves_save(path, "/no/such/run"), BERLU_OK);
}

/* 1 of 10 classes at random; the tiny set has 64 images, so a linear map can learn them by
 * heart. */
static void a_linear_classifier_trains_without_an_activation(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    run_whole(run_place(run, "linear"), (const char *const[]){"model=linear", "act=", "patch=", "epochs=10", NULL});
    assert_true(metric(run, 9, "train_loss") < metric(run, 0, "train_loss"));
    assert_true(metric(run, 9, "train_top1") > 30);
}

int main(void)
{
    omp_set_num_threads(1); /* products of this size do not gain, and tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accumulating_equals_one_large_batch),
        cmocka_unit_test(learning_lowers_the_loss),
        cmocka_unit_test(sgd_learns_too),
        cmocka_unit_test(frozen_activation_parameters_stay_where_they_are),
        cmocka_unit_test(constraints_hold_and_the_lipschitz_constant_follows),
        cmocka_unit_test(the_figures_of_a_site_add_up),
        cmocka_unit_test(one_batch_can_be_learned_by_heart),
        cmocka_unit_test(a_student_learns_from_a_teachers_run),
        cmocka_unit_test(eval_gives_the_figures_of_the_last_row),
        cmocka_unit_test(weights_say_the_sizes_of_their_network),
        cmocka_unit_test(a_teachers_file_says_its_activation_or_is_asked_for_it),
        cmocka_unit_test(settings_of_learned_parameters_need_some),
        cmocka_unit_test(attention_recomputed_plans_less_memory_for_the_same_losses),
        cmocka_unit_test(a_linear_classifier_trains_without_an_activation),
        cmocka_unit_test(the_curves_of_a_run_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
