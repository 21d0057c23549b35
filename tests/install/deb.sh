#!/bin/sh
# deb.sh - the Debian packages install, work and go away again in a bare Debian. SPDX-License-Identifier: MIT
#
# Needs root, debootstrap, dpkg-dev and a Debian mirror; without one of them it is skipped. DEB_PACKAGES names a folder
# of packages that were made already (make deb).
set -eu
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "only root can make a Debian to try the packages in"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-dev is not installed"
work=$BERLU_BUILD_DIR/test-data/deb
root=$work/root
mkdir -p "$work"
packages=${DEB_PACKAGES:-$work/packages}
if [ ! -d "$packages" ]; then
    cmake -S "$BERLU_SOURCE_DIR" -B "$work/build" -G Ninja -DCMAKE_INSTALL_PREFIX=/usr -DBERLU_TESTS=OFF -DBERLU_CUDA=OFF >"$work/log"
    cmake --build "$work/build" >>"$work/log"
    "$BERLU_SOURCE_DIR/tools/deb.sh" "$work/build" "$packages"
fi
discard() { # debootstrap leaves /proc mounted where it can
    for folder in proc sys dev/pts dev; do umount "$root/$folder" 2>/dev/null || :; done
    rm -rf --one-file-system "$root"
}
discard
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
debootstrap --variant=minbase "$release" "$root" >"$work/bootstrap.log" 2>&1 ||
    skip "no bare Debian could be made: $(tail -1 "$work/bootstrap.log")"
cp "$packages"/*.deb "$root/tmp/"
inside() { chroot "$root" /usr/bin/env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
inside sh -c 'cd /tmp && apt-get update -q && apt-get install -q -y --no-install-recommends ./*.deb' >"$work/apt.log" 2>&1 ||
    { tail -20 "$work/apt.log"; exit 1; }

inside berlu --version
value=$(inside berlu act eval berlu:alpha=0.1,eps=1 --x 0 --json)
echo "$value" | grep -q '"y": 0.225' || { echo "the command computes $value"; exit 1; }
inside sh -c 'ldconfig -p' | grep -q 'libberlu.so.0' || { echo "ldconfig does not know libberlu.so.0"; exit 1; }
for file in usr/include/berlu/berlu.h usr/share/man/man1/berlu.1.gz usr/share/bash-completion/completions/berlu; do
    [ -e "$root/$file" ] || { echo "$file is missing"; exit 1; }
done

inside apt-get purge -q -y berlu libberlu-dev libberlu0 >>"$work/apt.log" 2>&1
left=$(find "$root/usr" "$root/etc" "$root/var/lib" -name '*berlu*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
discard
