/* fuzz_safetensors.c - any bytes as a file of tensors: taken whole or refused, never more.
 * SPDX-License-Identifier: MIT
 *
 * Every value of a file that was taken is read, so that a range the checks let through becomes a
 * sanitizer report. The mutator changes the header as JSON (numbers, types, names, keys, entries)
 * or as text, and writes a length that fits; half of the time the tensors are laid out anew, so
 * that what follows the checks is reached as well. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/safetensors.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    safetensors *file = NULL;
    if (safetensors_parse(&file, bytes, size, "fuzz") != BERLU_OK)
        return 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const st_tensor *t = safetensors_at(file, i);
        double *values = malloc(t->count * sizeof *values + 8);
        if (values && st_read_f64(t, values) != BERLU_OK)
            (void)st_read_i64(t, (int64_t *)values);
        free(values);
        if (safetensors_find(file, t->name) != t)
            abort();
    }
    safetensors_close(file);
    return 0;
}

/* ---- the mutator ----------------------------------------------------------------------------- */

enum { HEADER_MAX = 1 << 15 };

static json_t *any_entry(json_t *root, dice *d, const char **name)
{
    size_t left = dice_below(d, json_object_size(root));
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        *name = key;
        if (left-- == 0)
            return value;
    }
    return NULL;
}

static json_t *any_dtype(dice *d)
{
    return dice_next(d) % 16 ? json_string(st_dtype_name((st_dtype)dice_below(d, ST_DTYPE_COUNT))) : json_string("F8");
}

static json_t *any_number(dice *d)
{
    return dice_next(d) % 16 ? json_integer((json_int_t)dice_number(d)) : json_real(dice_next(d));
}

static void entry_mutate(json_t *entry, dice *d)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets", "extra"};
    json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
    switch (dice_next(d) % 8) {
    case 0:
        json_object_set_new(entry, "dtype", any_dtype(d));
        break;
    case 1:
        json_array_append_new(shape, json_integer((json_int_t)dice_below(d, 5)));
        break;
    case 2:
        json_array_remove(shape, dice_below(d, json_array_size(shape)));
        break;
    case 3:
        json_array_set_new(shape, dice_below(d, json_array_size(shape)), any_number(d));
        break;
    case 4:
        json_array_set_new(shape, dice_below(d, json_array_size(shape)), json_integer((json_int_t)dice_below(d, 9)));
        break;
    case 5:
        json_array_set_new(offsets, dice_below(d, json_array_size(offsets)), any_number(d));
        break;
    case 6:
        json_object_del(entry, keys[dice_below(d, 4)]);
        break;
    default:
        json_object_set_new(entry, keys[dice_below(d, 4)], any_number(d));
    }
}

static void root_mutate(json_t *root, dice *d)
{
    static const char *const names[] = {"a", "b", "blocks.0.mlp.fc1.weight", "\xc3\xa9", " ", "__metadata__", "a.b"};
    const char *name = "a";
    json_t *entry = any_entry(root, d, &name);
    const char *fresh = names[dice_below(d, sizeof names / sizeof *names)];
    switch (dice_next(d) % 6) {
    case 0:
        json_object_set_new(root, fresh, entry ? json_deep_copy(entry) : json_object());
        break;
    case 1:
        json_object_del(root, name);
        break;
    case 2:
        json_object_set_new(root, "__metadata__", json_pack("{s:s}", fresh, dice_next(d) % 2 ? "pt" : ""));
        break;
    case 3:
        json_object_set_new(
            root, fresh, json_pack("{s:o, s:[i], s:[i, i]}", "dtype", any_dtype(d), "shape", 2, "data_offsets", 0, 8));
        break;
    default:
        entry_mutate(entry, d);
    }
}

static size_t entry_bytes(const json_t *entry)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *shape = json_object_get(entry, "shape");
    size_t bytes = 0;
    for (size_t i = 0; dtype && i < ST_DTYPE_COUNT; i++)
        bytes = strcmp(dtype, st_dtype_name((st_dtype)i)) == 0 ? st_dtype_size((st_dtype)i) : bytes;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        json_int_t n = json_integer_value(json_array_get(shape, i));
        bytes = n < 0 || n > 1000 || bytes > 100000 ? 0 : bytes * (size_t)n;
    }
    return bytes;
}

/* Offsets that tile the data; returns its size. */
static size_t tensors_lay_out(json_t *root)
{
    size_t at = 0;
    const char *key;
    json_t *entry;
    json_object_foreach(root, key, entry)
    {
        if (strcmp(key, "__metadata__") == 0 || !json_is_object(entry))
            continue;
        size_t bytes = entry_bytes(entry);
        json_object_set_new(entry, "data_offsets", json_pack("[I, I]", (json_int_t)at, (json_int_t)(at + bytes)));
        at += bytes;
    }
    return at;
}

/* Puts header and data together; `bytes` holds the old file, whose data begins at `from`. */
static size_t file_join(uint8_t *bytes, size_t from, size_t size, size_t most, const char *header, size_t length,
                        size_t data)
{
    size_t have = size - from;
    if (8 + length + data > most)
        return 0;
    memmove(bytes + 8 + length, bytes + from, have < data ? have : data);
    if (data > have)
        memset(bytes + 8 + length + have, 0x3f, data - have);
    memcpy(bytes + 8, header, length);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)length >> (8 * i));
    return 8 + length + data;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    dice d = dice_from(seed);
    size_t length = 0, made = 0;
    for (int i = 0; size >= 8 && i < 4; i++)
        length |= (size_t)bytes[i] << (8 * i);
    if (size < 10 || length > size - 8 || length > HEADER_MAX || dice_next(&d) % 16 == 0)
        return LLVMFuzzerMutate(bytes, size, most);
    if (dice_next(&d) % 4 == 0) { /* as text */
        uint8_t text[HEADER_MAX + 64];
        memcpy(text, bytes + 8, length);
        size_t mutated = LLVMFuzzerMutate(text, length, length + 64);
        made = file_join(bytes, 8 + length, size, most, (const char *)text, mutated, size - 8 - length);
        return made ? made : size;
    }
    json_t *root = json_loadb((const char *)bytes + 8, length, 0, NULL);
    if (json_is_object(root)) {
        root_mutate(root, &d);
        size_t data = dice_next(&d) % 2 ? tensors_lay_out(root) : size - 8 - length;
        char *header = json_dumps(root, JSON_COMPACT);
        if (header)
            made = file_join(bytes, 8 + length, size, most, header, strlen(header), data);
        free(header);
    }
    json_decref(root);
    return made ? made : LLVMFuzzerMutate(bytes, size, most);
}
