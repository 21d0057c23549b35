/* network_args.c - see network_args.h. SPDX-License-Identifier: MIT */
#include "network_args.h"

opened_options network_from_options(const options *o, const char *name)
{
    return (opened_options){.name = name,
                            .which = options_string(o, "which"),
                            .ema = options_flag(o, "ema"),
                            .images = (size_t)options_int(o, "images"),
                            .test = options_choice(o, "split") == 1,
                            .batch = (int)options_int(o, "batch"),
                            .cuda = options_choice(o, "device") == 1,
                            .threads = options_threads(o)};
}
