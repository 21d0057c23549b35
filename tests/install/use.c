/* use.c - a program of someone else, built against the installed library by install.sh. SPDX-License-Identifier: MIT */
#include <berlu/status.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    printf("berlu %s\n", berlu_version());
    return strcmp(berlu_status_name(BERLU_OK), "ok") == 0 && *berlu_last_error() == 0 ? 0 : 1;
}
