/* fuzz_resume.c - a run folder with any of its files damaged: it is refused, or it resumes to the
 * same bytes. SPDX-License-Identifier: MIT
 *
 * A tiny run is trained once and cut after two of four updates. Every input is a list of
 * damages: a byte that names a file (or a link), a byte of kind, two bytes of place, one of
 * length, and that many bytes to put there, or to cut the file at, or to insert. Then the whole
 * way of `train --resume` is gone: run.json, lock, pointers, checksums, state, metrics. Whatever
 * is accepted must end with the weights, the state and the metrics of the run that nobody
 * touched: damage is noticed or harmless. */
#include <omp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "scratch.h"
#include "train/run_folder.h"
#include "train/trainer.h"

typedef struct kept {
    const char *name;
    char *bytes;
    size_t size;
} kept;

/* What is damaged; the links come last and hold a path. */
static kept files[] = {
    {.name = "run.json"},
    {.name = "lock"},
    {.name = "metrics.csv"},
    {.name = "timing.csv"},
    {.name = "checkpoints/step-00000002/state.safetensors"},
    {.name = "checkpoints/step-00000002/model.safetensors"},
    {.name = "checkpoints/step-00000002/checksums"},
    {.name = "checkpoints/step-00000001/state.safetensors"},
    {.name = "checkpoints/step-00000001/model.safetensors"},
    {.name = "checkpoints/step-00000001/checksums"},
    {.name = "checkpoints/last"},
    {.name = "checkpoints/best"},
};
enum { FILES = sizeof files / sizeof *files, LINKS = 2 };

/* What the whole run ends with. */
static kept wanted[] = {{.name = "metrics.csv"},
                        {.name = "correct.bin"},
                        {.name = "checkpoints/step-00000004/model.safetensors"},
                        {.name = "checkpoints/step-00000004/state.safetensors"}};

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, berlu_last_error());
    abort();
}

static const char *path_of(char out[256], const char *run, const char *name)
{
    snprintf(out, 256, "%s/%s", run, name);
    return out;
}

static void settings_make(train_settings *s, const char *run, int steps)
{
    static const char *const list[][2] = {
        {"model", "linear"},        {"image_size", "4"}, {"data", "synthetic"},    {"batch", "5"},
        {"synthetic_images", "10"}, {"eval_batch", "5"}, {"epochs", "2"},          {"lr", "0.01"},
        {"workers", "1"},           {"threads", "1"},    {"checkpoint_every", "1"}};
    char digits[16];
    snprintf(digits, sizeof digits, "%d", steps);
    recipe_init(s);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (recipe_set(s, list[i][0], list[i][1]) != BERLU_OK)
            fail("the settings");
    if (recipe_set(s, "run", run) != BERLU_OK || recipe_set(s, "max_steps", digits) != BERLU_OK ||
        recipe_resolve(s) != BERLU_OK)
        fail("the settings");
}

static berlu_status train(const train_settings *s, int resume)
{
    trainer *t = NULL;
    berlu_status status = trainer_open(&t, s, NULL);
    if (status == BERLU_OK)
        status = trainer_start(t, resume);
    if (status == BERLU_OK)
        status = trainer_run(t, NULL);
    trainer_close(t);
    return status;
}

