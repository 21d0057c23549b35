/* test_cuda_train.c - whole runs over the GPU made of malloc: where images lie, which algorithms a
 * run takes, moving. SPDX-License-Identifier: MIT
 *
 * The trainer asks backend_find() for its backend; here the linker puts a function of ours in
 * between. */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>

#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "cuda/machine.h"
#include "train/runs.h"

berlu_status __wrap_backend_find(const backend **out, const char *name);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *context);
int __real_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *context);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_join(pthread_t thread, void **result);

berlu_status __wrap_backend_find(const backend **out, const char *name)
{
    *out = strcmp(name, "cuda") == 0 ? cuda_backend() : cpu_backend();
    return BERLU_OK;
}

static int no_threads, threads; /* 1: the system has none to give; how many run */

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *context)
{
    int failed = no_threads ? EAGAIN : __real_pthread_create(out, how, run, context);
    threads += !failed;
    return failed;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    assert_true(threads > 0);
    threads--;
    return __real_pthread_join(thread, result);
}

static int machine_new(void **state)
{
    (void)state;
    machine_fresh("cuda_train");
    return 0;
}

static const char *const on_gpu[] = {"device=cuda",         "precision=f32", "image_size=32",     "patch=16",
                                     "synthetic_images=32", "epochs=2",      "augment=crop-flip", NULL};

static json_t *record_of(const char *run)
{
    char path[FOLDER_PATH];
    folder_path(path, run, "run.json");
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    return root;
}

static const char *device_of(const json_t *root)
{
    return json_string_value(json_object_get(json_object_get(root, "engine"), "device"));
}

/* Stops a run after three updates, in its first epoch. */
static void run_cut(train_settings *s, const char *run, const char *const *extra)
{
    stopper stop = {.phase = "train", .at = 3};
    tiny_settings(s, run, extra);
    assert_int_equal(run_with(s, 0, &stop, NULL), BERLU_ERR_STOPPED);
}

/* What `berlu train --resume` does with these options. */
static berlu_status run_resume(const char *run, const char *const *asked)
{
    train_settings given, s;
    recipe_init(&given);
    assert_int_equal(recipe_set(&given, "run", run), BERLU_OK);
    for (; asked && *asked; asked += 2)
        assert_int_equal(recipe_set(&given, asked[0], asked[1]), BERLU_OK);
    berlu_status status = trainer_resume_settings(&s, &given);
    recipe_free(&given);
    if (status != BERLU_OK)
        return status;
    status = run_with(&s, 1, NULL, NULL);
    recipe_free(&s);
    return status;
}

static void a_run_keeps_small_images_on_the_gpu_and_launches_one_graph_a_step(void **state)
{
    (void)state;
    char run[FOLDER_PATH], host[FOLDER_PATH];
    run_whole(run_place(run, "cuda-images"), on_gpu);
    json_t *root = record_of(run);
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "hardware"), "data_on")), "device");
    assert_null(json_object_get(json_object_get(root, "settings"), "data_on"));
    json_decref(root);
    static const char *const streamed[] = {"device=cuda",  "precision=f32",       "image_size=32",
                                           "patch=16",     "synthetic_images=32", "epochs=2",
                                           "data_on=host", "augment=crop-flip",   NULL};
    run_whole(run_place(host, "cuda-images-host"), streamed);
    runs_equal(run, host);
    assert_int_equal(stub.allocations, 0);
}

static void a_resume_takes_the_algorithms_of_the_run(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], cut[FOLDER_PATH];
    train_settings s;
    run_whole(run_place(whole, "cuda-whole"), on_gpu);
    run_cut(&s, run_place(cut, "cuda-cut"), on_gpu);
    recipe_free(&s);
    json_t *root = record_of(cut);
    assert_true(json_array_size(json_object_get(root, "algorithms")) > 5);
    assert_non_null(strstr(device_of(root), "Stub|GPU, cuBLASLt 13.1.0, algorithms "));
    machine_new(NULL); /* an empty cache, another winner */
    stub.cost[0] = 0;
    int products = stub.products;
    assert_int_equal(run_resume(cut, NULL), BERLU_OK);
    assert_true(stub.products > products);
    runs_equal(whole, cut);
    json_t *again = record_of(cut);
    assert_true(json_equal(root, again));
    json_decref(root);
    json_decref(again);
}

