/* guess.c - the activation that a name from elsewhere means. SPDX-License-Identifier: MIT
 *
 * Names are not accepted in several spellings: a function has one name in run folders, studies and
 * tables. But whoever types PyTorch's, Keras's or a paper's name is answered with ours. */
#include <ctype.h>
#include <string.h>

#include "act/act_internal.h"

/* Lower case, letters and digits alone: "Leaky-ReLU" and "leaky_relu" become "leakyrelu". */
static void normalise(char out[ACT_NAME_CAPACITY], const char *name)
{
    size_t length = 0;
    for (; *name && length + 1 < ACT_NAME_CAPACITY; name++)
        if (isalnum((unsigned char)*name))
            out[length++] = (char)tolower((unsigned char)*name);
    out[length] = '\0';
}

const char *act_guess(const char *name)
{
    static const char *const pairs[][2] = {
        {"swish", "silu"},
        {"sil", "silu"},
        {"lrelu", "leaky_relu"},
        {"leaky", "leaky_relu"},
        {"squaredrelu", "relu2"},
        {"relusquared", "relu2"},
        {"logistic", "sigmoid"},
        {"geluerf", "gelu"},
        {"hswish", "hard_swish"},
        {"hsigmoid", "hard_sigmoid"},
        {"htanh", "hard_tanh"},
        {"linear", "identity"},
        {"none", "identity"},
        {"gelunew", "gelu_tanh"},
        {"geluapproximate", "gelu_tanh"},
        {"gelupytorchtanh", "gelu_tanh"},
        {"parametricrelu", "prelu"},
        {"smoothrelu", "smelu"},
        {"bernsteinlu", "berlu"},
    };
    char word[ACT_NAME_CAPACITY], other[ACT_NAME_CAPACITY];
    const char *builtin;
    normalise(word, name);
    for (size_t i = 0; (builtin = berlu_act_builtin(i)); i++) {
        normalise(other, builtin);
        if (*word && strcmp(word, other) == 0)
            return builtin;
    }
    for (size_t i = 0; i < COUNT(pairs); i++)
        if (strcmp(word, pairs[i][0]) == 0)
            return pairs[i][1];
    return NULL;
}
