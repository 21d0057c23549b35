#!/bin/sh
# test_python.sh BUILD - the tests of the Python package that need torch and its neighbours. SPDX-License-Identifier: MIT
#
# Makes a virtual environment per torch version, BUILD/venv-torch-VERSION, and runs tests/python in it against BUILD/libberlu.so.
# Where `make wheel` left a wheel and a newer Python is found, the wheel is tested with that too (BUILD/venv-torch-VERSION-3.N).
#   TORCH        versions to run with, "2.10 newest" unless told; each environment takes 5 to 7 GB
#   VENV         an environment that is there already; nothing is installed then
set -eu
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
export PYTHONPATH="$PWD/python" BERLU_LIBRARY="$build/libberlu.so.0" PYTHONDONTWRITEBYTECODE=1

run_all() { # ENVIRONMENT
    for test in tests/python/test_*.py; do
        echo "== $test"
        code=0
        "$1/bin/python" "$test" || code=$?
        [ $code -eq 0 ] || [ $code -eq 77 ] || exit $code
    done
    if "$1/bin/python" -m mypy --version >/dev/null 2>&1; then
        "$1/bin/python" -m mypy python/berlu
    else
        echo "no mypy in $1: the types are not checked"
    fi
}

if [ -n "${VENV:-}" ]; then
    run_all "$VENV"
    exit
fi

environment() { # ENVIRONMENT PYTHON TORCH PACKAGES
    [ ! -e "$1/ready" ] || return 0
    venv=$1 python=$2 torch="torch==$3.*"
    [ "$3" != newest ] || torch=torch
    shift 3
    echo "making $venv: 5 to 7 GB to download and unpack ($torch, $*)"
    $python -m venv "$venv"
    "$venv/bin/pip" install -q ${PIP_ARGS:-} "$torch" "$@"
    touch "$venv/ready"
}

# The newest Python up to 3.13 on PATH or of pyenv, where it is newer than PYTHON: its number and its program.
newer() {
    for minor in 13 12; do
        "${PYTHON:-python3}" -c "import sys; sys.exit(sys.version_info[1] >= $minor)" || return 0
        for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
            "$candidate" -c "import sys, venv; sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null &&
                echo "3.$minor $candidate" && return
        done
    done
}

set -- $(newer)
for version in ${TORCH:-2.10 newest}; do
    environment "$build/venv-torch-$version" "${PYTHON:-python3}" "$version" \
        numpy ml_dtypes timm safetensors transformers onnx onnxscript onnxruntime jax mypy
    run_all "$build/venv-torch-$version"
    if [ $# -eq 2 ] && [ -n "$(ls "$build"/wheel/berlu-*.whl 2>/dev/null)" ]; then
        environment "$build/venv-torch-$version-$1" "$2" "$version" numpy
        echo "== tests/python/test_wheel.py with Python $1"
        "$build/venv-torch-$version-$1/bin/python" tests/python/test_wheel.py
    else
        echo "no wheel (make wheel) or no newer Python: the wheel is not tested with another Python"
    fi
done
