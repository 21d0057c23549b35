/* unload.c LIBRARY - a plugin host: opens libberlu, computes on two threads, closes it, twice.
 * SPDX-License-Identifier: MIT
 *
 * OpenMP's threads live on after a call, in the code of libgomp, which nothing else holds here: so
 * closing must not unload it. A crash would be a matter of luck; whether the library stays is
 * not. */
#include <berlu/berlu.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 1 << 17 };

/* ISO C has no conversion from what dlsym() returns to a function. */
static int find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static int compute(void *library)
{
    static float x[NUMBERS];
    berlu_status (*make)(berlu_act **, const char *),
        (*forward)(const berlu_act *, berlu_dtype, void *, const void *, size_t, const berlu_exec *);
    void (*release)(berlu_act *);
    berlu_act *act = NULL;
    if (!find(library, "berlu_act_make", &make) || !find(library, "berlu_act_forward_exec", &forward) ||
        !find(library, "berlu_act_free", &release) || make(&act, "gelu") != BERLU_OK)
        return 0;
    berlu_status status = forward(act, BERLU_F32, x, x, NUMBERS, &(berlu_exec){BERLU_ISA_BEST, 2});
    release(act);
    return status == BERLU_OK;
}

int main(int count, char **words)
{
    for (int i = 0; count == 2 && i < 2; i++) {
        void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        if (!library || !compute(library)) {
            printf("%s\n", library ? "a call failed" : dlerror());
            return 1;
        }
        dlclose(library);
        if (!dlopen(words[1], RTLD_NOW | RTLD_NOLOAD)) {
            printf("unloaded, with a thread in libgomp\n");
            return 1;
        }
    }
    return count == 2 ? 0 : 2;
}
