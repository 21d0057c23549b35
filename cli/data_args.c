/* data_args.c - see data_args.h. SPDX-License-Identifier: MIT */
#include "data_args.h"

data_options data_options_from(const options *o)
{
    return (data_options){
        .class_order = options_string(o, "class-order"),
        .labels = options_given(o, "labels") ? options_string(o, "labels") : NULL,
        .val_labels = options_string(o, "val-labels"),
        .sha256 = options_string(o, "sha256"),
        .max_bad_given = options_given(o, "max-bad"),
        .max_bad = (size_t)options_int(o, "max-bad"),
        .threads = options_threads(o),
    };
}
