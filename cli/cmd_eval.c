/* cmd_eval.c - berlu eval: the accuracy of a run, or of weights. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "confusion.h"
#include "model_args.h"
#include "output.h"
#include "progress.h"
#include "train/curves.h"
#include "train/eval_run.h"

static const option_row rows[] = {
    {"run", OPTION_STRING, "RUN", .flags = OPTION_ARGUMENT | OPTION_REQUIRED,
     .help = "a run's folder, or the name of a model with --weights"},
    {"weights", OPTION_STRING, "FILE", .help = "a safetensors file; then RUN is a model's name"},
    {"which", OPTION_STRING, "last|best|STEP", .standard = "last", .help = "which checkpoint of the run"},
    {"ema", OPTION_FLAG, .help = "the averaged weights instead of the last ones"},
    {"data", OPTION_STRING, "DATA", .help = "other data than the run's, of the same classes in the same order"},
    {"class-order", OPTION_CHOICE, .choices = "torchvision|timm",
     .help = "how the classes of a folder are numbered (default: as for the run)"},
    {"val-labels", OPTION_STRING, "FILE", .help = "lines \"FILENAME CLASS\" for a flat val folder"},
    {"labels", OPTION_CHOICE, .choices = "fine|coarse", .help = "of CIFAR-100 (default: as for the run)"},
    {"eval-crop", OPTION_CHOICE, .choices = "auto|center|squash",
     .help = "the middle of an image, or all of it made square (default: as for the run)"},
    {"crop-pct", OPTION_STRING, "P", .help = "share of the short edge that the middle takes (default: as for the run)"},
    {"interpolation", OPTION_CHOICE, .choices = "bicubic|bilinear", .help = "of resizing (default: as for the run)"},
    {"normalize", OPTION_CHOICE, .choices = "own|imagenet",
     .help = "mean and deviation, with --weights (default: own)"},
    {"mean", OPTION_STRING, "R,G,B", .help = "mean of the pixels in [0, 1], with --weights"},
    {"std", OPTION_STRING, "R,G,B", .help = "their deviation, with --weights"},
    {"max-bad", OPTION_STRING, "N", .help = "broken files that are skipped (default: as for the run)"},
    {"split", OPTION_CHOICE, .standard = "test", .choices = "test|train", .help = "which images"},
    {"act", OPTION_STRINGS, "ACT",
     .help = "activation, with --weights (default: the one their file names, else gelu); so are the next five"},
    MODEL_SHAPE_ROWS,
    {"svg", OPTION_STRING, "FILE", .help = "also draw the curves of the run: loss and accuracy by epoch"},
    {"per-class", OPTION_FLAG, .help = "also the accuracy of every class, and what it is taken for"},
    {"confusion", OPTION_STRING, "FILE.svg", .help = "also draw which classes are taken for which"},
    {"batch", OPTION_INT, "N", .least = 1, .most = 65536, .help = "images per pass (default 100, on cuda 1024)"},
    RUN_DEVICE_ROWS,
    {0}};

/* Filled during the evaluation. */
typedef struct watch {
    progress bar;
    confusion matrix;
} watch;

static void tick(void *context, uint64_t images)
{
    progress_step(&((watch *)context)->bar, images);
}

static void each(void *context, size_t index, const float *logits, size_t classes, size_t label)
{
    (void)index;
    confusion_add(&((watch *)context)->matrix, logits, classes, label);
}

/* Refuses options without effect: a run determines its network, a file of weights has no
 * checkpoints. */
static berlu_status effect_check(const options *o)
{
    static const char *const of_weights[] = {"act",        "image-size", "patch", "stride", "stem",
                                             "act-params", "normalize",  "mean",  "std",    NULL};
    static const char *const of_run[] = {"which", "ema", "svg", NULL};
    int weights = options_given(o, "weights");
    const char *const *idle = weights ? of_run : of_weights;
    for (size_t i = 0; idle[i]; i++)
        if (options_given(o, idle[i]))
            return berlu_fail(BERLU_ERR_ARG, "option --%s: has no effect %s; leave it out", idle[i],
                              weights ? "with --weights" : "on a run, which says it itself");
    return BERLU_OK;
}

/* Options that are settings of training under the same name. */
static const char *const passed_on[] = {"class-order", "val-labels",    "labels",    "eval-crop",  "crop-pct",
                                        "max-bad",     "interpolation", "normalize", "mean",       "std",
                                        "patch",       "stride",        "stem",      "act-params", "image-size",
                                        "device",      "precision",     "residual",  "algorithms"};

