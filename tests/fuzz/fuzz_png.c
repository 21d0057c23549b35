/* fuzz_png.c - any bytes as a PNG. SPDX-License-Identifier: MIT
 *
 * The mutator works on chunks: it moves, repeats, cuts and changes them, bends the sizes in IHDR,
 * and can replace the image data by bytes of its own in a stored zlib stream, so that row filters
 * and interlacing are reached. Lengths and checksums (CRC of chunks, Adler of the stream) come out
 * right. */
#include "fuzz_image.h"
#include "mutate.h"

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return image_any_bytes(bytes, size, image_decode_png);
}

static uint32_t crc32_of(const uint8_t *bytes, size_t size, uint32_t crc)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

static void chunks_read(pieces *p, const uint8_t *bytes, size_t size)
{
    for (size_t at = sizeof signature; at + 12 <= size;) {
        size_t length = get_be32(bytes + at), there = size - at - 12;
        length = length < there ? length : there;
        piece_add(p, bytes + at + 4, 4, bytes + at + 8, length);
        at += 12 + length;
    }
}

static size_t chunks_write(const pieces *p, uint8_t *bytes, size_t most)
{
    size_t used = sizeof signature;
    memcpy(bytes, signature, sizeof signature);
    for (size_t i = 0; i < p->count && used + 12 + p->at[i].size <= most; i++) {
        const piece *c = &p->at[i];
        put_be32(bytes + used, (uint32_t)c->size);
        memcpy(bytes + used + 4, c->kind, 4);
        if (c->size)
            memcpy(bytes + used + 8, c->bytes, c->size);
        put_be32(bytes + used + 8 + c->size, crc32_of(bytes + used + 4, c->size + 4, 0));
        used += 12 + c->size;
    }
    return used;
}

/* Width, height, depth, colour type, compression, filter, interlacing. */
static void header_bend(pieces *p, dice *d)
{
    static const uint8_t types[] = {0, 2, 3, 4, 6}, depths[] = {1, 2, 4, 8, 16};
    piece *h = p->count ? &p->at[0] : NULL;
    if (!h || h->size < 13)
        return;
    switch (dice_next(d) % 5) {
    case 0:
        put_be32(h->bytes + 4 * (dice_next(d) % 2), (uint32_t)dice_number(d));
        break;
    case 1:
        put_be32(h->bytes + 4 * (dice_next(d) % 2), 1 + dice_next(d) % 40);
        break;
    case 2:
        h->bytes[8] = depths[dice_below(d, sizeof depths)];
        break;
    case 3:
        h->bytes[9] = types[dice_below(d, sizeof types)];
        break;
    default:
        h->bytes[12] ^= 1;
    }
}

/* One IDAT chunk with `raw` random bytes as a stored block; small filter numbers are likely. */
static void data_replace(pieces *p, dice *d)
{
    size_t raw = dice_next(d) % 4096;
    uint8_t stream[4096 + 16] = {0x78, 0x01, 1, (uint8_t)raw, (uint8_t)(raw >> 8), (uint8_t)~raw, (uint8_t)(~raw >> 8)};
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < raw; i++) {
        stream[7 + i] = dice_next(d) % 3 ? (uint8_t)(dice_next(d) % 5) : (uint8_t)dice_next(d);
        low = (low + stream[7 + i]) % 65521;
        high = (high + low) % 65521;
    }
    put_be32(stream + 7 + raw, high << 16 | low);
    size_t to = 0, first = p->count;
    for (size_t i = 0; i < p->count; i++)
        if (memcmp(p->at[i].kind, "IDAT", 4) != 0)
            p->at[to++] = p->at[i];
        else {
            first = i < first ? i : first;
            free(p->at[i].bytes);
        }
    p->count = to;
    piece_add(p, "IDAT", 4, stream, raw + 11);
    if (first < to && p->count == to + 1) { /* to where the first one was */
        piece data = p->at[to];
        memmove(&p->at[first + 1], &p->at[first], (to - first) * sizeof *p->at);
        p->at[first] = data;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    dice d = dice_from(seed);
    pieces p = {.count = 0};
    uint8_t kinds[][4] = {"PLTE", "tRNS", "gAMA", "sBIT", "iCCP", "bKGD", "hIST", "eXIf", "tEXt", "sPLT"};
    if (most < 64 || dice_next(&d) % 16 == 0)
        return LLVMFuzzerMutate(bytes, size, most);
    chunks_read(&p, bytes, size);
    switch (dice_next(&d) % 6) {
    case 0:
        header_bend(&p, &d);
        break;
    case 1:
        data_replace(&p, &d);
        break;
    case 2:
        piece_add(&p, kinds[dice_below(&d, sizeof kinds / sizeof *kinds)], 4, bytes, dice_below(&d, size % 800));
        if (p.count > 2) { /* in front of the image data */
            piece new = p.at[p.count - 1];
            memmove(&p.at[2], &p.at[1], (p.count - 2) * sizeof *p.at);
            p.at[1] = new;
        }
        break;
    default:
        pieces_mutate(&p, &d);
    }
    size = chunks_write(&p, bytes, most);
    pieces_free(&p);
    return size;
}