/* --config RUN/run.json: the record comes along, and what the user says wins. */
static void a_repeated_run_takes_the_algorithms_of_the_first(void **state)
{
    (void)state;
    char first[FOLDER_PATH], second[FOLDER_PATH], path[FOLDER_PATH];
    train_settings s, recorded;
    run_whole(run_place(first, "cuda-first"), on_gpu);
    json_t *root = record_of(first);
    for (int own = 0; own < 2; own++) {
        machine_new(NULL);
        stub.cost[0] = 0;
        recipe_init(&s);
        folder_path(path, first, "run.json");
        assert_int_equal(run_json_read(&recorded, NULL, path), BERLU_OK);
        assert_int_equal(recipe_set(&s, "run", run_place(second, "cuda-second")), BERLU_OK);
        assert_int_equal(recipe_set(&s, "workers", "1"), BERLU_OK);
        if (own)
            assert_int_equal(recipe_set(&s, "algorithms", "new"), BERLU_OK);
        assert_int_equal(recipe_take(&s, &recorded), BERLU_OK);
        assert_int_equal(recipe_resolve(&s), BERLU_OK);
        assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_OK);
        recipe_free(&recorded);
        recipe_free(&s);
        json_t *again = record_of(second);
        assert_int_equal(json_equal(json_object_get(root, "algorithms"), json_object_get(again, "algorithms")), !own);
        assert_int_equal(strcmp(device_of(root), device_of(again)) == 0, !own);
        json_decref(again);
    }
    json_decref(root);
}

static void log_says(const char *run, const char *words)
{
    char path[FOLDER_PATH], *lines = NULL;
    size_t bytes = 0;
    assert_int_equal(file_read_all(&lines, &bytes, folder_path(path, run, "log.txt"), 1 << 20), BERLU_OK);
    if (!strstr(lines, words))
        fail_msg("'%s' was expected in: %s", words, lines);
    free(lines);
}

static void a_record_that_the_library_refuses_is_refused_with_both_versions(void **state)
{
    (void)state;
    char run[FOLDER_PATH];
    train_settings s;
    run_cut(&s, run_place(run, "cuda-version"), on_gpu);
    recipe_free(&s);
    stub.version = "14.0.2";
    stub.refused = 2;
    assert_int_equal(run_resume(run, NULL), BERLU_ERR_UNSUPPORTED);
    assert_non_null(strstr(berlu_last_error(), "13.1.0"));
    assert_non_null(strstr(berlu_last_error(), "14.0.2"));
    assert_int_equal(run_resume(run, (const char *const[]){"algorithms", "new", NULL}), BERLU_OK);
    log_says(run, "its numbers may differ from here on");
    assert_int_equal(run_resume(run, NULL), BERLU_ERR_UNSUPPORTED); /* the record is that of the beginning */
    char file[FOLDER_PATH];
    run_place(file, "cuda-algorithms.txt");
    stub.refused = 0; /* the new version takes what it offers itself */
    int timed[2];
    for (int i = 0; i < 2; i++) {
        int products = stub.products;
        assert_int_equal(run_resume(run, (const char *const[]){"algorithms", file, NULL}), BERLU_OK);
        timed[i] = stub.products - products;
    }
    assert_true(timed[0] > 2 * timed[1]); /* the file that the first of them made holds for the next */
}

