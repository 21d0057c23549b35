/* hints.c - options under the names that other programs give them. SPDX-License-Identifier: MIT
 *
 * They are not accepted, because an option has one name on the command line, in settings files and
 * in run.json; the error message suggests that name. A word may stand for several options: the
 * first that the command has is meant. */
#include <string.h>

#include "options_internal.h"

static const char *const pairs[][2] = {
    {"accum", "accumulate"},
    {"act-layer", "act"},
    {"activation", "act"},
    {"amp", "precision"},
    {"arch", "model"},
    {"at", "x"},
    {"batch-size", "batch"},
    {"bf16", "precision"},
    {"bs", "batch"},
    {"checkpoint", "weights"},
    {"checkpoint", "init"},
    {"ckpt", "weights"},
    {"ckpt", "init"},
    {"clip-grad", "clip"},
    {"continue", "resume"},
    {"cuda", "device"},
    {"data-dir", "data"},
    {"data-path", "data"},
    {"dataset", "data"},
    {"dir", "out"},
    {"dir", "run"},
    {"dtype", "precision"},
    {"epsilon", "eps"},
    {"finetune", "init"},
    {"fp16", "precision"},
    {"gpu", "device"},
    {"grad-clip", "clip"},
    {"img-size", "image-size"},
    {"input-size", "image-size"},
    {"iterations", "max-steps"},
    {"label-smoothing", "smoothing"},
    {"learning-rate", "lr"},
    {"log-dir", "run"},
    {"max-epochs", "epochs"},
    {"max-lr", "lr"},
    {"model-ema-decay", "ema"},
    {"nb-classes", "classes"},
    {"net", "model"},
    {"network", "model"},
    {"num-classes", "classes"},
    {"num-epochs", "epochs"},
    {"num-threads", "threads"},
    {"num-workers", "workers"},
    {"opt", "optimizer"},
    {"out", "run"},
    {"out", "svg"},
    {"output", "out"},
    {"output", "run"},
    {"output", "svg"},
    {"output-dir", "run"},
    {"patch-size", "patch"},
    {"pdf", "svg"},
    {"plot", "svg"},
    {"png", "svg"},
    {"pretrained", "init"},
    {"save-dir", "run"},
    {"sched", "schedule"},
    {"size", "n"},
    {"size", "image-size"},
    {"steps", "max-steps"},
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
