/* test_data_commands.c - `berlu data` and `berlu train` over packs that are damaged or cut.
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <unistd.h>

#include "support.h"
#include "support/command.h"

static void expect(command_result *r, int code, const char *out, const char *err)
{
    if (r->code != code || !strstr(r->out, out) || !strstr(r->err, err))
        fail_msg("exit %d (wanted %d)\n%s%s", r->code, code, r->out, r->err);
    command_free(r);
}

static void pack_make(char path[FOLDER_PATH], const char *name)
{
    char folder[FOLDER_PATH];
    command_result r;
    folder_path(path, folder_fresh(folder, name), "set.pack");
    command_run(&r, "data", "pack", "synthetic", "--out", path, "--image-size", "16", "--threads", "2", NULL);
    expect(&r, 0, "10000 train", "");
}

static void verify_reads_all_and_names_what_is_damaged(void **state)
{
    (void)state;
    char path[FOLDER_PATH];
    command_result r;
    pack_make(path, "verify");
    command_run(&r, "data", "info", path, "--sample", "10", "--verify", NULL);
    expect(&r, 0, "verified 12000 images", "");
    command_run(&r, "data", "info", path, "--sample", "10", "--verify", "--json", NULL);
    expect(&r, 0, "\"verified\": 12000", "");
    FILE *f = fopen(path, "r+b");
    for (long number = 9101; number < 9104; number++)
        assert_true(fseek(f, 4096 + number * 768 + 100, SEEK_SET) == 0 && fwrite("damaged", 1, 7, f) == 7);
    fclose(f);
    command_run(&r, "data", "info", path, "--sample", "10", NULL);
    expect(&r, 0, "10000 train", ""); /* ten images, none of these */
    command_run(&r, "data", "info", path, "--sample", "10", "--verify", NULL);
    expect(&r, 2, "", "train image 9101 is damaged: its checksum is wrong");
    command_run(&r, "data", "info", path, "--verify", NULL);
    expect(&r, 2, "", "(3 of 12000 images are damaged)");
}

static void packs_of_0_1_0_are_said_to_be_unchecked(void **state)
{
    (void)state;
    char path[FOLDER_PATH];
    command_result r;
    const char *root = getenv("BERLU_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/golden/pack_0.1.0.pack", root ? root : ".");
    command_run(&r, "data", "info", path, "--max-bad", "1", NULL);
    expect(&r, 0, "packed by berlu 0.1.0 without checksums", "");
    command_run(&r, "data", "info", path, "--max-bad", "1", "--json", "--verify", NULL);
    expect(&r, 0, "\"unchecked\": true", "");
}

typedef struct cutting {
    char pack[FOLDER_PATH], metrics[FOLDER_PATH];
} cutting;

/* Cuts the pack once the run has begun; a run that never begins ends by itself. */
static void *cut(void *context)
{
    const cutting *c = context;
    for (int waited = 0; waited < 6000 && !file_exists(c->metrics); waited++)
        usleep(10000);
    assert_int_equal(truncate(c->pack, 8192), 0);
    return NULL;
}

static void a_pack_cut_while_training_ends_the_run_with_a_message(void **state)
{
    (void)state;
    char run[FOLDER_PATH], folder[FOLDER_PATH];
    cutting c;
    pthread_t thread;
    command_result r;
    pack_make(c.pack, "cut_pack");
    folder_path(run, folder_fresh(folder, "cut_run"), "run");
    folder_path(c.metrics, run, "metrics.csv");
    assert_int_equal(pthread_create(&thread, NULL, cut, &c), 0);
    command_run(&r, "train", "--model", "linear", "--data", c.pack, "--run", run, "--epochs", "100000", "--batch", "50",
                "--lr", "1e-4", "--image-size", "16", "--threads", "1", "--workers", "1", "--quiet", NULL);
    pthread_join(thread, NULL);
    expect(&r, 1, "", "has been cut since");
}

typedef struct emptying {
    const char *folder;
    int images;
} emptying;

static void *empty_all(void *context)
{
    const emptying *e = context;
    char path[FOLDER_PATH], name[64];
    usleep(1600000); /* a round is a second of the loader, then one of the decoder: into the latter */
    for (int i = 0; i < e->images; i++) {
        snprintf(name, sizeof name, "train/a/%d.jpg", i);
        assert_int_equal(truncate(folder_path(path, e->folder, name), 0), 0);
    }
    return NULL;
}

/* The decoder's yardstick goes over its files for seconds; from a mapping it ended in SIGBUS. */
static void images_emptied_under_a_bench_end_in_a_message(void **state)
{
    (void)state;
    enum { IMAGES = 24 };
    char folder[FOLDER_PATH], path[FOLDER_PATH], name[64], *jpeg;
    size_t size;
    const char *root = getenv("BERLU_SOURCE_DIR");
    command_result r;
    pthread_t thread;
    snprintf(path, sizeof path, "%s/tests/golden/images/exif6.jpg", root ? root : ".");
    assert_ok(file_read_all(&jpeg, &size, path, 1 << 20));
    folder_fresh(folder, "bench_emptied");
    assert_ok(folder_make(folder_path(path, folder, "train/a")));
    for (int i = 0; i < IMAGES; i++) {
        snprintf(name, sizeof name, "train/a/%d.jpg", i);
        assert_ok(file_write_atomic(folder_path(path, folder, name), jpeg, size));
    }
    free(jpeg);
    emptying e = {folder, IMAGES};
    assert_int_equal(pthread_create(&thread, NULL, empty_all, &e), 0);
    command_run(&r, "bench", "data", folder, "--image-size", "16", "--batch", "8", "--rounds", "2", "--threads", "2",
                NULL);
    pthread_join(thread, NULL);
    expect(&r, 2, "", ".jpg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_reads_all_and_names_what_is_damaged),
        cmocka_unit_test(packs_of_0_1_0_are_said_to_be_unchecked),
        cmocka_unit_test(a_pack_cut_while_training_ends_the_run_with_a_message),
        cmocka_unit_test(images_emptied_under_a_bench_end_in_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
