/* test_stale_names.c - a run that another client of NFS just made is found at once.
 * SPDX-License-Identifier: MIT
 *
 * A client keeps for up to a minute that a name is missing, and forgets it when the folder of that
 * name is opened. The wrapped calls behave so: a hidden name is missing from every path through it
 * until its folder was opened. tests/train/shared.sh asks the same of two real mounts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs.h"

enum { HIDDEN = 3 };
static char hidden[HIDDEN][PATH_MAX]; /* "": none */

static void hide(int at, const char *path)
{
    snprintf(hidden[at], sizeof hidden[at], "%s", path);
}

/* Whether a path leads through a hidden name. */
static int is_hidden(const char *path)
{
    for (int i = 0; i < HIDDEN; i++) {
        size_t length = strlen(hidden[i]);
        if (length && strncmp(path, hidden[i], length) == 0 && (path[length] == '/' || !path[length]))
            return 1;
    }
    return 0;
}

/* The folder `path` is opened: what it was said to miss is asked for again. */
static void forget_in(const char *path)
{
    for (int i = 0; i < HIDDEN; i++) {
        const char *slash = strrchr(hidden[i], '/');
        size_t length = slash ? (size_t)(slash - hidden[i]) : 1;
        if (*hidden[i] && strlen(path) == length && strncmp(path, slash ? hidden[i] : ".", length) == 0)
            *hidden[i] = 0;
    }
}

int __real_fstatat(int at, const char *path, struct stat *info, int flags);
int __wrap_fstatat(int at, const char *path, struct stat *info, int flags);
int __wrap_fstatat(int at, const char *path, struct stat *info, int flags)
{
    if (is_hidden(path)) {
        errno = ENOENT;
        return -1;
    }
    return __real_fstatat(at, path, info, flags);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (is_hidden(path)) {
        errno = ENOENT;
        return -1;
    }
    if (flags & O_DIRECTORY)
        forget_in(path);
    return __real_open(path, flags, mode);
}

static void a_run_is_found_although_its_names_were_missing_before(void **state)
{
    (void)state;
    char base[FOLDER_PATH], run[FOLDER_PATH], json[FOLDER_PATH];
    folder_fresh(base, "stale-names");
    folder_path(run, base, "made/run");
    folder_path(json, base, "made/run/run.json");
    run_whole(run, (const char *const[]){"epochs=1", NULL});
    hide(0, json); /* its own folder was known */
    assert_true(run_exists(run));
    hide(0, folder_path(json, base, "made"));
    hide(1, run);
    hide(2, folder_path(json, base, "made/run/run.json")); /* nothing of the path was */
    assert_false(file_exists(json));
    assert_true(run_exists(run));
    hide(0, json);
    assert_int_equal(run_check(run, 1), BERLU_OK);
    hide(0, json);
    assert_int_equal(run_check(run, 0), BERLU_ERR_ARG); /* and not taken for a foreign folder */
    assert_non_null(strstr(berlu_last_error(), "holds a run already"));
}

static void a_relative_path_is_asked_for_in_the_folder_one_stands_in(void **state)
{
    (void)state;
    char base[FOLDER_PATH], before[PATH_MAX];
    folder_fresh(base, "stale-relative");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(base), 0);
    assert_int_equal(folder_make("run"), BERLU_OK);
    assert_int_equal(file_write_atomic("run/run.json", "{}", 2), BERLU_OK);
    hide(0, "run");
    assert_false(file_exists("run/run.json"));
    assert_true(run_exists("run"));
    assert_int_equal(unlink("run/run.json"), 0);
    assert_false(run_exists("run")); /* what is not there is not found */
    assert_int_equal(chdir(before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_found_although_its_names_were_missing_before),
        cmocka_unit_test(a_relative_path_is_asked_for_in_the_folder_one_stands_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
