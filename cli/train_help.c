/* train_help.c - see train_help.h. SPDX-License-Identifier: MIT
 *
 * The list of settings (train/settings.h) is in the order of run.json; people look for an option by
 * what they want to change. So the groups name the options here, and whatever they do not name
 * stands in the last one. */
#include "train_help.h"

#include "train/recipe.h"

const option_group train_groups[] = {
    {"what is trained", "model data act run recipe config image-size patch stride stem classes init "
                        "init-sha256 resume"},
    {"data", "data-root train-images test-images holdout synthetic-images augment jitter hue interpolation eval-crop "
             "crop-pct repeats mixup cutmix mix-prob mix-switch mix-group normalize mean std class-order val-labels "
             "labels max-bad"},
    {"recipe", "epochs batch accumulate optimizer lr schedule warmup warmup-lr min-lr step-every step-factor "
               "weight-decay decay-all beta1 beta2 adam-eps momentum nesterov clip smoothing drop-path init-std "
               "init-std-fc1 ema teacher teacher-act distill distill-alpha distill-tau"},
    {"activation", "act-params act-lr act-decay act-freeze act-constraint keep"},
    {"device", "device precision residual algorithms data-on threads workers"},
    {"the run itself",
     "seed max-steps checkpoint-every eval-every eval-batch overfit-batch record-steps dry-run wait strict verbose "
     "quiet json-lines"},
    {0}};

void train_standard(const void *options_given_so_far, const char *name, text *out)
{
    const options *o = options_given_so_far;
    const setting *row = recipe_find(name);
    train_settings s;
    recipe_init(&s);
    if (row && options_given(o, "recipe"))
        (void)recipe_set(&s, "recipe", options_string(o, "recipe")); /* an unknown one: help shows the usual defaults */
    if (row && row->kind != SETTING_LIST && recipe_complete(&s) == BERLU_OK)
        recipe_value(&s, row, 0, out);
    recipe_free(&s);
}