static void keep(kept *list, size_t count, const char *run)
{
    for (size_t i = 0; i < count; i++) {
        char path[256], target[64] = "";
        path_of(path, run, list[i].name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0) {
            list[i].bytes = strdup(target);
            list[i].size = (size_t)length;
        } else if (file_read_all(&list[i].bytes, &list[i].size, path, 1 << 24) != BERLU_OK) {
            abort();
        }
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    omp_set_num_threads(1);
    for (int steps = 2; steps >= 0; steps -= 2) { /* 0: to the end */
        char run[128];
        train_settings s;
        scratch_path(run, steps ? "cut" : "whole");
        settings_make(&s, run, steps);
        if (train(&s, 0) != BERLU_OK)
            fail("the run");
        if (steps)
            keep(files, FILES, run);
        else
            keep(wanted, sizeof wanted / sizeof *wanted, run);
        recipe_free(&s);
    }
    return 0;
}

/* The folder as it was, but for the damages. */
static void folder_write(const char *run, const kept *list)
{
    static const char *const folders[] = {"", "/checkpoints", "/checkpoints/step-00000001",
                                          "/checkpoints/step-00000002"};
    char path[256];
    if (folder_remove(run) != BERLU_OK)
        abort();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (snprintf(path, sizeof path, "%s%s", run, folders[i]) < 0 || mkdir(path, 0777) != 0)
            abort();
    for (size_t i = 0; i < FILES - LINKS; i++)
        scratch_write(path_of(path, run, list[i].name), list[i].bytes, list[i].size);
    for (size_t i = FILES - LINKS; i < FILES; i++) {
        char target[256];
        snprintf(target, sizeof target, "%.*s", (int)(list[i].size < 255 ? list[i].size : 255), list[i].bytes);
        if (*target && symlink(target, path_of(path, run, list[i].name)) != 0)
            abort();
    }
}

/* One damage; returns how many bytes of the input it took, 0 when there is no whole one. */
static size_t damage(kept *list, const uint8_t *bytes, size_t size)
{
    if (size < 5 || size - 5 < bytes[4])
        return 0;
    kept *f = &list[bytes[0] % FILES];
    size_t at = (size_t)bytes[2] << 8 | bytes[3], count = bytes[4];
    at = f->size ? at % (f->size + 1) : 0;
    if (bytes[1] % 3 == 0) { /* put over */
        count = count < f->size - at ? count : f->size - at;
        memcpy(f->bytes + at, bytes + 5, count);
    } else if (bytes[1] % 3 == 1) { /* cut */
        f->size = at;
    } else { /* insert */
        char *longer = malloc(f->size + count + 1);
        if (!longer)
            abort();
        memcpy(longer, f->bytes, at);
        memcpy(longer + at, bytes + 5, count);
        memcpy(longer + at + count, f->bytes + at, f->size - at);
        free(f->bytes);
        f->bytes = longer;
        f->size += count;
    }
    return 5 + (size_t)bytes[4];
}

static void compare(const char *run)
{
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char path[256], *bytes;
        size_t size;
        if (file_read_all(&bytes, &size, path_of(path, run, wanted[i].name), 1 << 24) != BERLU_OK)
            abort();
        if (size != wanted[i].size || memcmp(bytes, wanted[i].bytes, size) != 0) {
            fprintf(stderr, "%s differs after a damage that was accepted\n", wanted[i].name);
            abort();
        }
        free(bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char run[128];
    kept damaged[FILES];
    scratch_path(run, "damaged");
    for (size_t i = 0; i < FILES; i++) {
        damaged[i] = files[i];
        damaged[i].bytes = malloc(files[i].size + 1);
        if (!damaged[i].bytes)
            abort();
        memcpy(damaged[i].bytes, files[i].bytes, files[i].size);
    }
    for (size_t used; (used = damage(damaged, bytes, size)) > 0; bytes += used, size -= used)
        ;
    folder_write(run, damaged);
    train_settings asked, s;
    recipe_init(&asked);
    if (recipe_set(&asked, "run", run) != BERLU_OK || recipe_set(&asked, "max_steps", "0") != BERLU_OK ||
        recipe_set(&asked, "threads", "1") != BERLU_OK || recipe_set(&asked, "workers", "1") != BERLU_OK)
        abort();
    if (trainer_resume_settings(&s, &asked) == BERLU_OK) {
        if (train(&s, 1) == BERLU_OK)
            compare(run);
        recipe_free(&s);
    }
    recipe_free(&asked);
    for (size_t i = 0; i < FILES; i++)
        free(damaged[i].bytes);
    return 0;
}
