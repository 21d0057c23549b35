/* network_args.h - options of analyses that run a network: weights, images, device.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_NETWORK_ARGS_H
#define CLI_NETWORK_ARGS_H

#include "analyze/opened.h"
#include "options.h"

#define NETWORK_ROWS                                                                                                   \
    {"which", OPTION_STRING, "last|best|STEP", .standard = "last", .help = "which checkpoint of the run"},             \
        {"ema", OPTION_FLAG, .help = "the averaged weights instead of the last ones"},                                 \
        {"images",                                                                                                     \
         OPTION_INT,                                                                                                   \
         "N",                                                                                                          \
         .standard = "256",                                                                                            \
         .least = 1,                                                                                                   \
         .most = 1e9,                                                                                                  \
         .help = "so many images, as many of each class as there are"},                                                \
        {"split", OPTION_CHOICE, .standard = "train", .choices = "train|test", .help = "of which part of the data"},   \
        {"batch", OPTION_INT, "N", .standard = "64", .least = 1, .most = 65536, .help = "images per pass"},            \
    {                                                                                                                  \
        "device", OPTION_CHOICE, .standard = "cpu", .choices = "cpu|cuda", .help = "what computes, in f32"             \
    }

/* Options for opened_make() from those rows; `name` is the run or the model. */
opened_options network_from_options(const options *o, const char *name);

#endif
