#!/bin/sh
# missing.sh - a machine without the libraries gets all of their packages named at once. SPDX-License-Identifier: MIT
set -eu
work=$BERLU_BUILD_DIR/test-data/missing
rm -rf "$work"
mkdir -p "$work/none"
if PKG_CONFIG_LIBDIR=$work/none PKG_CONFIG_PATH= cmake -S "$BERLU_SOURCE_DIR" -B "$work/build" -DBERLU_CUDA=OFF \
    -DCMAKE_C_COMPILER="$CC" >"$work/log" 2>&1; then
    echo "configured without a library"
    exit 1
fi
said=$(tr -s ' \n' ' ' <"$work/log")
for package in libjansson-dev libyaml-dev libjpeg62-turbo-dev libspng-dev libarchive-dev zlib1g-dev libsqlite3-dev libcmocka-dev libmpfr-dev libgmp-dev; do
    case $said in
    *"libraries are missing: install "*"$package"*) ;;
    *) echo "$package is not named:" && cat "$work/log" && exit 1 ;;
    esac
    grep -q "^$package " "$BERLU_SOURCE_DIR/tools/packages.txt" || { echo "$package is not in tools/packages.txt"; exit 1; }
done
