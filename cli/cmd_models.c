/* cmd_models.c - berlu models: every network, as built. SPDX-License-Identifier: MIT
 *
 * Each model is built once, and parameters and multiply-adds are counted in its graph, so this list
 * cannot differ from what is trained. */
#include <stdio.h>

#include "commands.h"
#include "models/models.h"
#include "models/timm.h"
#include "output.h"

static int64_t parameters_of(const graph *g)
{
    int64_t parameters = 0;
    for (int i = 0; i < graph_param_count(g); i++)
        parameters += tensor_elements(graph_tensor(g, graph_param(g, i)));
    return parameters;
}

/* The side of a patch, or of ConvNeXt's stem; 0: none. */
static int patch_of(const model_config *m)
{
    return m->patch ? m->patch : m->stem;
}

/* 5717416 -> "5.72M", 17563828224 -> "17.6G" */
static const char *short_text(char out[16], double value)
{
    static const char units[] = " kMGT";
    int unit = 0;
    for (; value >= 999.5 && units[unit + 1]; unit++)
        value /= 1000;
    snprintf(out, 16, "%.3g%.*s", value, unit > 0, units + unit);
    return out;
}

static void model_line(const model *m)
{
    char size[16], parameters[16], macs[16];
    const model_config *c = &m->config;
    const char *timm = timm_name(c->name);
    snprintf(size, sizeof size, patch_of(c) ? "%d/%d" : "%d", c->image_size, patch_of(c));
    printf("%-25s  %-32s %6s %5s %5s\n", c->name, timm ? timm : "", size,
           short_text(parameters, (double)parameters_of(m->graph)), short_text(macs, graph_macs(m->graph)));
}

static void model_json(output *out, const model *m)
{
    const model_config *c = &m->config;
    output_object(out, NULL);
    output_string(out, "name", c->name);
    output_string(out, "timm", timm_name(c->name));
    output_int(out, "image_size", c->image_size);
    if (patch_of(c))
        output_int(out, "patch", patch_of(c));
    else
        output_null(out, "patch");
    output_int(out, "classes", c->classes);
    output_int(out, "sites", graph_site_count(m->graph));
    output_int(out, "params", parameters_of(m->graph));
    output_int(out, "macs", (int64_t)graph_macs(m->graph));
    output_end(out);
}

static berlu_status models(options *o)
{
    output out;
    berlu_status status = BERLU_OK;
    output_start(&out);
    output_array(&out, "models");
    if (!options_json(o))
        printf("%-25s  %-32s %6s %5s %5s\n", "model", "timm's name", "image", "par.", "MACs");
    for (size_t i = 0; model_name(i); i++) {
        model *m = NULL;
        TRY_DONE(model_create(&m, model_name(i), NULL));
        if (options_json(o))
            model_json(&out, m);
        else
            model_line(m);
        model_free(m);
    }
    if (options_json(o))
        return output_print(&out);
    puts("\nimage: side and patch (ConvNeXt: stem); --image-size, --patch and --stem change\n"
         "them. par.: parameters. MACs: multiply-adds for one image. Classes: 1000 at 224,\n"
         "10 at 32, unless --classes or the data say otherwise. timm's names work, too.");
done:
    text_free(&out.json);
    return status;
}

static const option_row rows[] = {NO_COMPUTE_ROWS, {0}};

const command cmd_models = {"models", "every network: timm's name, image size, parameters, multiply-adds",
                            "`berlu summary MODEL` shows the layers of one.\n\n"
                            "  berlu models\n"
                            "  berlu models --json",
                            rows, models};
