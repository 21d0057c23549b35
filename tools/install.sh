#!/bin/sh
# install.sh BUILD PREFIX, or install.sh --remove BUILD... - installs a build, or removes it. SPDX-License-Identifier: MIT
#
# The prefix is told to CMake before installing, because the folder of libraries follows from it (under /usr that of the
# machine's type, as Debian wants). Programs and shared libraries are stripped. CMake lists what it installed in
# BUILD/install_manifest.txt, which is what --remove goes by. DESTDIR stands in front of every path.
set -eu
if [ "$1" = --remove ]; then
    shift
    for build in "$@"; do
        [ -e "$build/install_manifest.txt" ] || continue
        while read -r file || [ -n "$file" ]; do
            rm -f "${DESTDIR:-}$file"
            folder=$(dirname "${DESTDIR:-}$file")
            while case $folder in */berlu | */berlu/*) rmdir "$folder" 2>/dev/null ;; *) false ;; esac; do
                folder=$(dirname "$folder") # folders called berlu, and those inside, are ours alone: gone once empty
            done
        done <"$build/install_manifest.txt"
        rm -f "$build/install_manifest.txt"
        echo "berlu: removed"
    done
    exit 0
fi
if [ $# != 2 ]; then # make hands PREFIX over in words, so that the shell knows ~
    echo "berlu: PREFIX must be one path without blanks"
    exit 2
fi
build=$1 prefix=$2
cmake -DCMAKE_INSTALL_PREFIX="$prefix" "$build" >/dev/null
cmake --build "$build"
cmake --install "$build" --prefix "$prefix" --strip
[ -z "${DESTDIR:-}" ] || exit 0
libraries=$(dirname "$(grep '/libberlu\.so\.0$' "$build/install_manifest.txt" | head -n 1)")
case $libraries in
/usr/lib* | /lib* | /usr/local/lib*)
    if [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null 2>&1; then
        ldconfig
    else
        echo "berlu: run ldconfig as root, so that programs find libberlu.so.0 (or set LD_LIBRARY_PATH=$libraries)"
    fi
    ;;
*) # neither the linker nor pkg-config looks there by itself
    echo "berlu: in $prefix it is found with"
    echo "    export PATH=$prefix/bin:\$PATH LD_LIBRARY_PATH=$libraries PKG_CONFIG_PATH=$libraries/pkgconfig"
    ;;
esac
