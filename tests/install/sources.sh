#!/bin/sh
# sources.sh configure|build - libberlu alone: by itself with make instead of ninja and nothing but a compiler and CMake on the
# path, and inside another project by add_subdirectory and FetchContent. SPDX-License-Identifier: MIT
set -eu
verb=$1 work=$BERLU_BUILD_DIR/test-data/sources-$1
rm -rf "$work"
mkdir -p "$work/bin"
for program in cmake make ld ar ranlib objcopy nm strip readelf addr2line as uname; do
    ln -s "$(command -v $program)" "$work/bin/$program"
done
flags="-G 'Unix Makefiles' -DCMAKE_C_COMPILER=$(command -v "$CC")"
launcher=$(command -v ccache || :)
[ -z "$launcher" ] || flags="$flags -DCMAKE_C_COMPILER_LAUNCHER=$launcher"
if "$BERLU_BUILD_DIR/berlu" --version >/dev/null 2>&1 && [ -n "${BERLU_LINK##-fopenmp*}" ]; then
    echo "skipped: a sanitizer's flags are not for other projects" && exit 77
fi

# configure FOLDER ARGUMENT... - with a path that has no ninja, no pkg-config, no python.
configure() {
    folder=$1 && shift
    eval "PATH='$work/bin' cmake -B '$work/$folder' $flags" '"$@"' >"$work/$folder.log" 2>&1 || { tail -20 "$work/$folder.log"; exit 1; }
}
configure alone -S "$BERLU_SOURCE_DIR" -DBERLU_ENGINE=OFF -DBERLU_TESTS=OFF -DBERLU_CUDA=OFF
configure subdirectory -S "$BERLU_SOURCE_DIR/tests/install/sources" -DBERLU_SOURCES="$BERLU_SOURCE_DIR"
configure fetch -S "$BERLU_SOURCE_DIR/tests/install/sources" -DBERLU_SOURCES="$BERLU_SOURCE_DIR" -DHOW=fetch \
    -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_C_FLAGS="-O2 -ffast-math" # what does not suit libberlu
echo "three ways configured without ninja and pkg-config"
[ "$verb" = build ] || exit 0
for folder in alone fetch; do
    cmake --build "$work/$folder" -j "$(nproc)" >"$work/$folder.log" 2>&1 || { tail -20 "$work/$folder.log"; exit 1; }
done
[ -e "$work/alone/libberlu.so.0" ]
[ -e "$work/alone/libberlu.a" ]
[ ! -e "$work/alone/libberlu_engine.a" ]
DESTDIR=$work/root cmake --install "$work/alone" --prefix /usr >/dev/null
"$work/fetch/use_shared"
"$work/fetch/use_static"
"$BERLU_SOURCE_DIR/tools/check_symbols.py" "$work/fetch/_deps/berlu-build" # also where its project asks for link-time optimisation
