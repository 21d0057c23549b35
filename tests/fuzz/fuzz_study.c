/* fuzz_study.c - any bytes as a study file: a study whose runs all resolve, or a list of problems.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mutate.h"
#include "study/study_file.h"

static void check(const study *s)
{
    size_t most = s->run_count < 8 ? s->run_count : 8;
    for (size_t i = 0; i < s->run_count; i++)
        if (s->runs[i].cell >= s->cell_count)
            abort();
    for (size_t i = 0; i < s->pair_count; i++)
        if (s->pairs[i].a >= s->cell_count || s->pairs[i].b >= s->cell_count ||
            s->pairs[i].contrast >= s->contrast_count ||
            (s->pairs[i].minus_a == STUDY_NO_CELL) != (s->pairs[i].minus_b == STUDY_NO_CELL) ||
            (s->pairs[i].minus_a != STUDY_NO_CELL &&
             (s->pairs[i].minus_a >= s->cell_count || s->pairs[i].minus_b >= s->cell_count)))
            abort();
    for (size_t i = 0; i < s->contrast_count; i++)
        if ((*s->hypothesis && !s->contrasts[i].expected.what) || !isfinite(s->contrasts[i].expected.limit))
            abort();
    for (size_t i = 0; i < most; i++) {
        train_settings settings;
        if (study_run_settings(s, &s->runs[i], &settings) != BERLU_OK)
            abort();
        recipe_free(&settings);
    }
}

/* Words of the format, put after a place where one may stand: most bytes of a file are none. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    static const char *const phrases[] = {" expect: equal,",
                                          " expect: greater,",
                                          " expect: less,",
                                          " than: 1,",
                                          " than: -0.5,",
                                          " margin: 0.5,",
                                          " minus: {a: {act: gelu}, b: {act: relu}},",
                                          " minus: {a: {act: gelu}},",
                                          " a: {act: gelu},",
                                          " b: {act: relu},",
                                          " paper: 2,",
                                          " name: x,",
                                          "\nhypothesis: x\n",
                                          "\nmargin: 0.1\n",
                                          "\nmetric: loss\n",
                                          "\nclaims: [C7]\n",
                                          "\nskip: [{act: gelu}]\n",
                                          "\nkind: cost\n",
                                          "\nchoose: {study: z, axis: lr, seeds: [77]}\n",
                                          " base: {holdout: 0},",
                                          " lr: [1e-3, 1e-4],",
                                          " {name: y, a: {act: gelu}, b: {act: relu}, expect: equal},"};
    dice d = dice_from(seed);
    const char *phrase = phrases[dice_below(&d, sizeof phrases / sizeof *phrases)];
    size_t length = strlen(phrase), places = 0, at = 0;
    if (dice_next(&d) % 2 || size + length > most)
        return LLVMFuzzerMutate(bytes, size, most);
    char after = *phrase == '\n' ? '\n' : dice_next(&d) % 2 ? '{' : ',';
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == (uint8_t)after && dice_below(&d, ++places) == 0)
            at = i + 1;
    memmove(bytes + at + length, bytes + at, size - at);
    memcpy(bytes + at, phrase, length);
    return size + length;
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
