#!/bin/sh
# parity.sh BUILD [parity.py's options] - compares berlu with timm, in a virtual environment of its own. SPDX-License-Identifier: MIT
#
# The environment is made once, in BUILD/venv; PARITY_PYTHON names another Python that has torch, timm and safetensors.
set -eu
build=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")"
python=${PARITY_PYTHON:-$build/venv/bin/python}
if ! "$python" -c 'import safetensors, timm, torch' 2>/dev/null; then
    echo "installing torch and timm into $build/venv (once)" >&2
    python3 -m venv "$build/venv"
    "$build/venv/bin/pip" install --quiet torch timm safetensors numpy
    python=$build/venv/bin/python
fi
PYTHONDONTWRITEBYTECODE=1 exec "$python" parity.py "$build/berlu" "$@"
