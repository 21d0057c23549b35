/* checkpoint_read.c - verifies and loads one checkpoint folder. SPDX-License-Identifier: MIT
 *
 * checkpoint_load() checks every file against the engine before it sets anything, so a checkpoint
 * of another run leaves the engine as it was. */
#include <stdio.h>

#include "base/file.h"
#include "io/safetensors.h"
#include "models/weights.h"
#include "train/checkpoint.h"
#include "train/checkpoint_files.h"
#include "train/checkpoint_sums.h"

const char *const checkpoint_file_names[] = {"model.safetensors", "state.safetensors", "ema.safetensors"};

size_t checkpoint_file_count(int ema)
{
    return ema ? COUNT(checkpoint_file_names) : COUNT(checkpoint_file_names) - 1;
}

berlu_status checkpoint_path(char out[CHECKPOINT_PATH], const char *folder, const char *name)
{
    int length = snprintf(out, CHECKPOINT_PATH, "%s/%s", folder, name);
    if (length < 0 || length >= CHECKPOINT_PATH)
        return berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    return BERLU_OK;
}

int checkpoint_has_average(const char *folder)
{
    char path[CHECKPOINT_PATH];
    return checkpoint_path(path, folder, checkpoint_file_names[2]) == BERLU_OK && file_exists(path);
}

static berlu_status state_open(safetensors **out, const char *folder)
{
    char path[CHECKPOINT_PATH];
    TRY(checkpoint_path(path, folder, "state.safetensors"));
    return safetensors_open(out, path);
}

berlu_status checkpoint_facts_read(checkpoint_facts *out, const char *folder)
{
    safetensors *file;
    *out = (checkpoint_facts){0};
    TRY(state_open(&file, folder));
    berlu_status status = state_format(file, &out->format);
    const char *settings = safetensors_metadata(file, "settings");
    text_string(&out->settings, settings ? settings : "");
    safetensors_close(file);
    if (status == BERLU_OK)
        status = text_status(&out->settings);
    if (status != BERLU_OK)
        text_free(&out->settings);
    return status;
}

berlu_status checkpoint_check(const char *folder, int ema)
{
    checkpoint_facts facts;
    TRY(checkpoint_facts_read(&facts, folder));
    text_free(&facts.settings);
    for (size_t i = 0; i < checkpoint_file_count(ema); i++) {
        char path[CHECKPOINT_PATH];
        safetensors *file;
        TRY(checkpoint_path(path, folder, checkpoint_file_names[i]));
        TRY(safetensors_open(&file, path));
        safetensors_close(file);
    }
    return sums_check(folder, checkpoint_file_names, checkpoint_file_count(ema), facts.format > 0);
}

berlu_status checkpoint_load(const char *folder, engine *e, train_state *s)
{
    char path[CHECKPOINT_PATH];
    safetensors *state = NULL, *ema = NULL;
    berlu_status status;
    TRY_DONE(state_open(&state, folder));
    TRY_DONE(state_read(state, e, s, 0));
    if (engine_has(e, ARRAY_EMA)) {
        TRY_DONE(checkpoint_path(path, folder, "ema.safetensors"));
        TRY_DONE(safetensors_open(&ema, path));
        TRY_DONE(array_read(e, ARRAY_EMA, ema, "", 0));
    }
    TRY_DONE(checkpoint_path(path, folder, "model.safetensors"));
    TRY_DONE(weights_load_path(e, path)); /* checks all tensors before it sets any */
    if (ema)
        TRY_DONE(array_read(e, ARRAY_EMA, ema, "", 1));
    TRY_DONE(state_read(state, e, s, 1));
done:
    safetensors_close(ema);
    safetensors_close(state);
    return status;
}
