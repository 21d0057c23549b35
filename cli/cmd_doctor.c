/* cmd_doctor.c - what this machine and this build offer. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/cpu.h"
#include "base/threads.h"
#include "build_info.h"
#include "commands.h"
#include "output.h"

typedef struct feature {
    const char *name, *use;
    int there;
} feature;

/* Made by the build from what it found (cmake/options.cmake). */
static const feature features[] = {BUILD_FEATURES};

static void isa_print(output *out, int json)
{
    if (json)
        output_array(out, "isa_usable");
    else
        printf("  usable      ");
    for (int isa = 0; isa < CPU_ISA_COUNT; isa++) {
        if (!cpu_has((cpu_isa)isa))
            continue;
        if (json)
            output_string(out, NULL, cpu_isa_name((cpu_isa)isa));
        else
            printf(" %s", cpu_isa_name((cpu_isa)isa));
    }
    if (json)
        output_end(out);
    else
        putchar('\n');
}

static berlu_status doctor_json(const options *o, const char *model, int threads)
{
    output out;
    output_start(&out);
    output_string(&out, "cpu", model);
    output_string(&out, "isa", cpu_isa_name(options_isa(o)));
    isa_print(&out, 1);
    output_int(&out, "threads", threads);
    output_string(&out, "blas", BUILD_BLAS);
    output_bool(&out, "cuda", BUILD_CUDA);
    output_string(&out, "compiler", BUILD_COMPILER);
    output_string(&out, "build", BUILD_TYPE);
    output_object(&out, "features");
    for (size_t i = 0; i < COUNT(features); i++)
        output_bool(&out, features[i].name, features[i].there);
    output_end(&out);
    return output_print(&out);
}

static berlu_status doctor(options *o)
{
    char model[64];
    cpu_model(model, sizeof model);
    int threads = options_threads(o) ? options_threads(o) : threads_default();
    if (options_json(o))
        return doctor_json(o, model, threads);
    printf("berlu %s (%s, %s)\n\n", berlu_version(), BUILD_COMPILER, BUILD_TYPE);
    printf("  processor    %s\n  instructions %s\n", model, cpu_isa_name(options_isa(o)));
    isa_print(NULL, 0);
    printf("  threads      %d\n  products     %s\n\n", threads, BUILD_BLAS);
    for (size_t i = 0; i < COUNT(features); i++)
        printf("  %-12s %-4s %s\n", features[i].name, features[i].there ? "yes" : "no", features[i].use);
    return BERLU_OK;
}

const command cmd_doctor = {"doctor", "what this machine and this build offer",
                            "Prints the processor, the instruction set that will be used (BERLU_ISA or --isa choose "
                            "another), the threads, the\n"
                            "library for matrix products, and which optional parts were found when berlu was built.",
                            NULL, doctor};
