/* data_args.h - options that name a set of images and how it is read.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_DATA_ARGS_H
#define CLI_DATA_ARGS_H

#include "data/data.h"
#include "options.h"

/* Rows of a command's table. */
#define DATA_ROWS                                                                                                       \
    {"class-order", OPTION_CHOICE, .standard = "torchvision", .choices = "torchvision|timm",                            \
     .help = "how the classes of a folder are numbered"},                                                               \
        {"labels", OPTION_CHOICE, .standard = "fine", .choices = "fine|coarse", .help = "of CIFAR-100"},                \
        {"val-labels", OPTION_STRING, "FILE", .help = "lines \"FILENAME CLASS\" for a flat val folder"},                \
        {"max-bad",  OPTION_INT,   "N",                                                                                 \
         .least = 0, .most = 1e15, .help = "broken files to be skipped before giving up (default: one in a thousand)"}, \
    {                                                                                                                   \
        "sha256", OPTION_STRING, "HEX", .help = "hash of an archive that is not the published one"                      \
    }

data_options data_options_from(const options *o);

#endif
