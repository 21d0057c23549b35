#!/bin/sh
# setup.sh - sees that the packages of packages.txt are there. SPDX-License-Identifier: MIT
#
# Nothing is asked of apt when nothing is missing, so this runs in front of every configure. What is missing is installed
# when we are root or may use sudo without a password; otherwise the one line to run is printed and we stop. Optional
# packages are only tried, once (the note build/.optional-tried), unless named as arguments: then they are needed.
set -eu
cd "$(dirname "$0")/.."

# Whether the file (or the pkg-config module) that proves a package is there.
there() {
    case $1 in
    pkg:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#pkg:}" ;;
    *) [ -e "$1" ] ;;
    esac
}

needed='' optional='' into=needed
while read -r name proof _; do
    case $name in
    '' | '#'*) continue ;;
    optional) into=optional && continue ;;
    esac
    there "$proof" && continue
    for asked in "$@"; do [ "$asked" = "$name" ] && needed="$needed $name" && continue 2; done
    if [ $into = needed ]; then needed="$needed $name"; else optional="$optional $name"; fi
done <tools/packages.txt

tried=build/.optional-tried
[ ! -e $tried ] || optional=''
[ -n "$needed$optional" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=''
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
else
    as_root=none
fi

if ! command -v apt-get >/dev/null 2>&1 || [ "$as_root" = none ]; then
    [ -n "$needed" ] || exit 0
    echo "berlu: these packages are missing; install them and run make again:" >&2
    echo "    sudo apt-get install -y$needed" >&2
    exit 1
fi

install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
}
echo "berlu: installing$needed$optional" >&2
$as_root apt-get update -q >&2 || echo "berlu: apt-get update failed; trying with the lists that are here" >&2
if [ -n "$needed" ] && ! install $needed; then
    echo "berlu: the packages could not be installed; run this and then make again:" >&2
    echo "    sudo apt-get install -y$needed" >&2
    exit 1
fi
if [ -n "$optional" ] && ! install $optional; then
    for name in $optional; do
        install "$name" || echo "berlu: $name could not be installed; what it is for is left out" >&2
    done
fi
mkdir -p build && : >$tried