static size_t settings_given(const options *o, const char *out[COUNT(passed_on)][2])
{
    size_t count = 0;
    for (size_t i = 0; i < COUNT(passed_on); i++)
        if (options_given(o, passed_on[i])) {
            out[count][0] = passed_on[i];
            out[count++][1] = options_string(o, passed_on[i]);
        }
    return count;
}

static berlu_status score_json(const options *o, const score *s, const eval_report *report, const confusion *matrix)
{
    output out;
    output_start(&out);
    output_real(&out, "top1", score_top1(s));
    output_real(&out, "top5", score_top5(s));
    output_real(&out, "loss", score_loss(s));
    output_int(&out, "images", (int64_t)s->images);
    output_string(&out, "run", options_given(o, "weights") ? NULL : options_string(o, "run"));
    output_string(&out, "weights", options_string(o, "weights"));
    if (options_given(o, "weights"))
        output_null(&out, "step");
    else
        output_int(&out, "step", (int64_t)report->step);
    output_bool(&out, "ema", options_flag(o, "ema"));
    output_string(&out, "model", report->model);
    output_string(&out, "act", report->act);
    output_string(&out, "data", report->data);
    output_string(&out, "split", options_string(o, "split"));
    if (options_flag(o, "per-class"))
        confusion_json(matrix, report->class_names, &out);
    return output_print(&out);
}

static berlu_status results_show(const options *o, const score *s, const eval_report *report, const confusion *matrix)
{
    char title[128];
    if (matrix->failed)
        return berlu_fail(BERLU_ERR_MEMORY, "the counts of answers: no memory for %zu classes", report->classes);
    snprintf(title, sizeof title, "%.40s: top1 %.2f (%llu images)", report->model, score_top1(s),
             (unsigned long long)s->images);
    if (options_given(o, "svg"))
        TRY(curves_save(options_string(o, "svg"), options_string(o, "run")));
    if (options_given(o, "confusion"))
        TRY(confusion_save(matrix, report->class_names, title, report->act, options_string(o, "confusion")));
    if (options_json(o))
        return score_json(o, s, report, matrix);
    printf("top1 %.2f  top5 %.2f  loss %.4f  (%llu images)\n", score_top1(s), score_top5(s), score_loss(s),
           (unsigned long long)s->images);
    if (options_flag(o, "per-class")) {
        putchar('\n');
        confusion_print(matrix, report->class_names);
    }
    return BERLU_OK;
}

static berlu_status eval(options *o)
{
    watch w = {0};
    eval_report report = {0};
    const char *settings[COUNT(passed_on)][2];
    TRY(effect_check(o));
    eval_request request = {
        .run = options_string(o, "run"),
        .weights = options_string(o, "weights"),
        .which = options_string(o, "which"),
        .data = options_string(o, "data"),
        .settings = (const char *const(*)[2])settings,
        .setting_count = settings_given(o, settings),
        .acts = options_strings(o, "act"),
        .act_count = options_count(o, "act"),
        .batch = (int)options_int(o, "batch"),
        .threads = options_threads(o),
        .ema = options_flag(o, "ema"),
        .train_split = options_choice(o, "split") == 1,
        .report = &report,
        .each = options_flag(o, "per-class") || options_given(o, "confusion") ? each : NULL,
        .tick = tick,
        .context = &w,
    };
    score s;
    request.log = &(berlu_log){.write = warning_show, .context = &w.bar};
    progress_start(&w.bar, "eval", "images", 0, 0);
    berlu_status status = eval_run(&request, &s);
    progress_finish(&w.bar);
    if (status == BERLU_OK)
        status = results_show(o, &s, &report, &w.matrix);
    confusion_free(&w.matrix);
    arena_free(&report.memory);
    return status;
}

const command cmd_eval = {"eval", "accuracy of a run or of weights",
                          "  berlu eval runs/first\n"
                          "  berlu eval runs/first --svg curves.svg\n"
                          "  berlu eval runs/first --which best --json\n"
                          "  berlu eval runs/first --per-class --confusion matrix.svg\n"
                          "  berlu eval vit_tiny_cifar --weights model.safetensors --act gelu --data cifar10:data\n",
                          rows, eval};
