#!/usr/bin/env python3
"""Makes a folder of 60,000 JPEGs out of CIFAR-10, to try the folder reader on many files.

    python3 tools/cifar_to_jpeg.py cifar-10-batches-bin OUT [--side 32] [--quality 95]

OUT/train/CLASS/00001.jpg ... and OUT/val/CLASS/...; needs Pillow and numpy. SPDX-License-Identifier: MIT
"""
import argparse
import os

import numpy as np
from PIL import Image

CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()
FILES = [("data_batch_%d.bin" % i, "train") for i in range(1, 6)] + [("test_batch.bin", "val")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cifar")
    parser.add_argument("out")
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--quality", type=int, default=95)
    args = parser.parse_args()
    number = 0
    for split in ("train", "val"):
        for name in CLASSES:
            os.makedirs(os.path.join(args.out, split, name), exist_ok=True)
    for name, split in FILES:
        records = np.fromfile(os.path.join(args.cifar, name), np.uint8).reshape(-1, 3073)
        for record in records:
            image = Image.fromarray(record[1:].reshape(3, 32, 32).transpose(1, 2, 0))
            if args.side != 32:
                image = image.resize((args.side, args.side), Image.BICUBIC)
            number += 1
            image.save(os.path.join(args.out, split, CLASSES[record[0]], "%05d.jpg" % number), quality=args.quality)
    print("%d files in %s" % (number, args.out))


if __name__ == "__main__":
    main()
