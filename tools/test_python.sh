#!/bin/sh
# test_python.sh BUILD - the tests of the Python package that need torch and its neighbours. SPDX-License-Identifier: MIT
#
# Makes a virtual environment per torch version, BUILD/venv-torch-VERSION, and runs tests/python in it against BUILD/libberlu.so.
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
for version in ${TORCH:-2.10 newest}; do
    venv=$build/venv-torch-$version
    if [ ! -e "$venv/ready" ]; then
        echo "making $venv: 5 to 7 GB to download and unpack (torch $version, timm, transformers, onnx, onnxruntime, jax)"
        ${PYTHON:-python3} -m venv "$venv"
        [ "$version" = newest ] && torch=torch || torch="torch==$version.*"
        "$venv/bin/pip" install -q ${PIP_ARGS:-} "$torch" numpy ml_dtypes timm safetensors transformers onnx onnxscript onnxruntime jax mypy
        touch "$venv/ready"
    fi
    run_all "$venv"
done
