/* test_run_cut.c - files of a run that others cut while a resume, an evaluation or another run's
 * teacher reads them. SPDX-License-Identifier: MIT
 *
 * The linker routes read() and pread() through here; before the n-th call on a file it is truncated
 * to half of its size, for n up to the last one, in growing steps. A resume then continues from the
 * previous checkpoint to the same bytes, or ends with one message that names the file. A mapping
 * would end in SIGBUS. */
#include <omp.h>
#include <unistd.h>

#include "runs.h"
#include "train/eval_run.h"

static struct {
    const char *name; /* NULL: nothing is cut */
    int calls;        /* until then */
} cutting;

static void cut_before(int fd)
{
    char link[64], path[FOLDER_PATH] = "";
    if (!cutting.name)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    const char *slash = length > 0 ? strrchr(path, '/') : NULL;
    if (!slash || strcmp(slash + 1, cutting.name) != 0 || --cutting.calls > 0)
        return;
    cutting.name = NULL;
    assert_int_equal(truncate(path, lseek(fd, 0, SEEK_END) / 2), 0);
}

ssize_t __real_pread(int fd, void *bytes, size_t count, off_t at);
ssize_t __wrap_pread(int fd, void *bytes, size_t count, off_t at);
ssize_t __wrap_pread(int fd, void *bytes, size_t count, off_t at)
{
    cut_before(fd);
    return __real_pread(fd, bytes, count, at);
}

ssize_t __real_read(int fd, void *bytes, size_t count);
ssize_t __wrap_read(int fd, void *bytes, size_t count);
ssize_t __wrap_read(int fd, void *bytes, size_t count)
{
    off_t at = cutting.name ? lseek(fd, 0, SEEK_CUR) : -1;
    cut_before(fd);
    if (at >= 0)
        lseek(fd, at, SEEK_SET);
    return __real_read(fd, bytes, count);
}

static void cut_start(const char *name, int n)
{
    cutting.name = name;
    cutting.calls = n;
}

static int cut_done(void)
{
    int done = !cutting.name;
    cutting.name = NULL;
    return done;
}

static const char *const files[] = {"run.json",          "lock",           "metrics.csv",
                                    "timing.csv",        "checksums",      "model.safetensors",
                                    "state.safetensors", "ema.safetensors"};
static const char *const short_run[] = {"epochs=2", "checkpoint_every=3", "ema=0.9", NULL};

/* The run as it was stopped at step 11 of 16, with the checkpoints of 9 and 11; whole: its end. */
static void stopped_run(char whole[FOLDER_PATH], char stopped[FOLDER_PATH])
{
    train_settings s;
    stopper stop = {.phase = "train", .at = 11};
    run_whole(run_place(whole, "cut-whole"), short_run);
    tiny_settings(&s, run_place(stopped, "cut-stopped"), short_run);
    assert_int_equal(run_with(&s, 1, &stop, NULL), BERLU_ERR_STOPPED);
    recipe_free(&s);
}

static void a_resume_over_a_file_that_shrinks_ends_with_a_message_or_the_same_bytes(void **state)
{
    (void)state;
    char whole[FOLDER_PATH], stopped[FOLDER_PATH], run[FOLDER_PATH];
    int resumed = 0, refused = 0;
    stopped_run(whole, stopped);
    for (size_t f = 0; f < COUNT(files); f++)
        for (int n = 1;; n += 1 + n / 2) {
            train_settings s;
            tree_copy(stopped, run_place(run, "cut-resume"));
            tiny_settings(&s, run, short_run);
            cut_start(files[f], n);
            berlu_status status = run_with(&s, 1, NULL, NULL);
            int done = cut_done();
            recipe_free(&s);
            if (!done) {
                assert_true(n > 1 && status == BERLU_OK); /* the file was read, and n is past its last read */
                break;
            }
            if (status == BERLU_OK)
                runs_equal(whole, run);
            else if (status != BERLU_ERR_INPUT || !strstr(berlu_last_error(), run))
                fail_msg("%s cut before read %d: %s", files[f], n, berlu_last_error());
            resumed += status == BERLU_OK;
            refused += status != BERLU_OK;
        }
    assert_true(resumed > 0 && refused > 0);
}

static void count_warning(void *context, berlu_log_level level, const char *line)
{
    *(int *)context += level == BERLU_LOG_WARNING && strstr(line, "is broken and passed over") != NULL;
}

/* A student learns for an epoch from the run. */
static berlu_status teach(const char *run, const berlu_log *log, double *loss)
{
    train_settings s;
    trainer *t = NULL;
    train_hooks hooks = {.log = log};
    char student[FOLDER_PATH], teacher[FOLDER_PATH + 16];
    snprintf(teacher, sizeof teacher, "teacher=%s", run);
    tiny_settings(&s, run_place(student, "cut-student"),
                  (const char *const[]){"model=deit_micro", "distill=hard", teacher, "epochs=1", NULL});
    berlu_status status = trainer_open(&t, &s, &hooks);
    if (status == BERLU_OK)
        status = trainer_start(t, 0);
    if (status == BERLU_OK)
        status = trainer_run(t, NULL);
    trainer_close(t);
    recipe_free(&s);
    *loss = status == BERLU_OK ? metric(student, 0, "train_loss") : 0;
    return status;
}

static berlu_status evaluate(const char *run, const berlu_log *log, double *loss)
{
    score result;
    eval_request request = {.run = run, .which = "last", .batch = 8, .log = log};
    berlu_status status = eval_run(&request, &result);
    *loss = status == BERLU_OK ? score_loss(&result) : 0;
    return status;
}

/* A damaged checkpoint is skipped with a warning; data read before the cut are unaffected; a later
 * read names the file. */
static void weights_that_shrink_under_an_evaluation_or_a_teacher_are_reported_or_whole(void **state)
{
    (void)state;
    berlu_status (*const reads[])(const char *, const berlu_log *, double *) = {evaluate, teach};
    char whole[FOLDER_PATH], run[FOLDER_PATH];
    int refused = 0;
    run_whole(run_place(whole, "cut-weights-whole"), short_run);
    for (size_t i = 0; i < COUNT(reads); i++) {
        double expected, loss;
        assert_int_equal(reads[i](whole, NULL, &expected), BERLU_OK);
        for (int n = 1, done = 1; done; n += 1 + n / 2) {
            int warnings = 0;
            tree_copy(whole, run_place(run, "cut-weights"));
            cut_start("model.safetensors", n);
            berlu_status status = reads[i](run, &(berlu_log){count_warning, &warnings}, &loss);
            done = cut_done();
            assert_true(done || n > 1);
            if (status == BERLU_OK)
                assert_true(warnings == 1 || loss == expected);
            else
                assert_true(status == BERLU_ERR_INPUT && strstr(berlu_last_error(), "model.safetensors"));
            assert_true(n > 1 || warnings == 1);
            refused += status != BERLU_OK;
        }
    }
    assert_true(refused > 0);
}

int main(void)
{
    omp_set_num_threads(1); /* products of this size do not gain, and tests run side by side */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resume_over_a_file_that_shrinks_ends_with_a_message_or_the_same_bytes),
        cmocka_unit_test(weights_that_shrink_under_an_evaluation_or_a_teacher_are_reported_or_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
