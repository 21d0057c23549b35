/* confusion.h - the confusion matrix: counts, accuracy by class, SVG.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_CONFUSION_H
#define CLI_CONFUSION_H

#include "output.h"

typedef struct confusion {
    uint64_t *counts; /* [label][prediction] */
    size_t classes;
    int failed; /* the first row could not be allocated */
} confusion;    /* {0} is empty */

void confusion_add(confusion *c, const float *logits, size_t classes, size_t label);
void confusion_free(confusion *c);

void confusion_print(const confusion *c, const char *const *names);           /* a line per class */
void confusion_json(const confusion *c, const char *const *names, output *o); /* "per_class" */
berlu_status confusion_save(const confusion *c, const char *const *names, const char *title, const char *subtitle,
                            const char *path);

#endif