/* By its checkpoint, either way; the log says that numbers agree within rounding from there on. */
static void a_run_moves_between_cpu_and_gpu(void **state)
{
    (void)state;
    static const char *const on_cpu[] = {
        "image_size=32", "patch=16", "synthetic_images=32", "epochs=2", "augment=crop-flip", "eval_batch=8", NULL};
    char whole[FOLDER_PATH], moved[FOLDER_PATH];
    run_whole(run_place(whole, "cuda-stays"), on_cpu);
    for (int to_gpu = 0; to_gpu < 2; to_gpu++) {
        train_settings s;
        run_cut(&s, run_place(moved, "cuda-moves"), to_gpu ? on_cpu : on_gpu);
        recipe_free(&s);
        static const char *const gpu[] = {"device", "cuda", "precision", "f32", NULL}, *const cpu[] = {"device", "cpu",
                                                                                                       NULL};
        assert_int_equal(run_resume(moved, to_gpu ? gpu : cpu), BERLU_OK);
        double a = metric(whole, 1, "train_loss"), b = metric(moved, 1, "train_loss");
        assert_true(a - b < 1e-4 && b - a < 1e-4);
        log_says(moved, "the run was begun with something else: ");
        log_says(moved, to_gpu ? "device (cpu then, Stub|GPU" : "cpu now");
    }
}

/* ---- what may go wrong in the middle of a run ------------------------------------------------ */

/* Four steps: one launched, one captured, two replayed. */
static const char *const shortly[] = {"device=cuda",         "precision=f32", "image_size=16", "patch=8",
                                      "synthetic_images=16", "epochs=2",      "batch=8",       NULL};

/* The run was ended by something: it goes on from its newest checkpoint, or begins where there is
 * nothing yet, and ends as if nothing had happened. */
static void run_goes_on(const char *run, const train_settings *s, const char *whole)
{
    assert_int_equal(stub.allocations, 0);
    stub.lost = stub.others_at = stub.launch_fails = 0;
    stub.memory = (size_t)1 << 32;
    if (folder_exists(run))
        assert_int_equal(run_resume(run, NULL), BERLU_OK);
    else
        assert_int_equal(run_with(s, 0, NULL, NULL), BERLU_OK);
    runs_equal(whole, run);
}

static void a_gpu_that_is_lost_ends_the_run_and_loses_nothing(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], run[FOLDER_PATH];
    stub.calls = 0;
    run_whole(run_place(whole, "cuda-not-lost"), shortly);
    int calls = stub.calls;
    assert_true(calls > 300);
    for (int at = 1; at < calls; at += at < 24 ? 1 : (calls - 1) / 9) { /* every allocation, then here and there */
        train_settings s;
        machine_new(NULL);
        tiny_settings(&s, run_place(run, "cuda-lost"), shortly);
        stub.lost = at;
        berlu_status status = run_with(&s, 0, NULL, NULL);
        if (status != BERLU_ERR_DEVICE || strncmp(berlu_last_error(), "CUDA: ", 6) != 0 ||
            !strstr(berlu_last_error(), "lost") || strstr(berlu_last_error(), "batch"))
            fail_msg("a GPU lost at call %d: %s", at, berlu_last_error());
        run_goes_on(run, &s, whole);
        recipe_free(&s);
    }
}

static void a_kernel_that_fails_ends_the_run_and_loses_nothing(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], run[FOLDER_PATH];
    run_whole(run_place(whole, "cuda-launches"), shortly);
    int launches = stub.launches;
    assert_true(launches > 50);
    for (int part = 0; part < 4; part++) {
        train_settings s;
        machine_new(NULL);
        tiny_settings(&s, run_place(run, "cuda-fails"), shortly);
        stub.launch_fails = 1 + part * (launches - 1) / 4;
        assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_DEVICE);
        assert_non_null(strstr(berlu_last_error(), ": CUDA: ")); /* behind the name of the op */
        run_goes_on(run, &s, whole);
        recipe_free(&s);
    }
}

/* The plan was held against the free memory, and then others took it. */
static void memory_that_others_took_meanwhile_ends_the_run_and_loses_nothing(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], run[FOLDER_PATH];
    run_whole(run_place(whole, "cuda-has-memory"), shortly);
    int refused = 0;
    for (int at = 1;; at += 7) {
        train_settings s;
        machine_new(NULL);
        tiny_settings(&s, run_place(run, "cuda-no-memory"), shortly);
        stub.others_at = at;
        berlu_status status = run_with(&s, 0, NULL, NULL);
        int asked = stub.others_at == 0;
        if (status != BERLU_OK) {
            refused++;
            assert_int_equal(status, BERLU_ERR_MEMORY);
            if (!strstr(berlu_last_error(), "MiB") || strstr(berlu_last_error(), "GiB"))
                fail_msg("without memory from allocation %d on: %s", at, berlu_last_error());
            run_goes_on(run, &s, whole);
        }
        recipe_free(&s);
        if (!asked)
            break;
    }
    assert_true(refused > 2);
}

