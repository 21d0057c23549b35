/* hints.c - options under the names that other programs give them. SPDX-License-Identifier: MIT
 *
 * They are not accepted, because an option has one name on the command line, in settings files and
 * in run.json; the error message suggests that name. */
#include <string.h>

#include "options_internal.h"

static const char *const pairs[][2] = {
    {"accum", "accumulate"},
    {"act-layer", "act"},
    {"activation", "act"},
    {"batch-size", "batch"},
    {"bs", "batch"},
    {"checkpoint", "weights"},
    {"clip-grad", "clip"},
    {"data-dir", "data"},
    {"data-path", "data"},
    {"dataset", "data"},
    {"gpu", "device"},
    {"grad-clip", "clip"},
    {"img-size", "image-size"},
    {"input-size", "image-size"},
    {"label-smoothing", "smoothing"},
    {"learning-rate", "lr"},
    {"max-epochs", "epochs"},
    {"max-lr", "lr"},
    {"model-ema-decay", "ema"},
    {"nb-classes", "classes"},
    {"num-classes", "classes"},
    {"num-epochs", "epochs"},
    {"num-threads", "threads"},
    {"num-workers", "workers"},
    {"opt", "optimizer"},
    {"output", "out"},
    {"output-dir", "run"},
    {"patch-size", "patch"},
    {"sched", "schedule"},
    {"warmup-epochs", "warmup"},
    {"wd", "weight-decay"},
};

static int same_but_for_dashes(const char *a, const char *b)
{
    for (; *a && (*a == *b || (*a == '-' && *b == '_')); a++)
        b++;
    return !*a && !*b;
}

const char *hint_option(const char *word, const char *const *names)
{
    for (size_t i = 0; i < COUNT(pairs); i++)
        for (size_t n = 0; same_but_for_dashes(pairs[i][0], word) && names[n]; n++)
            if (strcmp(names[n], pairs[i][1]) == 0)
                return names[n];
    return NULL;
}
