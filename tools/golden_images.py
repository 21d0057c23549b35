#!/usr/bin/env python3
"""Makes tests/golden/images: small images in every format berlu reads, and what Pillow makes of them.

    python3 tools/golden_images.py            (needs Pillow and numpy: Debian's python3-pil, python3-numpy)

golden.csv has a row per case: name, width, height and the CRC32C of the RGB bytes after the operation. The operations are
called as timm's auto_augment.py and torchvision's ColorJitter call them. Written with Pillow 9.4.0 (libjpeg-turbo 2.1.5).
SPDX-License-Identifier: MIT
"""
import io
import os
import struct
import zlib

import numpy as np
import PIL
from PIL import Image, ImageEnhance, ImageOps

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden", "images")
FILL = (124, 116, 104)  # rint(255 * ImageNet's mean), what comes in from outside
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
ROWS = []


def crc32c(data):
    table = crc32c.table
    if not table:
        for n in range(256):
            for _ in range(8):
                n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
            table.append(n)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


crc32c.table = []


def row(name, image):
    image = image.convert("RGB")
    ROWS.append((name, image.width, image.height, crc32c(image.tobytes())))


def image(width, height, seed):
    """Smooth colours, edges and noise: every value occurs, and neighbours differ."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / 5 + c) * np.cos(y / (4 + c)) for c in range(3)]
    a = np.stack([127 + 90 * w for w in waves], -1)
    a[height // 4 : height // 2, width // 3 : width // 2] = (255, 0, 40)
    a[height // 2 :, : width // 4] = (0, 0, 0)
    a += rng.normal(0, 14, a.shape)
    return Image.fromarray(np.clip(a, 0, 255).astype(np.uint8))


def write(name, data):
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data)


def save(name, image, **how):
    buffer = io.BytesIO()
    image.save(buffer, **how)
    write(name, buffer.getvalue())
    row("decode " + name, Image.open(io.BytesIO(buffer.getvalue())))


def png_bytes(samples, depth, colour, interlaced=False, palette=None):
    """A PNG by hand, for the forms Pillow does not write. samples: height x width x channels."""
    height, width, channels = samples.shape

    def rows(part):
        out = b""
        for line in part:
            bits = "".join(format(int(v), "0%db" % depth) for v in line.reshape(-1))
            bits += "0" * (-len(bits) % 8)
            out += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
        return out

    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        parts = [samples[y::dy, x::dx] for y, x, dy, dx in passes]
        data = b"".join(rows(p) for p in parts if p.size)
    else:
        data = rows(samples)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced)))
    if palette is not None:
        out += chunk(b"PLTE", bytes(palette))
    return out + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")


def formats():
    base = image(37, 29, 1)
    grey = base.convert("L")
    rgba = base.copy()
    rgba.putalpha(grey)
    for name, how in {
        "rgb420.jpg": dict(quality=90, subsampling=2),
        "rgb422.jpg": dict(quality=80, subsampling=1),
        "rgb444.jpg": dict(quality=95, subsampling=0),
        "progressive.jpg": dict(quality=85, progressive=True),
    }.items():
        save(name, base, format="JPEG", **how)
    save("large420.jpg", image(180, 140, 2), format="JPEG", quality=60, subsampling=2)  # many blocks: parts of it skip some
    save("grey.jpg", grey, format="JPEG", quality=90)
    save("cmyk.jpg", base.convert("CMYK"), format="JPEG", quality=90)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter; ignored by torchvision, timm and us
    save("exif6.jpg", base, format="JPEG", quality=90, exif=exif)
    save("rgb8.png", base, format="PNG")
    save("rgba8.png", rgba, format="PNG")
    save("la8.png", rgba.convert("LA"), format="PNG")
    save("grey8.png", grey, format="PNG")
    save("grey1.png", grey.convert("1"), format="PNG")
    save("palette8.png", base.quantize(200), format="PNG")
    save("palette4.png", base.quantize(16), format="PNG", bits=4)
    rng = np.random.default_rng(5)
    for name, channels, depth, colour, interlaced in [
        ("grey2.png", 1, 2, 0, False), ("grey4.png", 1, 4, 0, False), ("rgb16.png", 3, 16, 2, False), ("rgba16.png", 4, 16, 6, False),
        ("rgb8_interlaced.png", 3, 8, 2, True),
    ]:  # fmt: skip
        samples = rng.integers(0, 1 << depth, (11, 13, channels))
        write(name, png_bytes(samples, depth, colour, interlaced))
        row("decode " + name, Image.open(os.path.join(OUT, name)))
    # Pillow clips 16-bit grey at 255; berlu keeps the high byte, so the expectation is made here.
    samples = rng.integers(0, 1 << 16, (11, 13, 1))
    write("grey16.png", png_bytes(samples, 16, 0))
    row("decode grey16.png", Image.fromarray((samples[:, :, 0] >> 8).astype(np.uint8)))


def resizes(image):
    for name, how in FILTERS.items():
        for size in [(32, 32), (224, 224), (7, 5), (61, 30), (100, 47), (1, 1), (200, 3)]:
            row("resize %s %dx%d" % (name, *size), image.resize(size, how))
        row("crop-resize %s" % name, image.crop((5, 7, 5 + 40, 7 + 31)).resize((48, 48), how))


def randaugment(image):
    """The argument of each operation at a level, as timm's LEVEL_TO_ARG has it."""
    w, h = image.size
    enhance = {"Color": ImageEnhance.Color, "Contrast": ImageEnhance.Contrast, "Brightness": ImageEnhance.Brightness,
               "Sharpness": ImageEnhance.Sharpness}  # fmt: skip
    for level in (0.0, 4.3, 7.5, 9.0, 9.49, 10.0):
        part = level / 10
        row("op PosterizeIncreasing %g +" % level, ImageOps.posterize(image, 4 - int(part * 4)))
        row("op SolarizeIncreasing %g +" % level, ImageOps.solarize(image, 256 - min(256, int(part * 256))))
        add = min(128, int(part * 110))
        lut = [min(255, v + add) if v < 128 else v for v in range(256)]
        row("op SolarizeAdd %g +" % level, image.point(lut * 3))
        row("op AutoContrast %g +" % level, ImageOps.autocontrast(image))
        row("op Equalize %g +" % level, ImageOps.equalize(image))
        row("op Invert %g +" % level, ImageOps.invert(image))
        for sign, mark in ((1, "+"), (-1, "-")):
            for name, kind in enhance.items():
                row("op %sIncreasing %g %s" % (name, level, mark), kind(image).enhance(max(0.1, 1 + sign * part * 0.9)))
            for filter_name, how in FILTERS.items():
                def transform(*m):
                    return image.transform(image.size, Image.AFFINE, m, resample=how, fillcolor=FILL)

                shear, move = sign * part * 0.3, sign * part * 0.45
                for name, made in {
                    "Rotate": image.rotate(sign * part * 30, resample=how, fillcolor=FILL),
                    "ShearX": transform(1, shear, 0, 0, 1, 0),
                    "ShearY": transform(1, 0, 0, shear, 1, 0),
                    "TranslateXRel": transform(1, 0, move * w, 0, 1, 0),
                    "TranslateYRel": transform(1, 0, 0, 0, 1, move * h),
                }.items():
                    row("op %s %g %s %s" % (name, level, mark, filter_name), made)


