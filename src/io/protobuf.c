/* protobuf.c - the four wire types of protocol buffers. SPDX-License-Identifier: MIT
 *
 * A field is its key and its value: a varint of 7 bits a byte, 4 or 8 bytes in little-endian order,
 * or a length and bytes. Each pb_ function appends one field; pb_length() only begins one. */
#include "io/protobuf.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

void le32_put(unsigned char out[4], uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

void le64_put(unsigned char out[8], uint64_t value)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

static void varint_put(text *out, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    } while (value >>= 7);
    text_bytes(out, bytes, count);
}

static void key_put(text *out, int field, int wire)
{
    varint_put(out, (uint64_t)field << 3 | (uint64_t)wire);
}

static void double_put(text *out, double value)
{
    uint64_t bits;
    unsigned char bytes[8];
    memcpy(&bits, &value, sizeof bits);
    le64_put(bytes, bits);
    text_bytes(out, bytes, sizeof bytes);
}

void pb_varint(text *out, int field, uint64_t value)
{
    key_put(out, field, WIRE_VARINT);
    varint_put(out, value);
}

void pb_double(text *out, int field, double value)
{
    key_put(out, field, WIRE_FIXED64);
    double_put(out, value);
}

void pb_float(text *out, int field, float value)
{
    uint32_t bits;
    unsigned char bytes[4];
    memcpy(&bits, &value, sizeof bits);
    le32_put(bytes, bits);
    key_put(out, field, WIRE_FIXED32);
    text_bytes(out, bytes, sizeof bytes);
}

void pb_length(text *out, int field, size_t count)
{
    key_put(out, field, WIRE_BYTES);
    varint_put(out, count);
}

void pb_bytes(text *out, int field, const void *bytes, size_t count)
{
    pb_length(out, field, count);
    text_bytes(out, bytes, count);
}

void pb_string(text *out, int field, const char *string)
{
    pb_bytes(out, field, string, strlen(string));
}

void pb_message(text *out, int field, text *message)
{
    out->failed |= message->failed;
    pb_bytes(out, field, message->data, message->length);
    text_free(message);
}

void pb_doubles(text *out, int field, const double *values, size_t count)
{
    key_put(out, field, WIRE_BYTES);
    varint_put(out, count * 8);
    for (size_t i = 0; i < count; i++)
        double_put(out, values[i]);
}
