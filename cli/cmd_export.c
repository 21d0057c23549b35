/* cmd_export.c - berlu export onnx, berlu export timm. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "commands.h"
#include "output.h"
#include "progress.h"
#include "train/export.h"

static const berlu_log warnings = {.write = warning_show};

static export_request request_of(const options *o)
{
    return (export_request){.run = options_string(o, "run"),
                            .which = options_string(o, "which"),
                            .ema = options_flag(o, "ema"),
                            .log = &warnings};
}

static berlu_status done(const options *o, const char *path)
{
    if (!options_json(o)) {
        printf("wrote %s\n", path);
        return BERLU_OK;
    }
    output out;
    output_start(&out);
    output_string(&out, "written", path);
    return output_print(&out);
}

static berlu_status onnx(options *o)
{
    export_request r = request_of(o);
    const char *file = options_string(o, "file");
    TRY(export_onnx(&r, file, options_flag(o, "functions")));
    return done(o, file);
}

static berlu_status timm(options *o)
{
    export_request r = request_of(o);
    const char *folder = options_string(o, "folder");
    TRY(export_timm(&r, folder));
    return done(o, folder);
}

#define RUN_ROW                                                                                                        \
    {                                                                                                                  \
        "run", OPTION_STRING, "RUN", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "a run's folder"              \
    }
#define WHICH_ROW                                                                                                      \
    {                                                                                                                  \
        "which", OPTION_STRING, "last|best|STEP", .standard = "last", .help = "which checkpoint of the run"            \
    }
#define EMA_ROW                                                                                                        \
    {                                                                                                                  \
        "ema", OPTION_FLAG, .help = "the averaged weights instead of the last ones"                                    \
    }

static const option_row onnx_rows[] = {
    RUN_ROW,
    {"file", OPTION_STRING, "FILE", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "the ONNX file to write"},
    {"functions", OPTION_FLAG, .help = "each BerLU as one node of a function that the file defines"},
    WHICH_ROW,
    EMA_ROW,
    {0}};

const command cmd_export_onnx = {
    "export onnx", "write a run's network as an ONNX file",
    "Writes the network with its weights in standard operators (opset 17): input image [batch, 3, side, side], "
    "normalised with the mean and std that stand in the file's metadata; output logits [batch, classes].\n\n"
    "  berlu export onnx runs/first first.onnx\n"
    "  berlu export onnx runs/first first.onnx --functions --which best",
    onnx_rows, onnx};

static const option_row timm_rows[] = {
    RUN_ROW,
    {"folder", OPTION_STRING, "DIR", .flags = OPTION_ARGUMENT | OPTION_REQUIRED, .help = "the folder to make"},
    WHICH_ROW,
    EMA_ROW,
    {0}};

const command cmd_export_timm = {
    "export timm", "write a run's network as a folder that timm loads",
    "Writes weights and configuration for timm.create_model(\"local-dir:DIR\", pretrained=True), in Python after "
    "`import berlu.timm`, which knows the activation. What timm's constructors cannot be told (TNT with another "
    "activation than gelu, parameters per channel) is refused; berlu.timm.load(RUN) loads every run.\n\n"
    "  berlu export timm runs/first first-timm",
    timm_rows, timm};
