#!/bin/sh
# wheel.sh BUILD - builds the wheel of the Python package into BUILD/wheel and checks it. SPDX-License-Identifier: MIT
#
# The checks: under 1 MB, the expected files and no other library, the library of OpenMP under its own name, and a fresh virtual
# environment without numpy and torch in which it imports and computes. Built twice from the same commit the bytes are the same:
# SOURCE_DATE_EPOCH is the commit's date. PIP_ARGS goes to pip (for instance --no-index --find-links FOLDER).
set -eu
cd "$(dirname "$0")/.."
build=$(mkdir -p "$1" && cd "$1" && pwd)
venv=$build/venv-wheel
python=${PYTHON:-python3}

[ -x "$venv/bin/pip" ] || $python -m venv "$venv"
"$venv/bin/pip" install -q ${PIP_ARGS:-} scikit-build-core
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 1735689600)
export SOURCE_DATE_EPOCH
rm -rf "$build/wheel"
"$venv/bin/pip" wheel . -q --no-deps --no-build-isolation -w "$build/wheel"
wheel=$(ls "$build"/wheel/berlu-*.whl)

size=$(stat -c %s "$wheel")
[ "$size" -lt 1000000 ] || { echo "$wheel has $size bytes, more than 1 MB" >&2; exit 1; }
libraries=$(unzip -Z1 "$wheel" | grep '\.so' | sort | tr '\n' ' ')
expected="berlu/lib/fallback/libgomp.so.1 berlu/lib/libberlu.so.0 berlu/lib/libberlu_torch.so "
[ "$libraries" = "$expected" ] || { echo "the wheel holds $libraries" >&2; exit 1; }

clean=$build/venv-clean
rm -rf "$clean"
$python -m venv "$clean"
"$clean/bin/pip" install -q --no-index --no-deps "$wheel"
cd "$build" # not the source tree, whose package would be found first
env -u PYTHONPATH -u BERLU_LIBRARY "$clean/bin/python" -c '
import berlu
f = berlu.act("berlu:eps=0.1")
assert abs(f.value(0) - 0.99 * 0.1 / 4) < 1e-9 and "berlu/lib" in berlu.library_path, berlu.library_path
print(f"{f!r} from {berlu.library_path}")'
echo "$wheel: $size bytes"
