/* fuzz_packed.c - any bytes as a packed set; all of a set that opens is read.
 * SPDX-License-Identifier: MIT
 *
 * The mutator changes a field of the header, labels, names or pixels, fits the length to the header
 * and repairs the checksums, for both formats; without that no mutant would get past the first
 * comparison. */
#include "data/data.h"
#include "data/packed_format.h"
#include "mutate.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[128], text[160];
    data_source *s = NULL;
    image out = {0};
    scratch_write(scratch_path(path, "set.pack"), bytes, size);
    snprintf(text, sizeof text, "packed:%s", path);
    if (data_open(&s, text, NULL) == BERLU_OK) {
        const data_info *info = data_describe(s);
        for (int split = 0; split < DATA_SPLITS; split++)
            for (size_t i = 0; i < info->images[split]; i++)
                if ((size_t)data_label(s, (data_split)split, i) >= info->classes)
                    abort();
                else
                    (void)data_read(s, (data_split)split, i, NULL, &out);
    }
    image_free(&out);
    data_close(s);
    unlink(path);
    return 0;
}

static void header_bend(packed_header *h, dice *d)
{
    uint64_t *fields[] = {&h->side, &h->classes, &h->train, &h->test, &h->names};
    size_t which = dice_below(d, 6);
    if (which == 5)
        h->magic[7] = (char)('0' + dice_next(d) % 4);
    else
        *fields[which] = dice_next(d) % 2 ? dice_number(d) : dice_next(d) % 6;
}

/* The length that the header asks for, or 0 when it is more than `most`. */
static size_t length_wanted(const packed_header *h, size_t most)
{
    if (h->side > 256 || h->train > most || h->test > most || h->names > most)
        return 0;
    uint64_t all = h->train + h->test, words = h->magic[7] == '1' ? 1 : 2;
    uint64_t length = PACKED_HEADER + all * (h->side * h->side * 3 + words * 4) + h->names + 4;
    return length <= most ? (size_t)length : 0;
}

static void sums_repair(uint8_t *bytes, size_t size)
{
    packed_header h;
    memcpy(&h, bytes, sizeof h);
    int old = h.magic[7] == '1';
    size_t all = (size_t)(h.train + h.test), one = packed_image_bytes(&h), tail = PACKED_HEADER + all * one;
    for (size_t i = 0; !old && i < all; i++) {
        uint32_t sum = packed_image_sum(i, bytes + PACKED_HEADER + i * one, one);
        memcpy(bytes + tail + i * 4, &sum, 4);
    }
    uint32_t sum = crc32c(crc32c(0, bytes, old ? sizeof h : (size_t)PACKED_HEADER), bytes + tail, size - 4 - tail);
    memcpy(bytes + size - 4, &sum, 4);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    dice d = dice_from(seed);
    packed_header h;
    if (most < 2 * PACKED_HEADER || size < PACKED_HEADER + 4 || dice_next(&d) % 16 == 0)
        return LLVMFuzzerMutate(bytes, size, most);
    memcpy(&h, bytes, sizeof h);
    if (dice_next(&d) % 2) {
        header_bend(&h, &d);
        memcpy(bytes, &h, sizeof h);
    } else { /* what follows the images is most worth changing: labels and names */
        size_t from = size - 4 - dice_below(&d, size - PACKED_HEADER - 3);
        LLVMFuzzerMutate(bytes + from, size - 4 - from, size - 4 - from);
    }
    size_t wanted = length_wanted(&h, most);
    if (wanted == 0)
        return size;
    if (wanted > size)
        memset(bytes + size, (int)(dice_next(&d) % 3), wanted - size);
    sums_repair(bytes, wanted);
    return wanted;
}
