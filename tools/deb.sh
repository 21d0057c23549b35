#!/bin/sh
# deb.sh BUILD OUT - makes the Debian packages libberlu0, libberlu-dev and berlu from a build. SPDX-License-Identifier: MIT
#
# BUILD is configured for /usr (make deb does). Everything is installed below a temporary folder and divided by where it
# lies. Dependencies are found by dpkg-shlibdeps; lintian, where it is installed, has the last word. Needs dpkg-dev.
# DEB_MAINTAINER is who answers for the packages.
set -eu
build=$1 out=$2
source=$(cd "$(dirname "$0")/.." && pwd)
command -v dpkg-shlibdeps >/dev/null || { echo "deb.sh: needs dpkg-shlibdeps (apt-get install dpkg-dev)" >&2; exit 1; }
version=$(sed -n 's/^project(berlu VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
arch=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
maintainer=${DEB_MAINTAINER:-berlu developers <developers@berlu.invalid>}
date=$(git -C "$source" log -1 --format=%cD 2>/dev/null || date -R)
umask 022
rm -rf "$out"
mkdir -p "$out/work/debian"
out=$(cd "$out" && pwd)
stage=$out/work/stage
DESTDIR=$stage cmake --install "$build" --prefix /usr --strip >"$out/work/log"

# copyright and changelog, as every package needs them.
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: berlu"
    echo
    echo "Files: *"
    sed -n 's/^Copyright (c) /Copyright: /p' "$source/LICENSE"
    echo "License: Expat"
    sed '1,/^Copyright/d; /./,$!d; s/^/ /; s/^ $/ ./' "$source/LICENSE"
} >"$out/work/copyright"
printf 'berlu (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$version" "$maintainer" "$date" |
    gzip -9n >"$out/work/changelog.gz"

move() { # PACKAGE PATH...: from the stage into the package
    root=$out/work/$1
    shift
    for path in "$@"; do
        mkdir -p "$root/$(dirname "$path")"
        mv "$stage/$path" "$root/$path"
    done
}
lib=usr/lib/$triplet
[ -e "$stage/$lib/libberlu.so" ] || { echo "deb.sh: $build is not configured for /usr (-DCMAKE_INSTALL_PREFIX=/usr)" >&2; exit 1; }
(cd "$stage" && ls -d $lib/libberlu.so.*) >"$out/work/runtime"
move libberlu0 $(cat "$out/work/runtime")
move libberlu-dev usr/include $lib
gzip -9n "$stage"/usr/share/man/man1/*.1
rm -f "$stage/usr/share/doc/berlu/LICENSE" # is in copyright
move berlu usr/bin usr/share
left=$(find "$stage" -type f)
[ -z "$left" ] || { echo "deb.sh: belongs to no package: $left" >&2; exit 1; }

# Shared libraries that each program or library needs, as packages. Ours is known by a local file.
echo "libberlu 0 libberlu0 (>= $version)" >"$out/work/debian/shlibs.local"
printf 'Source: berlu\nSection: math\nPriority: optional\nMaintainer: %s\n\nPackage: berlu\nArchitecture: any\n' "$maintainer" \
    >"$out/work/debian/control"
needs() { # FILE...
    (cd "$out/work" && dpkg-shlibdeps -O -l"$out/work/libberlu0/$lib" "$@" 2>>"$out/work/log" | sed -n 's/^shlibs:Depends=//p')
}

package() { # NAME SECTION DEPENDS "MORE FIELDS" SUMMARY TEXT
    root=$out/work/$1
    mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$1"
    cp "$out/work/copyright" "$root/usr/share/doc/$1/copyright"
    cp "$out/work/changelog.gz" "$root/usr/share/doc/$1/changelog.gz"
    chmod -R u+rwX,go+rX,go-w "$root"
    (cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$root/DEBIAN/md5sums"
    {
        printf 'Package: %s\nSource: berlu\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' "$1" "$version" "$arch" "$maintainer"
        printf 'Installed-Size: %s\nDepends: %s\nSection: %s\nPriority: optional\n' "$(du -sk "$root" | cut -f1)" "$3" "$2"
        [ -z "$4" ] || printf '%s\n' "$4"
        printf 'Description: %s\n %s\n' "$5" "$6"
    } >"$root/DEBIAN/control"
    [ "$1" = berlu ] || sed -i 's/^Source: berlu$/&/' "$root/DEBIAN/control"
    [ "$1" != berlu ] || sed -i '/^Source: berlu$/d' "$root/DEBIAN/control"
    dpkg-deb --root-owner-group --build "$root" "$out/$1_${version}_$arch.deb" >>"$out/work/log"
}

mkdir -p "$out/work/libberlu0/DEBIAN"
echo "libberlu 0 libberlu0 (>= $version)" >"$out/work/libberlu0/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$out/work/libberlu0/DEBIAN/triggers"
common="berlu evaluates smooth activation functions of neural networks, and makes
 functions with kinks smooth by Bernstein polynomials, with the same bits on
 every instruction set."
package libberlu0 libs "$(needs "$out/work/libberlu0/$lib"/libberlu.so.*)" "Multi-Arch: same" "smooth activation functions (shared library)" \
    "$common
 .
 This package has the shared library."
package libberlu-dev libdevel "libberlu0 (= $version)" "Multi-Arch: same" "smooth activation functions (development files)" \
    "$common
 .
 This package has headers, the static library and files for pkg-config and
 CMake."
package berlu math "$(needs "$out/work/berlu/usr/bin/berlu")" "" "smooth activation functions (command)" \
    "$common
 .
 This package has the command, which also trains vision networks with these
 functions, and reports what came out."

if command -v lintian >/dev/null; then
    lintian --fail-on error,warning "$out"/*.deb
else
    echo "lintian is not installed: the packages are not checked"
fi
rm -rf "$out/work"
ls -l "$out"/*.deb
