/* fuzz_study.c - any bytes as a study file: a study whose runs all resolve, or a list of problems.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "study/study_file.h"

static void check(const study *s)
{
    size_t most = s->run_count < 8 ? s->run_count : 8;
    for (size_t i = 0; i < s->run_count; i++)
        if (s->runs[i].cell >= s->cell_count)
            abort();
    for (size_t i = 0; i < s->pair_count; i++)
        if (s->pairs[i].a >= s->cell_count || s->pairs[i].b >= s->cell_count ||
            s->pairs[i].contrast >= s->contrast_count)
            abort();
    for (size_t i = 0; i < most; i++) {
        train_settings settings;
        if (study_run_settings(s, &s->runs[i], &settings) != BERLU_OK)
            abort();
        recipe_free(&settings);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    study s;
    text problems = {0};
    berlu_status status = study_parse(&s, (const char *)bytes, size, "study.yaml", &problems);
    if (status == BERLU_OK)
        check(&s);
    else if (status == BERLU_ERR_INPUT && (!problems.data || !strchr(problems.data, '\n')))
        abort(); /* refused without a reason */
    study_free(&s);
    text_free(&problems);
    return 0;
}
