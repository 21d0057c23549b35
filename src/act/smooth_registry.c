/* smooth_registry.c - smoothed functions under names of the user, and the rule for names.
 * SPDX-License-Identifier: MIT
 *
 * A linked list: there are a handful of names, and they are looked up when something is built,
 * never in a step. It is declared in <berlu/smooth.h> but defined here, because the table of
 * activations has names to protect. */
#include <stdlib.h>
#include <string.h>

#include "act/act_internal.h"
#include "base/status.h"

typedef struct registered {
    struct registered *next;
    berlu_smooth *function;
    char name[ACT_NAME_CAPACITY];
} registered;

struct berlu_registry {
    registered *first, **last; /* last: the link for the next one */
};

berlu_status berlu_registry_make(berlu_registry **out)
{
    if (!out)
        return berlu_fail(BERLU_ERR_ARG, "berlu_registry_make() was given NULL");
    *out = calloc(1, sizeof **out);
    if (!*out)
        return berlu_fail_memory(sizeof **out, "a registry");
    (*out)->last = &(*out)->first;
    return BERLU_OK;
}

void berlu_registry_free(berlu_registry *r)
{
    for (registered *next, *item = r ? r->first : NULL; item; item = next) {
        next = item->next;
        berlu_smooth_free(item->function);
        free(item);
    }
    free(r);
}

berlu_status act_name_check(const char *name)
{
    const act_row *row = act_row_find(name);
    if (row)
        return berlu_fail(BERLU_ERR_ARG, "'%s' is %s; take another name", name,
                          row->definition->inner ? "a reserved word" : "a built-in activation");
    if (!name_is_identifier(name) || strlen(name) >= ACT_NAME_CAPACITY)
        return berlu_fail(BERLU_ERR_ARG, "'%.80s' is no name: a letter, then letters, digits and '_', at most %d", name,
                          ACT_NAME_CAPACITY - 1);
    return BERLU_OK;
}

berlu_status berlu_registry_add(berlu_registry *r, const char *name, const berlu_smooth *f)
{
    if (!r || !name || !f)
        return berlu_fail(BERLU_ERR_ARG, "berlu_registry_add() was given NULL");
    berlu_status status = act_name_check(name);
    if (status != BERLU_OK)
        return status;
    if (berlu_registry_find(r, name))
        return berlu_fail(BERLU_ERR_ARG, "the name '%s' is taken already", name);
    registered *item = calloc(1, sizeof *item);
    if (!item)
        return berlu_fail_memory(sizeof *item, "a registered function");
    status = berlu_smooth_clone(&item->function, f);
    if (status != BERLU_OK) {
        free(item);
        return status;
    }
    memcpy(item->name, name, strlen(name));
    *r->last = item;
    r->last = &item->next;
    return BERLU_OK;
}

const berlu_smooth *berlu_registry_find(const berlu_registry *r, const char *name)
{
    for (const registered *item = r && name ? r->first : NULL; item; item = item->next)
        if (strcmp(item->name, name) == 0)
            return item->function;
    return NULL;
}

const char *berlu_registry_name(const berlu_registry *r, size_t index)
{
    const registered *item = r ? r->first : NULL;
    while (item && index-- > 0)
        item = item->next;
    return item ? item->name : NULL;
}
