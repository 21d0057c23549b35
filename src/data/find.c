/* find.c - finds a published set that was named without a path. SPDX-License-Identifier: MIT
 *
 * `--data cifar10` means the folder of the environment variable BERLU_DATA, or `data` without it,
 * which is where `berlu data get cifar10` puts the set; a folder of the set's own name inside it is
 * tried first. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "data/source.h"

berlu_status data_find(const data_kind *kind, char *out, size_t size)
{
    const char *variable = getenv("BERLU_DATA");
    const char *root = variable && *variable ? variable : "data";
    for (int own = 1; own >= 0; own--) {
        int length = snprintf(out, size, "%s%s%s", root, own ? "/" : "", own ? kind->name : "");
        if (length > 0 && (size_t)length < size && kind->recognise(out))
            return BERLU_OK;
    }
    if (variable && *variable)
        return berlu_fail(BERLU_ERR_INPUT,
                          "%s: not found in %s, the folder of BERLU_DATA; get it with `berlu data get %s "
                          "--out %s`, or name its place, %s:PATH",
                          kind->name, root, kind->name, root, kind->name);
    return berlu_fail(BERLU_ERR_INPUT,
                      "%s: not found in the folder `data`; get it with `berlu data get %s`, name its place, "
                      "%s:PATH, or set BERLU_DATA to the folder that holds it",
                      kind->name, kind->name, kind->name);
}

berlu_status data_unknown(const char *name)
{
    const char *near = nearest_name(name, (const char *const[]){"synthetic", "cifar10", "cifar100", NULL});
    if (near)
        return berlu_fail(BERLU_ERR_INPUT, "%s: no such folder or file; did you mean '%s'?", name, near);
    return berlu_fail(BERLU_ERR_INPUT,
                      "%s: no such folder or file (a data set is `synthetic`, a folder, an archive, or KIND:PATH)",
                      name);
}
