/* act_text.c - see act_text.h. SPDX-License-Identifier: MIT
 *
 * The function of a file is registered for the duration of the call: its name is then checked like
 * every other, and the keys after the path are parsed by the common parser of activations. */
#include "io/act_text.h"

#include "base/text.h"
#include "io/smooth_yaml.h"

static berlu_status make_under(berlu_act **out, const char *name, const berlu_smooth *f, const char *keys)
{
    berlu_registry *names = NULL;
    text spec = {0};
    berlu_status status;
    text_add(&spec, "%s%s", name, keys);
    TRY_DONE(text_status(&spec));
    TRY_DONE(berlu_registry_make(&names));
    TRY_DONE(berlu_registry_add(names, name, f));
    status = berlu_act_make_in(out, spec.data, names);
done:
    text_free(&spec);
    berlu_registry_free(names);
    return status;
}

berlu_status act_from_text(berlu_act **out, const char *words)
{
    size_t length = smooth_yaml_path(words);
    if (length == 0)
        return berlu_act_make(out, words);
    char name[SMOOTH_NAME];
    berlu_smooth *f = NULL;
    text path = {0};
    *out = NULL;
    text_bytes(&path, words, length);
    berlu_status status;
    TRY_DONE(text_status(&path));
    TRY_DONE(smooth_yaml_read(&f, name, path.data));
    status = make_under(out, *name ? name : "smoothed", f, words + length);
    if (status != BERLU_OK)
        berlu_fail_in(status, path.data);
done:
    text_free(&path);
    berlu_smooth_free(f);
    return status;
}
