/* model_args.h - options that describe a network, for every command that needs one.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_MODEL_ARGS_H
#define CLI_MODEL_ARGS_H

#include "engine/engine.h"
#include "models/models.h"
#include "options.h"

/* Rows of a command's table. The model's name is a row of the command itself: an argument in some,
 * an option in others. `eval` uses the rows of the shape alone: its data determine the classes, its
 * weights the activation. */
#define MODEL_SHAPE_ROWS                                                                                               \
    {"image-size", OPTION_INT, "N", .least = 1, .most = 4096, .help = "side of the square image"},                     \
        {"patch", OPTION_INT, "N", .least = 1, .most = 4096, .help = "side of a patch (ViT, DeiT, TNT)"},              \
        {"stride", OPTION_INT, "N", .least = 1, .most = 4096, .help = "of the pixel convolution (TNT)"},               \
        {"stem", OPTION_CHOICE, .choices = "1|2|4", .help = "size and stride of the first convolution (ConvNeXt)"},    \
    {                                                                                                                  \
        "act-params", OPTION_CHOICE, .standard = "layer", .choices = "layer|channel",                                  \
                                     .help = "learned activation parameters: one a layer or one a channel"             \
    }

#define MODEL_ROWS                                                                                                     \
    MODEL_SHAPE_ROWS, {"classes", OPTION_INT, "N", .least = 1, .most = 1000000, .help = "how many classes"},           \
        {"drop-path",                                                                                                  \
         OPTION_FLOAT,                                                                                                 \
         "RATE",                                                                                                       \
         .least = 0,                                                                                                   \
         .most = MODEL_DROP_PATH_MOST,                                                                                 \
         .help = "stochastic depth of the last block"},                                                                \
    {                                                                                                                  \
        "act", OPTION_STRINGS, "ACT", .help = "activation, once for all sites or once a site (default gelu)"           \
    }

/* The device, for commands that run a network. */
#define DEVICE_ROWS                                                                                                    \
    {"device", OPTION_CHOICE, .standard = "cpu", .choices = "cpu|cuda", .help = "what computes"},                      \
        {"precision", OPTION_CHOICE, .standard = "auto", .choices = "auto|bf16|tf32|f32",                              \
         .help = "of products: bf16 on cuda and f32 on the CPU unless said otherwise"},                                \
        {"residual", OPTION_CHOICE, .standard = "bf16", .choices = "bf16|f32",                                         \
         .help = "dtype of the residual stream with --precision bf16"},                                                \
        {"second-stream", OPTION_CHOICE, .standard = "auto", .choices = "auto|on|off",                                 \
         .help = "cuda: weight gradients beside the rest of the backward; auto: up to 32768 rows"},                    \
    {                                                                                                                  \
        "algorithms", OPTION_STRING, "FILE",                                                                           \
            .help = "cuda: file of product algorithms, `first` for the library's first choice, `new` to choose again"  \
    }

/* The same for commands that open a run, whose settings these override. */
#define RUN_DEVICE_ROWS                                                                                                \
    {"device", OPTION_CHOICE, .choices = "cpu|cuda", .help = "what computes (default: as for the run)"},               \
        {"precision", OPTION_CHOICE, .choices = "bf16|tf32|f32",                                                       \
         .help = "of products on cuda (default: as for the run)"},                                                     \
        {"residual", OPTION_CHOICE, .choices = "bf16|f32",                                                             \
         .help = "dtype of the residual stream with --precision bf16 (default: as for the run)"},                      \
    {                                                                                                                  \
        "algorithms", OPTION_STRING, "FILE",                                                                           \
            .help = "cuda: file of product algorithms, `first` for the library's first choice, `new` to choose again"  \
    }

/* The backend and how its device is opened, into an engine's options. */
berlu_status device_from_options(engine_options *out, const options *o);

/* What the options say of a network, and that network. */
model_options model_options_of(const options *o);
berlu_status model_from_options(model **out, const options *o, const char *name);

#endif
