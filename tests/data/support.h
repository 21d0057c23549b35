/* support.h - small sets made for tests, and the real files where BERLU_TEST_DATA has them.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_DATA_SUPPORT_H
#define TESTS_DATA_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/file_in.h"
#include "base/text.h"
#include "data/cifar_layout.h"
#include "data/source.h"
#include "io/png.h"
#include "support/folder.h"

#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        berlu_status status_ = (call);                                                                                 \
        if (status_ != BERLU_OK)                                                                                       \
            fail_msg("%s: %s", #call, berlu_last_error());                                                             \
    } while (0)

/* The call failed with that status, and the message names `word`. */
#define assert_refused(call, expected, word)                                                                           \
    do {                                                                                                               \
        assert_int_equal((call), expected);                                                                            \
        if (!strstr(berlu_last_error(), word))                                                                         \
            fail_msg("'%s' does not name '%s'", berlu_last_error(), word);                                             \
    } while (0)

/* A path below BERLU_TEST_DATA, or NULL without real files; the test is then skipped. */
static inline const char *real_data(char out[FOLDER_PATH], const char *name)
{
    const char *root = getenv("BERLU_TEST_DATA");
    if (!root)
        return NULL;
    folder_path(out, root, name);
    if (file_exists(out) || folder_exists(out))
        return out;
    print_message("skipped: %s is not there\n", out);
    return NULL;
}

/* A CIFAR-like set of a few records: every pixel is a function of its position, so that a wrong
 * order is detected. */
static inline uint8_t tiny_pixel(size_t record, int channel, int y, int x)
{
    return (uint8_t)(record * 7 + (size_t)channel * 64 + (size_t)y * 5 + (size_t)x * 3);
}

static inline void tiny_records(text *out, const cifar_layout *l, size_t count, size_t first)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char record[2 + 3 * CIFAR_PLANE];
        size_t fine = i % l->classes, at = 0;
        if (l->label_bytes == 2)
            record[at++] = l->coarse_of[fine];
        record[at++] = (unsigned char)fine;
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < CIFAR_SIDE; y++)
                for (int x = 0; x < CIFAR_SIDE; x++)
                    record[at++] = tiny_pixel(first + i, c, y, x);
        text_bytes(out, record, at);
    }
}

static inline cifar_layout tiny_layout(const cifar_layout *full, size_t records)
{
    cifar_layout l = *full;
    for (size_t f = 0; f < l.files; f++)
        l.records[f] = records;
    return l;
}

static inline void tiny_write(const cifar_layout *l, const char *folder)
{
    char path[FOLDER_PATH];
    for (size_t f = 0, first = 0; f < l->files; f++) {
        text bytes = {0};
        tiny_records(&bytes, l, l->records[f], first);
        first += f + 1 < l->files ? l->records[f] : 0;
        assert_ok(file_write_atomic(folder_path(path, folder, l->file_names[f]), bytes.data, bytes.length));
        text_free(&bytes);
    }
}

/* FOLDER/SPLIT/CLASS/N.png: `count` images of width x height, one colour each. */
static inline void png_set(const char *folder, const char *split, const char *name, int count, int width, int height)
{
    char path[2 * FOLDER_PATH];
    snprintf(path, sizeof path, "%s/%s/%s", folder, split, name);
    assert_ok(folder_make(path));
    uint8_t *rgb = malloc((size_t)width * (size_t)height * 3);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < width * height * 3; k++)
            rgb[k] = (uint8_t)(k % 3 * 50 + i * 10 + name[0]);
        snprintf(path, sizeof path, "%s/%s/%s/%d.png", folder, split, name, i);
        assert_ok(png_write(path, rgb, width, height));
    }
    free(rgb);
}

#endif