/* Both engines of a run are counted before either takes memory, and so is what they take when they
 * first run; with the batch that is named instead the run fits, though every allocation takes whole
 * pieces. */
static void a_run_that_does_not_fit_says_so_before_it_takes_memory(void **state)
{
    (void)state;
    char run[FOLDER_PATH], batch[32];
    const char *settings[] = {
        "device=cuda",           "precision=f32", "image_size=16",   "patch=8",          "batch=2048",
        "synthetic_images=2048", "max_steps=1",   "eval_batch=1000", "algorithms=first", NULL};
    for (int evaluation = 0; evaluation < 2; evaluation++) { /* most memory is the training's, the evaluation's */
        train_settings s;
        int largest = 0;
        settings[4] = evaluation ? "batch=64" : "batch=2048";
        tiny_settings(&s, run_place(run, "cuda-fits"), settings);
        /* 128 MiB of it for the products of two streams, 80 for pieces */
        stub.memory = (size_t)(evaluation ? 224 : 240) << 20;
        stub.piece = GPU_MEMORY_PIECE;
        int copies = stub.copies;
        assert_int_equal(run_with(&s, 0, NULL, NULL), BERLU_ERR_MEMORY);
        recipe_free(&s);
        assert_int_equal(stub.copies, copies); /* nothing was done with the GPU yet */
        assert_false(folder_exists(run));
        const char *words = strstr(berlu_last_error(), "the largest batch that fits is ");
        if (!words || sscanf(words, "the largest batch that fits is %d", &largest) != 1 || largest < 1 ||
            !strstr(berlu_last_error(), "to evaluate 1000 images at a time") ||
            !strstr(berlu_last_error(), "--eval-batch"))
            fail_msg("%s", berlu_last_error());
        snprintf(batch, sizeof batch, "batch=%d", largest);
        settings[4] = batch;
        stopper stop = {.phase = "test"}; /* after a step and a batch of the evaluation, all memory is taken */
        tiny_settings(&s, run, settings);
        assert_int_equal(run_with(&s, 0, &stop, NULL), BERLU_ERR_STOPPED);
        recipe_free(&s);
        machine_new(NULL);
    }
}

/* Where the system has no thread to write a checkpoint beside the training, the main one writes it;
 * and a run that ends right after that waits for nobody. */
static void checkpoints_need_no_thread(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], run[FOLDER_PATH];
    run_whole(run_place(whole, "cuda-threads"), shortly);
    for (int at = 0, calls = 0, step = 0; at <= calls - step; at += step) { /* 0: nothing is lost */
        train_settings s;
        machine_new(NULL);
        trainer *t = NULL;
        tiny_settings(&s, run_place(run, "cuda-no-threads"), shortly);
        assert_int_equal(trainer_open(&t, &s, NULL), BERLU_OK); /* with the loaders' threads */
        int before = stub.calls;
        stub.lost = at;
        no_threads = 1;
        berlu_status status = trainer_start(t, 0);
        if (status == BERLU_OK)
            status = trainer_run(t, NULL);
        trainer_close(t);
        no_threads = 0;
        calls = at ? calls : stub.calls - before;
        step = calls / 16;
        assert_int_equal(status, at ? BERLU_ERR_DEVICE : BERLU_OK);
        if (at)
            run_goes_on(run, &s, whole);
        else
            runs_equal(whole, run);
        recipe_free(&s);
    }
}

/* Every checkpoint tries again to remove what an earlier one could not, and one line of the log is
 * enough. Folders nested so deep are refused, by root too. */
