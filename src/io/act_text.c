/* act_text.c - see act_text.h. SPDX-License-Identifier: MIT */
#include "io/act_text.h"

#include <string.h>

#include "io/smooth_yaml.h"

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

berlu_status act_from_text(berlu_act **out, const char *text)
{
    if (!ends_in(text, ".yaml") && !ends_in(text, ".yml"))
        return berlu_act_make(out, text);
    char name[SMOOTH_NAME];
    berlu_smooth *f = NULL;
    berlu_status status = smooth_yaml_read(&f, name, text);
    if (status == BERLU_OK)
        status = berlu_act_make_smooth(out, *name ? name : "smooth", f);
    berlu_smooth_free(f);
    return status;
}
