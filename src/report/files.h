/* files.h - a table as files of its own. SPDX-License-Identifier: MIT */
#ifndef REPORT_FILES_H
#define REPORT_FILES_H

#include "report/table.h"

/* NAME.csv and NAME.md in a folder that exists, by the formats of report.h; nothing for a table
 * without rows. */
berlu_status table_files_write(const table *t, const char *folder, unsigned formats);

#endif
