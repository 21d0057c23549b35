/* store_internal.h - the struct behind store.h. SPDX-License-Identifier: MIT */
#ifndef STUDY_STORE_INTERNAL_H
#define STUDY_STORE_INTERNAL_H

#include <sqlite3.h>

#include "study/store.h"

struct store {
    sqlite3 *db;
    char path[STUDY_PATH];
    int writes;
};

berlu_status store_fail(const store *s, const char *what); /* with SQLite's reason */
berlu_status store_exec(store *s, const char *sql);
berlu_status store_prepare(store *s, sqlite3_stmt **out, const char *sql);
void store_bind_text(sqlite3_stmt *q, int at, const char *value);

#endif
