/* settings_hash.h - the canonical text of all settings that change a run's results, and its hash.
 * SPDX-License-Identifier: MIT
 *
 * The text has a line KEY=VALUE per setting, in the order of the table, resolved: no zero that
 * means a default, and no setting without effect. Paths are replaced by the hash of their content.
 * So equal texts mean equal runs on any machine; the version, the machine, threads and folders are
 * not part of it. Every checkpoint holds the text and the hash, run.json the hash; studies identify
 * runs by the hash. */
#ifndef TRAIN_SETTINGS_HASH_H
#define TRAIN_SETTINGS_HASH_H

#include "data/sha256.h"
#include "train/recipe.h"

enum { SETTINGS_HASH = SHA256_TEXT };

/* `leave_out` marks rows without effect. `data` and `teacher` are hashes of content; teacher may
 * be "". */
void settings_text(const train_settings *s, const unsigned char leave_out[RECIPE_KEYS_MAX], const char *data,
                   const char *teacher, text *out);
const char *settings_hash(char out[SETTINGS_HASH], const char *canonical);

/* Appends to `out` the keys whose lines differ, "lr (0.002, not 0.003)"; returns their number.
 * Lines that another device changes (setting_moves()) are ignored. */
size_t settings_text_differences(const char *here, const char *there, text *out);

/* The same for resolved settings against the canonical text of a checkpoint: only keys of the text
 * that are settings, and not the number of epochs, on which no evaluation depends. */
size_t settings_against_text(const train_settings *s, const char *canonical, text *out);

#endif
