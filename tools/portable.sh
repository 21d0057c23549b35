#!/bin/sh
# portable.sh BUILD FOLDER - makes a folder that runs on another Debian-like machine. SPDX-License-Identifier: MIT
#
# The command finds its libraries relative to itself ($ORIGIN/lib, set by the build with BERLU_PORTABLE). Copied are all
# shared libraries it needs but those of the C library itself, which belong to the machine and its kernel.
set -eu
build=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder/lib"
strip -o "$folder/berlu" "$build/berlu"
ldd "$build/berlu" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | while read -r library; do
    case ${library##*/} in
    libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux*) ;;
    *) cp -L "$library" "$folder/lib/" ;;
    esac
done
cp LICENSE README.md "$folder/"
"$folder/berlu" doctor >/dev/null
echo "$folder: $(du -sh "$folder" | cut -f1), needs glibc $(objdump -T "$folder/berlu" "$folder"/lib/* |
    sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -1) or newer"
