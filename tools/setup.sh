#!/bin/sh
# setup.sh [install|dev] [NAME...] - sees that the packages of packages.txt are there. SPDX-License-Identifier: MIT
#
# Without a verb (in front of every configure): nothing happens when nothing that the build needs is missing. Otherwise root,
# or whoever sets BERLU_SETUP=yes, gets the packages installed; everybody else gets the line to run, and exit code 1. Nobody
# is asked for a password. `install` (make setup) installs what the build needs, through sudo where that is necessary; `dev`
# (make dev-setup) also what only developers need, the lines after "dev" in the list, and says what it could not get.
# Packages of that part that are named as arguments are needed as well (clang for make fuzz).
set -eu
cd "$(dirname "$0")/.."
verb=check
case ${1:-} in install | dev) verb=$1 && shift ;; esac

# Whether the file (or the pkg-config module) that proves a package is there.
there() {
    case $1 in
    pkg:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#pkg:}" ;;
    *) [ -e "$1" ] ;;
    esac
}

needed='' extra='' into=needed
while read -r name proof _; do
    case $name in
    '' | '#'*) continue ;;
    dev) into=extra && continue ;;
    esac
    there "$proof" && continue
    for asked in "$@"; do [ "$asked" = "$name" ] && needed="$needed $name" && continue 2; done
    if [ $into = needed ]; then needed="$needed $name"; else extra="$extra $name"; fi
done <tools/packages.txt
[ $verb = dev ] || extra=''
[ -n "$needed$extra" ] || exit 0

tell() {
    echo "berlu: these packages are missing; install them (make setup does) and run make again:" >&2
    echo "    sudo apt-get install -y$needed$extra" >&2
    exit 1
}
command -v apt-get >/dev/null 2>&1 || tell
if [ "$(id -u)" = 0 ]; then
    as_root=''
elif [ $verb != check ]; then
    as_root=sudo
elif [ "${BERLU_SETUP:-}" = yes ]; then
    as_root='sudo -n'
else
    tell
fi

install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
}
echo "berlu: installing$needed$extra" >&2
$as_root apt-get update -q >&2 || echo "berlu: apt-get update failed; trying with the lists that are here" >&2
if [ -n "$needed" ] && ! install $needed; then
    extra=''
    tell
fi
if [ -n "$extra" ] && ! install $extra; then
    for name in $extra; do
        install "$name" || echo "berlu: $name could not be installed; what it is for is left out" >&2
    done
fi
