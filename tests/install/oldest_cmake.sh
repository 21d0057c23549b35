#!/bin/sh
# oldest_cmake.sh - the oldest CMake that is promised configures everything, reads the presets, and the library alone.
# SPDX-License-Identifier: MIT
#
# It comes from PyPI (make dev-setup puts it into build/cmake-3.22); without it the test is skipped.
set -eu
cmake=$BERLU_SOURCE_DIR/build/cmake-3.22/bin/cmake
[ -x "$cmake" ] || { echo "skipped: no $cmake (make dev-setup)"; exit 77; }
work=$BERLU_BUILD_DIR/test-data/oldest-cmake
rm -rf "$work"
"$cmake" --version | head -1 | grep -q ' 3\.22\.'
cd "$BERLU_SOURCE_DIR"
"$cmake" --list-presets >/dev/null
"$cmake" -S . -B "$work/all" -G Ninja -DBERLU_CUDA=OFF -DCMAKE_C_COMPILER="$CC" >/dev/null
"$cmake" -S . -B "$work/lib" -G "Unix Makefiles" -DBERLU_ENGINE=OFF -DBERLU_TESTS=OFF -DBERLU_CUDA=OFF -DCMAKE_C_COMPILER="$CC" >/dev/null
"$cmake" -S tests/install/sources -B "$work/sources" -DBERLU_SOURCES="$BERLU_SOURCE_DIR" -DCMAKE_C_COMPILER="$CC" >/dev/null
echo "configured by $("$cmake" --version | head -1)"
