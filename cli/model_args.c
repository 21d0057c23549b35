/* model_args.c - see model_args.h. SPDX-License-Identifier: MIT */
#include "model_args.h"

#include <stdlib.h>

#include "backends.h"

model_options model_options_of(const options *o)
{
    const char *stem = options_string(o, "stem");
    return (model_options){
        .image_size = (int)options_int(o, "image-size"),
        .patch = (int)options_int(o, "patch"),
        .stride = (int)options_int(o, "stride"),
        .stem = stem ? atoi(stem) : 0,
        .classes = (int)options_int(o, "classes"),
        .drop_path = options_given(o, "drop-path") ? options_float(o, "drop-path") : 0,
        .per_channel = options_choice(o, "act-params") == 1,
        .acts = options_strings(o, "act"),
        .act_count = (int)options_count(o, "act"),
    };
}

berlu_status model_from_options(model **out, const options *o, const char *name)
{
    const model_options wanted = model_options_of(o);
    return model_create(out, name, &wanted);
}

berlu_status device_from_options(engine_options *out, const options *o)
{
    int cuda = options_choice(o, "device") == 1;
    const char *precision = options_string(o, "precision");
    out->opening = (device_options){.precision = options_choice(o, "precision") ? precision
                                                 : cuda                         ? "bf16"
                                                                                : "f32",
                                    .residual = options_string(o, "residual"),
                                    .algorithms = options_string(o, "algorithms")};
    static const int streams[] = {0, 1, -1};
    out->opening.second_stream = streams[options_choice(o, "second-stream")];
    static const char *const of_cuda[] = {"residual", "algorithms", "second-stream"};
    for (size_t i = 0; i < COUNT(of_cuda); i++)
        if (!cuda && options_given(o, of_cuda[i]))
            return berlu_fail(BERLU_ERR_ARG, "--%s has no effect without --device cuda", of_cuda[i]);
    return backend_find(&out->backend, cuda ? "cuda" : "cpu");
}
