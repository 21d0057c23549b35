#!/bin/sh
# golden_packs.sh OLD NEW - makes the packed sets of tests/golden. SPDX-License-Identifier: MIT
#
# OLD is the command of berlu 0.1.0 (git checkout of that version, make), NEW the one that writes the next format. The
# first file is made by OLD and never again; each further one is the first, packed again by the first command that wrote
# its format. Twelve images of 16 pixels, one of them broken.
set -eu
old=$1 new=$2 golden=$(cd "$(dirname "$0")/../tests/golden" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$old" data make synthetic --out set --images 10 --image-size 16 --seed 5 >/dev/null
echo broken >set/train/cross-level/000002.png
"$old" data pack set --out "$golden/pack_0.1.0.pack" --image-size 16 --max-bad 1
"$new" data pack "$golden/pack_0.1.0.pack" --out "$golden/pack_2.pack" --image-size 16 --max-bad 1
