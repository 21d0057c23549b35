#!/usr/bin/env python3
"""Makes folders of JPEGs out of CIFAR-10: all 60,000 images, or mosaics of them in the size of photographs.

    python3 tools/cifar_to_jpeg.py cifar-10-batches-bin OUT [--side 32] [--quality 95]
    python3 tools/cifar_to_jpeg.py cifar-10-batches-bin OUT --side 64 --tiles 8x6 --quality 90 [--limit 512]

The first tries the folder reader on many files: OUT/train/CLASS/00001.jpg ... and OUT/val/CLASS/...; the second makes 512 x 384
pixels of about 55 kB, which is what ImageNet's files are like, for `berlu bench data`. A mosaic has the class of its first tile.
Needs Pillow and numpy. SPDX-License-Identifier: MIT
"""
import argparse
import os

import numpy as np
from PIL import Image

CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()
FILES = [("data_batch_%d.bin" % i, "train") for i in range(1, 6)] + [("test_batch.bin", "val")]


def image(record, side):
    image = Image.fromarray(record[1:].reshape(3, 32, 32).transpose(1, 2, 0))
    return image if side == 32 else image.resize((side, side), Image.BICUBIC)


def mosaic(records, columns, rows, side):
    image = Image.new("RGB", (columns * side, rows * side))
    for k, record in enumerate(records):
        image.paste(image(record, side), (k % columns * side, k // columns * side))
    return image


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cifar")
    parser.add_argument("out")
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--tiles", default="1x1", help="COLUMNSxROWS images in one file")
    parser.add_argument("--quality", type=int, default=95)
    parser.add_argument("--limit", type=int, default=0, help="files per split; 0: all")
    args = parser.parse_args()
    columns, rows = map(int, args.tiles.split("x"))
    count = {"train": 0, "val": 0}
    for split in count:
        for name in CLASSES:
            os.makedirs(os.path.join(args.out, split, name), exist_ok=True)
    for name, split in FILES:
        records = np.fromfile(os.path.join(args.cifar, name), np.uint8).reshape(-1, 3073)
        for first in range(0, len(records) - columns * rows + 1, columns * rows):
            if args.limit and count[split] >= args.limit:
                break
            group = records[first : first + columns * rows]
            count[split] += 1
            path = os.path.join(args.out, split, CLASSES[group[0][0]], "%05d.jpg" % sum(count.values()))
            mosaic(group, columns, rows, args.side).save(path, quality=args.quality)
    print("%d files in %s" % (sum(count.values()), args.out))


if __name__ == "__main__":
    main()
