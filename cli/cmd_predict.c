/* cmd_predict.c - berlu predict: classifies image files with a trained network.
 * SPDX-License-Identifier: MIT
 *
 * Images are prepared as in an evaluation (train/eval_run.h): resized, cropped and normalised as
 * the run's test images. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "model_args.h"
#include "output.h"
#include "progress.h"
#include "train/eval_run.h"

enum { SHOWN = 5 };

typedef struct answer {
    size_t count, classes[SHOWN];
    double shares[SHOWN];
} answer;

/* Finds the likeliest classes by softmax in double; ties go to the smaller index. */
static void take(void *context, size_t index, const float *logits, size_t classes, size_t label)
{
    answer *a = (answer *)context + index;
    double most = -INFINITY, sum = 0;
    (void)label;
    for (size_t i = 0; i < classes; i++)
        most = fmax(most, (double)logits[i]);
    for (size_t i = 0; i < classes; i++) {
        double share = exp((double)logits[i] - most);
        size_t place = a->count < SHOWN ? a->count : SHOWN;
        sum += share;
        while (place > 0 && a->shares[place - 1] < share) {
            if (place < SHOWN) {
                a->shares[place] = a->shares[place - 1];
                a->classes[place] = a->classes[place - 1];
            }
            place--;
        }
        if (place < SHOWN) {
            a->shares[place] = share;
            a->classes[place] = i;
            a->count += a->count < SHOWN;
        }
    }
    for (size_t i = 0; i < a->count; i++)
        a->shares[i] /= sum;
}

static berlu_status answers_json(const eval_request *r, const answer *answers)
{
    output out;
    output_start(&out);
    output_string(&out, "run", r->run);
    output_int(&out, "step", (int64_t)r->report->step);
    output_array(&out, "rows");
    for (size_t i = 0; i < r->file_count; i++) {
        const answer *a = &answers[i];
        output_object(&out, NULL);
        output_string(&out, "file", r->files[i]);
        output_array(&out, "classes");
        for (size_t k = 0; k < a->count; k++)
            output_string(&out, NULL, r->report->class_names[a->classes[k]]);
        output_end(&out);
        output_reals(&out, "probabilities", a->shares, a->count);
        output_end(&out);
    }
    return output_print(&out);
}

static void answers_print(const eval_request *r, const answer *answers)
{
    for (size_t i = 0; i < r->file_count; i++) {
        printf("%s\n   ", r->files[i]);
        for (size_t k = 0; k < answers[i].count; k++)
            printf(" %s %.1f %%%s", r->report->class_names[answers[i].classes[k]], 100 * answers[i].shares[k],
                   k + 1 < answers[i].count ? "," : "\n");
    }
}

static berlu_status predict(options *o)
{
    static const char *const passed_on[] = {"device", "precision", "residual", "algorithms"};
    const char *settings[COUNT(passed_on)][2];
    size_t given = 0;
    for (size_t i = 0; i < COUNT(passed_on); i++)
        if (options_given(o, passed_on[i])) {
            settings[given][0] = passed_on[i];
            settings[given++][1] = options_string(o, passed_on[i]);
        }
    eval_report report = {0};
    size_t count = options_count(o, "image");
    answer *answers = calloc(count + 1, sizeof *answers);
    if (!answers)
        return berlu_fail_memory(count * sizeof *answers, "the answers");
    eval_request request = {
        .run = options_string(o, "run"),
        .which = options_string(o, "which"),
        .settings = (const char *const(*)[2])settings,
        .setting_count = given,
        .batch = (int)(count < 100 ? count : 100),
        .threads = options_threads(o),
        .ema = options_flag(o, "ema"),
        .files = options_strings(o, "image"),
        .file_count = count,
        .report = &report,
        .each = take,
        .context = answers,
    };
    score ignored;
    request.log = &(berlu_log){.write = warning_show};
    berlu_status status = eval_run(&request, &ignored);
    if (status == BERLU_OK && options_json(o))
        status = answers_json(&request, answers);
    else if (status == BERLU_OK)
        answers_print(&request, answers);
    arena_free(&report.memory);
    free(answers);
    return status;
}

static const option_row rows[] = {
    {"run", OPTION_STRING, "RUN", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "a run's folder"},
    {"image", OPTION_STRINGS, "IMAGE", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "JPEG or PNG files"},
    {"which", OPTION_STRING, "last|best|STEP", .standard = "last", .help = "which checkpoint of the run"},
    {"ema", OPTION_FLAG, .help = "the averaged weights instead of the last ones"},
    RUN_DEVICE_ROWS,
    {0}};

const command cmd_predict = {
    "predict", "the likeliest classes of image files",
    "Shows the five likeliest classes of each image with their probabilities. Images are prepared as the "
    "run's test images are; the run's data need not be there.\n\n"
    "  berlu predict runs/first cat.jpg dog.png\n"
    "  berlu predict runs/first photos/*.jpg --which best --json",
    rows, predict};
