/* files.c - see files.h. SPDX-License-Identifier: MIT */
#include "report/files.h"

#include <stdio.h>

#include "base/file.h"
#include "report/report.h"

static berlu_status form_write(const table *t, const char *folder, const char *ending,
                               void (*form)(const table *, text *))
{
    char path[STUDY_PATH];
    text out = {0};
    form(t, &out);
    berlu_status status = snprintf(path, sizeof path, "%s/%s.%s", folder, t->name, ending) < (int)sizeof path
                              ? file_write_text(NULL, path, &out)
                              : berlu_fail(BERLU_ERR_ARG, "%s: the path is too long", folder);
    text_free(&out);
    return status;
}

berlu_status table_files_write(const table *t, const char *folder, unsigned formats)
{
    if (t->row_count && (formats & REPORT_CSV))
        TRY(form_write(t, folder, "csv", table_csv));
    if (t->row_count && (formats & REPORT_MARKDOWN))
        TRY(form_write(t, folder, "md", table_markdown));
    return BERLU_OK;
}
