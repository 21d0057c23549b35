/* analyze_out.c - see analyze_out.h. SPDX-License-Identifier: MIT */
#include "analyze_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void real_or_null(output *out, const char *key, double value)
{
    if (isnan(value))
        output_null(out, key);
    else
        output_real(out, key, value);
}

const char *number_or_dash(char out[NUMBER_TEXT], double value)
{
    return isnan(value) ? strcpy(out, "-") : number_text(out, value);
}

const char *digits_or_dash(char out[NUMBER_TEXT], int digits, double value)
{
    if (isnan(value))
        return strcpy(out, "-");
    snprintf(out, NUMBER_TEXT, "%.*g", digits, value);
    return out;
}

berlu_status rows_end(output *out, int json)
{
    if (json) {
        output_end(out);
        return output_print(out);
    }
    text_free(&out->json);
    return BERLU_OK;
}
