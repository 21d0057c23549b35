/* recipe.h - all settings of a training run: one table of keys, presets and consistency checks.
 * SPDX-License-Identifier: MIT
 *
 * A setting has one line in settings.h: key, kind, default, range, help. The command's options
 * (--weight-decay for weight_decay), the keys of a YAML file, the settings of run.json and the
 * start-up table all come from those lines, so a new setting is one field and one line. A preset is
 * a list of (key, value) texts over the same rows.
 *
 * Values given by the user take precedence: recipe_set() marks a key as given; recipe_resolve()
 * fills the others from the preset, then from the defaults, derives some by rule (lr from the
 * batch) and refuses contradictions. */
#ifndef TRAIN_RECIPE_H
#define TRAIN_RECIPE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "io/yaml.h"
#include "train/schedule.h"

typedef enum recipe_optimizer { RECIPE_ADAMW, RECIPE_SGD } recipe_optimizer;
typedef enum recipe_distill { RECIPE_DISTILL_NONE, RECIPE_DISTILL_HARD, RECIPE_DISTILL_SOFT } recipe_distill;
typedef enum recipe_keep { RECIPE_KEEP_INPUT, RECIPE_KEEP_BOTH, RECIPE_KEEP_OUTPUT } recipe_keep;
typedef enum recipe_device { RECIPE_CPU, RECIPE_CUDA } recipe_device;
typedef enum recipe_precision { RECIPE_BF16, RECIPE_TF32, RECIPE_F32 } recipe_precision;
typedef enum recipe_data_on { RECIPE_DATA_AUTO, RECIPE_DATA_HOST, RECIPE_DATA_DEVICE } recipe_data_on;
typedef enum recipe_normalize { RECIPE_OWN, RECIPE_IMAGENET, RECIPE_CUSTOMARY } recipe_normalize;
typedef enum recipe_interpolation { RECIPE_BICUBIC, RECIPE_BILINEAR, RECIPE_RANDOM } recipe_interpolation;
typedef enum recipe_eval_crop { RECIPE_CROP_AUTO, RECIPE_CROP_CENTER, RECIPE_CROP_SQUASH } recipe_eval_crop;

enum { RECIPE_KEYS_MAX = 96, RECIPE_ACTS_MAX = 128 };

/* Strings live in `memory`. Counts are int64_t and reals double whatever their range, so that rows
 * of one kind share their code. */
typedef struct train_settings {
    const char *model, *data, *run, *recipe, *teacher, *teacher_act, *act_constraint, *algorithms, *init, *init_sha256;
    const char *act[RECIPE_ACTS_MAX]; /* one for all sites, or one per site */
    size_t acts;
    int64_t image_size, patch, stride, stem, classes; /* 0: the model's own, the data's own */
    double drop_path, init_std, init_std_fc1;         /* 0 for the two: the model's own */
    int64_t act_params;                               /* 0: per layer, 1: per channel */
    int64_t optimizer, nesterov, decay_all;
    double lr, weight_decay, beta1, beta2, adam_eps, momentum, clip;
    double act_lr, act_decay;
    int64_t act_freeze;
    int64_t schedule, epochs;
    double warmup, warmup_lr, min_lr, step_every, step_factor;
    int64_t batch, accumulate, eval_batch;
    const char *val_labels, *mean, *std;
    int64_t interpolation, eval_crop;
    double jitter, hue, crop_pct;
    int64_t class_order, labels; /* of folders: 0 torchvision, 1 timm; of CIFAR-100: 0 fine, 1 coarse */
    int64_t augment, repeats, mix_group, normalize, holdout, max_bad, workers, synthetic_images;
    int64_t train_images, test_images, eval_every;
    double mixup, cutmix, mix_prob, mix_switch, smoothing;
    int64_t distill;
    double distill_alpha, distill_tau, ema;
    int64_t seed, max_steps, checkpoint_every, keep, recompute_attention;
    int64_t device, precision, residual, data_on, threads, overfit_batch;
    const char *algorithms_record;        /* of the run these settings come from (run.json); NULL: none */
    unsigned char given[RECIPE_KEYS_MAX]; /* by index in the table: 0, GIVEN or RECORDED */
    arena memory;
} train_settings;

typedef enum setting_kind {
    SETTING_TEXT,
    SETTING_LIST, /* of texts; on the command line the option is repeated */
    SETTING_CHOICE,
    SETTING_COUNT,
    SETTING_REAL,
    SETTING_FLAG
} setting_kind;

