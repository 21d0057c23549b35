/* cmd_doctor.c - what this machine and this build offer. SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "backends.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "build_info.h"
#include "commands.h"
#include "gpu.h"
#include "output.h"

typedef struct feature {
    const char *name, *use;
    int there;
} feature;

/* Made by the build from what it found (cmake/features.cmake). */
static const feature features[] = {BUILD_FEATURES};

enum { MOST_GPUS = 16 };
typedef struct machine {
    char cpu[64];
    cpu_isa isa;
    int threads, gpus;
    gpu gpu[MOST_GPUS];
    const char *no_gpu; /* why there is none */
    char engine[160];   /* the device as training opens it; "": nobody asked */
} machine;

static void machine_ask(machine *m, const options *o)
{
    cpu_model(m->cpu, sizeof m->cpu);
    m->isa = options_isa(o);
    m->threads = threads_granted(options_threads(o));
    m->gpus = gpu_list(m->gpu, MOST_GPUS, &m->no_gpu);
    m->gpus = m->gpus < MOST_GPUS ? m->gpus : MOST_GPUS;
}

static berlu_status doctor_json(const machine *m)
{
    output out;
    output_start(&out);
    output_string(&out, "cpu", m->cpu);
    output_string(&out, "isa", cpu_isa_name(m->isa));
    output_array(&out, "isa_usable");
    for (int isa = 0; isa < CPU_ISA_COUNT; isa++)
        if (cpu_has((cpu_isa)isa))
            output_string(&out, NULL, cpu_isa_name((cpu_isa)isa));
    output_end(&out);
    output_int(&out, "threads", m->threads);
    output_string(&out, "blas", BUILD_BLAS);
    output_bool(&out, "cuda", BUILD_CUDA);
    output_array(&out, "gpus");
    for (int i = 0; i < m->gpus; i++) {
        output_object(&out, NULL);
        output_string(&out, "name", m->gpu[i].name);
        output_int(&out, "compute", m->gpu[i].major * 10 + m->gpu[i].minor);
        output_int(&out, "bytes", (int64_t)m->gpu[i].memory);
        output_end(&out);
    }
    output_end(&out);
    if (*m->engine)
        output_string(&out, "cuda_device", m->engine);
    output_string(&out, "compiler", BUILD_COMPILER);
    output_string(&out, "build", BUILD_TYPE);
    output_object(&out, "features");
    for (size_t i = 0; i < COUNT(features); i++)
        output_bool(&out, features[i].name, features[i].there);
    output_end(&out);
    return output_print(&out);
}

static void doctor_print(const machine *m)
{
    printf("berlu %s (%s, %s)\n\n", berlu_version(), BUILD_COMPILER, BUILD_TYPE);
    printf("  processor     %s\n  instructions  %s (usable:", m->cpu, cpu_isa_name(m->isa));
    for (int isa = 0; isa < CPU_ISA_COUNT; isa++)
        if (cpu_has((cpu_isa)isa))
            printf(" %s", cpu_isa_name((cpu_isa)isa));
    printf(")\n  threads       %d\n  products      %s\n", m->threads, BUILD_BLAS);
    for (int i = 0; i < m->gpus; i++)
        printf("  GPU %-9d %s, compute %d.%d, %.0f GiB\n", i, m->gpu[i].name, m->gpu[i].major, m->gpu[i].minor,
               (double)m->gpu[i].memory * 0x1p-30);
    if (m->gpus == 0)
        printf("  GPU           none: %s\n", m->no_gpu);
    if (*m->engine)
        printf("  --device cuda %s\n", m->engine);
    printf("\nbuilt with\n");
    for (size_t i = 0; i < COUNT(features); i++)
        printf("  %-12s  %-3s  %s\n", features[i].name, features[i].there ? "yes" : "no", features[i].use);
}

/* Opens the device as training would, and says what it is or what is missing. */
static berlu_status device_try(char *out, size_t size)
{
    const backend *b;
    device *d = NULL;
    berlu_status status = backend_find(&b, "cuda");
    if (status == BERLU_OK)
        status = b->open(&d, b, &(device_options){.algorithms = "first"});
    if (status != BERLU_OK)
        return status;
    b->describe(d, out, size);
    b->close(d);
    return BERLU_OK;
}

static berlu_status doctor(options *o)
{
    machine m = {0};
    machine_ask(&m, o);
    if (options_choice(o, "device") == 1) {
        berlu_status status = device_try(m.engine, sizeof m.engine);
        if (status != BERLU_OK)
            return status;
    }
    if (options_json(o))
        return doctor_json(&m);
    doctor_print(&m);
    return BERLU_OK;
}

static const option_row rows[] = {
    {"device", OPTION_CHOICE, .standard = "cpu", .choices = "cpu|cuda", .help = "also try to open this one"}, {0}};

const command cmd_doctor = {
    "doctor", "what this machine and this build offer",
    "Prints the processor, the instruction set that will be used (BERLU_ISA or --isa choose another), the threads, "
    "the\n"
    "library for matrix products, the GPUs, and which optional parts were found when berlu was built. With --device "
    "cuda the\nGPU is opened as training does it; what is missing is the error.",
    rows, doctor};
