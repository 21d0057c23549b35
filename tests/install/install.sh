#!/bin/sh
# install.sh - installs below a temporary DESTDIR and builds a program against it, through pkg-config and through
# find_package(berlu), shared and static. SPDX-License-Identifier: MIT
set -eu
work=$BERLU_BUILD_DIR/test-data/install
rm -rf "$work"
mkdir -p "$work"
flags=$BERLU_LINK
DESTDIR=$work/root cmake --install "$BERLU_BUILD_DIR" --prefix /opt/berlu --strip >"$work/log"
sort "$BERLU_BUILD_DIR/install_manifest.txt" >"$work/manifest"
prefix=$work/moved # the tree is found wherever it lies
mv "$work/root/opt/berlu" "$prefix"
libraries=$(dirname "$(find "$prefix" -name libberlu.so)")
export LD_LIBRARY_PATH="$libraries" PKG_CONFIG_PATH="$libraries/pkgconfig"

cd "$BERLU_SOURCE_DIR/tests/install"
cc=$CC
$cc $flags use.c -o "$work/use_pc" $(pkg-config --cflags --libs berlu)
$cc $flags use.c -o "$work/use_pc_static" $(pkg-config --cflags berlu) "$libraries/libberlu.a" $(pkg-config --static --libs-only-other berlu) -lm
cmake -S . -B "$work/cmake" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" >>"$work/log"
cmake --build "$work/cmake" >>"$work/log"
if cmake -S . -B "$work/none" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" -DCOMPONENT=none >>"$work/log" 2>&1; then
    echo "found a component that does not exist"
    exit 1
fi
for program in use_pc use_pc_static cmake/use_shared cmake/use_static; do
    echo "$program: $("$work/$program")"
done
readelf -d "$work/use_pc" | grep -q 'libberlu.so.0' # by its soname, not by its file name
"$prefix/bin/berlu" --version
# All that README.md refers to is there.
for document in $(grep -o '](\([^):#]*\))' "$BERLU_SOURCE_DIR/README.md" | tr -d ']()'); do
    [ -e "$prefix/share/doc/berlu/$document" ] || { echo "$document was not installed"; exit 1; }
done

for file in share/man/man1/berlu.1 share/man/man1/berlu-train.1 share/bash-completion/completions/berlu; do
    [ -e "$prefix/$file" ] || { echo "$file was not installed"; exit 1; }
done
# zsh looks for completion in one folder below /usr/local and in another below Debian's /usr: ours suits the prefix.
completion=$(cd "$prefix" && find share/zsh -name _berlu)
[ -n "$completion" ] || { echo "completion for zsh was not installed"; exit 1; }
configured=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$BERLU_BUILD_DIR/CMakeCache.txt")
case $configured in
/usr | /usr/local)
    if command -v zsh >/dev/null; then
        zsh -fc 'print -l $fpath' | grep -qxF "$configured/$(dirname "$completion")" || { echo "zsh does not look into $(dirname "$completion")"; exit 1; }
    else
        echo "zsh is not installed: where it looks for completion is not checked"
    fi
    ;;
esac

# What make uninstall removes is what was installed, and not a file of somebody else in the same folders.
mv "$prefix" "$work/root/opt/berlu"
touch "$work/root/opt/berlu/bin/other"
cp "$BERLU_BUILD_DIR/install_manifest.txt" "$work/install_manifest.txt"
DESTDIR=$work/root "$BERLU_SOURCE_DIR/tools/install.sh" --remove "$work"
left=$(find "$work/root" -type f -o -type l)
[ "$left" = "$work/root/opt/berlu/bin/other" ] || { echo "left after uninstall: $left"; exit 1; }
[ ! -e "$work/root/opt/berlu/include/berlu" ] || { echo "an empty include/berlu is left"; exit 1; }
[ ! -e "$work/root/opt/berlu/share/doc/berlu" ] || { echo "an empty share/doc/berlu is left"; exit 1; }

# A prefix with a blank is refused, not cut at the blank.
code=0
DESTDIR=$work/blank "$BERLU_SOURCE_DIR/tools/install.sh" "$BERLU_BUILD_DIR" /opt/a b >"$work/log" 2>&1 || code=$?
[ $code = 2 ] && [ ! -e "$work/blank" ] || { echo "a prefix with a blank: exit $code"; cat "$work/log"; exit 1; }