static void an_old_folder_that_stays_is_reported_once(void **state)
{
    (void)state;
    char run[FOLDER_PATH], place[FOLDER_PATH], *log = NULL;
    train_settings s;
    trainer *t = NULL;
    tiny_settings(&s, run_place(run, "cuda-old-folder"), on_gpu);
    s.checkpoint_every = 1;
    assert_int_equal(trainer_open(&t, &s, NULL), BERLU_OK);
    assert_int_equal(trainer_start(t, 0), BERLU_OK);
    folder_path(place, run, "checkpoints/.old-step-00000009");
    for (int depth = 0; depth < 70; depth++)
        strcat(place, "/d");
    assert_int_equal(folder_make(place), BERLU_OK);
    assert_int_equal(trainer_run(t, NULL), BERLU_OK);
    trainer_close(t);
    recipe_free(&s);
    place[strlen(place) - 2 * 20] = 0; /* what the next run of this test can remove */
    assert_int_equal(folder_remove(place), BERLU_OK);
    assert_int_equal(file_read_all(&log, NULL, folder_path(place, run, "log.txt"), 1 << 20), BERLU_OK);
    const char *first = strstr(log, "will try again");
    assert_non_null(first);
    assert_null(strstr(first + 1, "will try again"));
    free(log);
}

/* A step is launched, then captured, then replayed; a stop may come in any of them. */
static void a_stop_while_steps_are_captured_loses_nothing(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], run[FOLDER_PATH];
    run_whole(run_place(whole, "cuda-not-stopped"), shortly);
    for (uint64_t at = 1; at <= 3; at++) {
        stopper stop = {.phase = "train", .at = at};
        train_settings s;
        tiny_settings(&s, run_place(run, "cuda-stopped"), shortly);
        assert_int_equal(run_with(&s, 0, &stop, NULL), BERLU_ERR_STOPPED);
        run_goes_on(run, &s, whole);
        recipe_free(&s);
    }
}

/* One image, and numbers that no tile divides: as on the CPU. */
static void any_batch_trains_as_on_the_cpu(void **state)
{
    (void)state;
    static const char *const batches[][2] = {{"batch=1", "synthetic_images=10"}, {"batch=7", "synthetic_images=14"}};
    for (size_t i = 0; i < COUNT(batches); i++) {
        char run[2][FOLDER_PATH];
        for (int gpu = 0; gpu < 2; gpu++) {
            const char *settings[] = {batches[i][0],
                                      batches[i][1],
                                      "image_size=32",
                                      "patch=16",
                                      "epochs=1",
                                      "eval_batch=3",
                                      gpu ? "device=cuda" : NULL,
                                      "precision=f32",
                                      NULL};
            run_whole(run_place(run[gpu], gpu ? "cuda-batch" : "cpu-batch"), settings);
        }
        double a = metric(run[0], 0, "train_loss"), b = metric(run[1], 0, "train_loss");
        assert_true(a - b < 1e-4 && b - a < 1e-4);
        assert_true(metric(run[0], 0, "test_top1") == metric(run[1], 0, "test_top1"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_run_keeps_small_images_on_the_gpu_and_launches_one_graph_a_step, machine_new),
        cmocka_unit_test_setup(a_resume_takes_the_algorithms_of_the_run, machine_new),
        cmocka_unit_test_setup(a_repeated_run_takes_the_algorithms_of_the_first, machine_new),
        cmocka_unit_test_setup(a_record_that_the_library_refuses_is_refused_with_both_versions, machine_new),
        cmocka_unit_test_setup(a_run_moves_between_cpu_and_gpu, machine_new),
        cmocka_unit_test_setup(a_gpu_that_is_lost_ends_the_run_and_loses_nothing, machine_new),
        cmocka_unit_test_setup(a_kernel_that_fails_ends_the_run_and_loses_nothing, machine_new),
        cmocka_unit_test_setup(memory_that_others_took_meanwhile_ends_the_run_and_loses_nothing, machine_new),
        cmocka_unit_test_setup(a_run_that_does_not_fit_says_so_before_it_takes_memory, machine_new),
        cmocka_unit_test_setup(checkpoints_need_no_thread, machine_new),
        cmocka_unit_test_setup(an_old_folder_that_stays_is_reported_once, machine_new),
        cmocka_unit_test_setup(a_stop_while_steps_are_captured_loses_nothing, machine_new),
        cmocka_unit_test_setup(any_batch_trains_as_on_the_cpu, machine_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
