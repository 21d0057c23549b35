/* protobuf.h - writes protocol-buffer messages into a text. SPDX-License-Identifier: MIT
 *
 * A message is a sequence of fields: a key (number << 3 | wire type) and a value. Four wire types
 * are enough for TensorBoard's events and for ONNX. A message inside a message is written into a
 * text of its own first, because its length precedes it. A failed allocation is sticky in the text
 * (base/text.h); check once at the end. */
#ifndef IO_PROTOBUF_H
#define IO_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

void pb_varint(text *out, int field, uint64_t value); /* int32, int64 (two's complement), bool, enum */
void pb_double(text *out, int field, double value);
void pb_float(text *out, int field, float value);
void pb_bytes(text *out, int field, const void *bytes, size_t count); /* also a nested message that is already bytes */
void pb_length(text *out, int field, size_t count); /* their key and length alone: the bytes follow elsewhere */
void pb_string(text *out, int field, const char *string);
void pb_message(text *out, int field, text *message); /* appends and frees it; its failure becomes out's */
void pb_doubles(text *out, int field, const double *values, size_t count); /* packed */

/* Fixed little-endian words, as protobuf and record formats need them. */
void le32_put(unsigned char out[4], uint32_t value);
void le64_put(unsigned char out[8], uint64_t value);

#endif
