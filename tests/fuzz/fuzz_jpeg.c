/* fuzz_jpeg.c - any bytes as a JPEG. SPDX-License-Identifier: MIT
 *
 * The mutator works on segments: it moves, repeats, cuts and changes them and bends the frame
 * header (sizes, components, sampling). Their lengths come out right. What follows the start of a
 * scan, up to the next marker, is one piece. */
#include "fuzz_image.h"
#include "mutate.h"

enum { SOI = 0xd8, EOI = 0xd9, SOS = 0xda, SCAN = 1 }; /* SCAN: our own kind for entropy-coded bytes */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return image_any_bytes(bytes, size, image_decode_jpeg);
}

static int stands_alone(uint8_t marker)
{
    return marker == SOI || marker == EOI || (marker >= 0xd0 && marker <= 0xd7);
}

static void segments_read(pieces *p, const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at + 2 <= size) {
        uint8_t kind = bytes[at + 1], scan = SCAN;
        if (bytes[at] != 0xff || stands_alone(kind)) {
            piece_add(p, &kind, bytes[at] == 0xff, NULL, 0);
            at += 2;
            continue;
        }
        size_t length = at + 4 <= size ? (size_t)bytes[at + 2] << 8 | bytes[at + 3] : 2;
        length = length < 2 ? 0 : length - 2;
        length = at + 4 + length <= size ? length : size - at - (at + 4 <= size ? 4 : 2);
        piece_add(p, &kind, 1, bytes + at + 4, length);
        at += 4 + length;
        size_t from = at;
        while (kind == SOS && at + 1 < size &&
               !(bytes[at] == 0xff && bytes[at + 1] != 0 && (bytes[at + 1] & 0xf8) != 0xd0))
            at++;
        if (kind == SOS && at > from && at <= size)
            piece_add(p, &scan, 1, bytes + from, at - from);
    }
}

static size_t segments_write(const pieces *p, uint8_t *bytes, size_t most)
{
    size_t used = 0;
    for (size_t i = 0; i < p->count; i++) {
        const piece *s = &p->at[i];
        size_t head = s->kind[0] == SCAN ? 0 : stands_alone(s->kind[0]) ? 2 : 4, body = head == 2 ? 0 : s->size;
        if (used + head + body > most || (head == 4 && body > 65533))
            break;
        if (head) {
            bytes[used] = 0xff;
            bytes[used + 1] = s->kind[0];
        }
        if (head == 4) {
            bytes[used + 2] = (uint8_t)((body + 2) >> 8);
            bytes[used + 3] = (uint8_t)(body + 2);
        }
        if (body)
            memcpy(bytes + used + head, s->bytes, body);
        used += head + body;
    }
    return used;
}

/* Precision, height, width, number of components, then id, sampling and table of each. */
static void frame_bend(pieces *p, dice *d)
{
    static const uint8_t frames[] = {0xc0, 0xc1, 0xc2, 0xc3, 0xc9, 0xca},
                         sampling[] = {0x11, 0x12, 0x21, 0x22, 0x41, 0x14};
    for (size_t i = 0; i < p->count; i++) {
        piece *s = &p->at[i];
        if (s->kind[0] < 0xc0 || s->kind[0] > 0xcf || s->kind[0] == 0xc4 || s->kind[0] == 0xcc || s->size < 9)
            continue;
        switch (dice_next(d) % 5) {
        case 0:
            s->kind[0] = frames[dice_below(d, sizeof frames)];
            break;
        case 1:
            s->bytes[1 + dice_next(d) % 4] = (uint8_t)dice_number(d);
            break;
        case 2:
            s->bytes[5] = (uint8_t)(dice_next(d) % 5);
            break;
        case 3:
            s->bytes[7 + 3 * dice_below(d, (s->size - 6) / 3)] = sampling[dice_below(d, sizeof sampling)];
            break;
        default:
            s->bytes[0] = dice_next(d) % 2 ? 8 : 12;
        }
        return;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    dice d = dice_from(seed);
    pieces p = {.count = 0};
    if (most < 64 || dice_next(&d) % 8 == 0)
        return LLVMFuzzerMutate(bytes, size, most);
    segments_read(&p, bytes, size);
    if (dice_next(&d) % 4 == 0)
        frame_bend(&p, &d);
    else
        pieces_mutate(&p, &d);
    size = segments_write(&p, bytes, most);
    pieces_free(&p);
    return size ? size : LLVMFuzzerMutate(bytes, 0, most);
}
