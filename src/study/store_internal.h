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
void store_bind_text(sqlite3_stmt *q, int at, const char *value); /* must live until q is finalized */
void store_bind_real(sqlite3_stmt *q, int at, double value);
const char *store_text_at(arena *memory, sqlite3_stmt *q, int column); /* a copy; "" for NULL; NULL without memory */
double store_real_at(sqlite3_stmt *q, int column);                     /* NaN for NULL */
berlu_status store_step(store *s, sqlite3_stmt *q);                    /* runs it to its end and finalizes it */

/* Finalizes a query after its last sqlite3_step(), which returned `rc`. Rows that could not be read
 * are an error, not fewer rows. */
berlu_status store_read_end(store *s, sqlite3_stmt *q, int rc);

/* The first number of a query; `first` and `second` are bound where they are not NULL. */
berlu_status store_count(store *s, size_t *out, const char *sql, const char *first, const char *second);
berlu_status store_commit(store *s, berlu_status status);            /* or rolls back where the status is a failure */
int store_has_table(store *s, const char *schema, const char *name); /* -1: cannot be asked; what follows then fails */
const char *store_now(char out[32]);
void store_settings_text(text *out, const study_settings *v); /* as the table `cell` has them */

berlu_status store_put_landscape(store *s, const study_entry *run); /* store_landscape.c */
berlu_status store_read_landscapes(store *s, store_contents *c);

#endif
