/* plot_target.c - see plot_target.h. SPDX-License-Identifier: MIT */
#include "plot_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "options_internal.h"

static const char *const plot_options[] = {"svg", "confusion"};

/* x.png would be a file that no viewer of PNG opens. */
static berlu_status check_name(const char *option, const char *path)
{
    static const char *const others[] = {".png", ".pdf", ".jpg", ".jpeg", ".eps"};
    size_t length = strlen(path);
    for (size_t i = 0; i < COUNT(others); i++)
        if (length > strlen(others[i]) && strcmp(path + length - strlen(others[i]), others[i]) == 0)
            return berlu_fail(BERLU_ERR_ARG,
                              "option --%s: plots are SVG; write %.*s.svg (rsvg-convert or a browser converts it)",
                              option, (int)(length - strlen(others[i])), path);
    return BERLU_OK;
}

berlu_status target_writable(const char *option, const char *folder)
{
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
        return BERLU_OK;
    return berlu_fail(BERLU_ERR_IO, "option --%s: %s cannot be written: %s", option, folder, strerror(errno));
}

berlu_status target_check(const char *option, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (folder_exists(path))
        return berlu_fail(BERLU_ERR_IO, "option --%s: %s is a folder; name a file in it", option, path);
    if (!folder_exists(folder))
        return berlu_fail(BERLU_ERR_IO, "option --%s: %s: there is no folder %s", option, path, folder);
    struct stat there; /* a file is replaced, which its folder must allow; a device is written to */
    int device = stat(path, &there) == 0 && !S_ISREG(there.st_mode);
    return device ? BERLU_OK : target_writable(option, folder);
}

/* Keeps the old standard output under another number and sends what is printed to standard
 * error. */
static berlu_status swap_output(options *o, const option_row *row)
{
    enum { PATH = 32 };
    char *path = ARENA_ARRAY(&o->memory, char, PATH);
    if (!path)
        return BERLU_ERR_MEMORY;
    int kept = dup(STDOUT_FILENO);
    if (kept < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return berlu_fail(BERLU_ERR_IO, "standard output: %s", strerror(errno));
    snprintf(path, PATH, "/dev/fd/%d", kept);
    options_value(o, row)->string = path;
    return BERLU_OK;
}

/* Two plots of one name: the second would replace the first. Links and other spellings of a path
 * are not looked for. */
static berlu_status check_alone(const char *option, const char *path, const char *before)
{
    return before && strcmp(path, before) == 0 && strcmp(path, "-") != 0
               ? berlu_fail(BERLU_ERR_ARG, "option --%s: %s takes one plot; name another file", option, path)
               : BERLU_OK;
}

berlu_status plot_target_take(options *o)
{
    const option_row *target = NULL;
    const char *before = NULL;
    for (size_t i = 0; i < COUNT(plot_options); i++) {
        const option_row *row = options_row(o, plot_options[i], strlen(plot_options[i]));
        const char *path = row && options_given(o, plot_options[i]) ? options_string(o, plot_options[i]) : NULL;
        if (!path)
            continue;
        TRY(check_name(plot_options[i], path));
        TRY(check_alone(plot_options[i], path, before));
        before = path;
        if (strcmp(path, "-") != 0) {
            TRY(target_check(plot_options[i], path));
            continue;
        }
        if (target || options_json(o))
            return berlu_fail(BERLU_ERR_ARG, "option --%s: standard output takes one thing, but %s goes there too",
                              plot_options[i], target ? "another plot" : "JSON");
        target = row;
    }
    return target ? swap_output(o, target) : BERLU_OK;
}