def jitter(image):
    for factor in (0.0, 0.6, 1.0, 1.4, 2.7):
        row("brightness %g" % factor, ImageEnhance.Brightness(image).enhance(factor))
        row("contrast %g" % factor, ImageEnhance.Contrast(image).enhance(factor))
        row("saturation %g" % factor, ImageEnhance.Color(image).enhance(factor))
    for turn in (-0.5, -0.1, 0.03, 0.37, 0.5):
        h, s, v = image.convert("HSV").split()
        shifted = (np.array(h, dtype=np.uint8).astype(np.int32) + int(turn * 255)) % 256
        row("hue %g" % turn, Image.merge("HSV", (Image.fromarray(shifted.astype(np.uint8), "L"), s, v)))


def main():
    os.makedirs(OUT, exist_ok=True)
    base = image(61, 47, 0)
    save("input.png", base, format="PNG")
    flat = Image.new("RGB", (9, 9), (7, 200, 31))
    row("flat autocontrast", ImageOps.autocontrast(flat))
    row("flat equalize", ImageOps.equalize(flat))
    formats()
    resizes(base)
    randaugment(base)
    jitter(base)
    with open(os.path.join(OUT, "golden.csv"), "w", encoding="ascii") as f:
        f.write("name,width,height,crc32c\n")
        f.writelines("%s,%d,%d,%08x\n" % r for r in ROWS)
    print("%d cases with Pillow %s" % (len(ROWS), PIL.__version__))


if __name__ == "__main__":
    main()