/* Whether a setting changes the results of a run, and whether a resume may change it. */
typedef enum setting_role {
    SETTING_FIXED, /* changes results; part of the settings' hash */
    /* the same, added after format 1: its default is omitted from the hash, which keeps earlier
     * hashes valid */
    SETTING_LATER,
    SETTING_FREE,   /* changes no result; may differ */
    SETTING_LENGTH, /* changes the length of the run only; may differ */
    SETTING_PLACE,  /* a path whose content is hashed instead; may differ */
    SETTING_NAME    /* the origin of other settings, which are hashed themselves */
} setting_role;

/* Given by the user, and refused where it has no effect; or read from the record of another run,
 * and ignored there. */
enum { GIVEN = 1, RECORDED = 2 };

typedef struct setting {
    const char *key, *option; /* weight_decay, weight-decay */
    setting_kind kind;
    size_t offset;     /* in train_settings */
    const char *value; /* default, as text; "auto" for a real that recipe_resolve() derives (NaN until then) */
    double least, most;
    const char *const *choices;
    const char *unit; /* placeholder of the value in --help */
    const char *help;
    setting_role role;
} setting;

/* Device and dtypes of the network: part of a run's identity, but a checkpoint may be resumed with
 * others; results then agree within rounding from there on, with a warning. */
int setting_moves(const setting *row);

static inline int setting_may_differ(const setting *row) /* on a resume */
{
    return row->role == SETTING_FREE || row->role == SETTING_LENGTH || row->role == SETTING_PLACE || setting_moves(row);
}

extern const setting train_settings_table[];
extern const size_t train_settings_count;
extern const char *const recipe_names[];                             /* paper, deit, convnext, plain, NULL */
extern const char *const precision_names[], *const residual_names[]; /* dtypes, as devices know them; NULL-terminated */

void recipe_init(train_settings *s);
void recipe_free(train_settings *s);

/* The row of a key; '-' counts as '_'. NULL if there is none. */
const setting *recipe_find(const char *key);

/* Sets one key from a text. BERLU_ERR_ARG names key, value and what is allowed. A list appends. */
berlu_status recipe_set(train_settings *s, const char *key, const char *value);
int recipe_given(const train_settings *s, const char *key);   /* by the user */
int recipe_present(const train_settings *s, const char *key); /* by the user, or by the record of a run */

/* The same for a row, without marking it as given: for presets and defaults. */
berlu_status recipe_fill(train_settings *s, const setting *row, const char *value);

/* Sets all keys of a YAML map (the root, or a part of a study), except keys already given on the
 * command line. Failures name file and line. */
berlu_status recipe_set_yaml(train_settings *s, const yaml_tree *tree, const yaml_item *map);

/* Applies presets, defaults and derived values and refuses conflicts; recipe_complete() omits the
 * last. */
berlu_status recipe_resolve(train_settings *s);
berlu_status recipe_complete(train_settings *s);

/* Refuses given settings that have no effect beside the others; recipe_resolve() includes this. */
berlu_status recipe_idle(const train_settings *s);

/* Marks rows without effect beside the others, given or not. */
void recipe_idle_rows(const train_settings *s, unsigned char idle[RECIPE_KEYS_MAX]);

/* Copies settings of `from` that were not given, marked as recorded, except those that change no
 * result or have no effect. This is how a run is repeated from its run.json. */
berlu_status recipe_take(train_settings *s, const train_settings *from);

/* Copies the GEMM algorithms of another run; NULL: none. */
berlu_status recipe_take_algorithms(train_settings *s, const char *record);

/* One value in the syntax of recipe_set(). Lists: one text per index; false past the end. */
int recipe_value(const train_settings *s, const setting *row, size_t index, text *out);

/* Settings as a JSON object (for run.json), numbers with enough digits to read back the same bits,
 * without the rows marked in `leave_out` (may be NULL); and back, with nothing marked as given.
 * Unknown keys are refused. A text that is not UTF-8 sets out->failed. */
void recipe_json(const train_settings *s, const unsigned char *leave_out, text *out);
void recipe_json_string(text *out, const char *value);
berlu_status recipe_from_json(train_settings *s, const json_t *object, const char *path);

int recipe_is_zero(const train_settings *s, const setting *row); /* a count or a real that is 0 */

/* The values of a row as one text, those of a list separated by blanks. */
void recipe_values(const train_settings *s, const setting *row, text *out);

/* All settings but those marked in `leave_out` (may be NULL), two columns of key and value in the
 * order of the table. Values the user gave are marked. */
void recipe_print(const train_settings *s, const unsigned char *leave_out, text *out);

/* Appends to `out` the keys that were given in `asked` and differ from `saved`; returns their
 * number. "The model's own" or "the data's own" equals any value, and activations are compared by
 * meaning. */
size_t recipe_differences(const train_settings *asked, const train_settings *saved, text *out);

#endif
