#!/bin/sh
# setup.sh - whoever is not root gets the line to run and exit code 1; nobody calls sudo unasked. SPDX-License-Identifier: MIT
#
# A copy of the script meets packages that cannot be there, with programs of our own for id, sudo and apt-get.
set -eu
work=$BERLU_BUILD_DIR/test-data/setup
rm -rf "$work"
mkdir -p "$work/tools" "$work/bin"
cp "$BERLU_SOURCE_DIR/tools/setup.sh" "$work/tools/"
printf '%s\n' 'present /bin/sh here' 'first /no/such/file one' 'dev' 'second /no/such/file two' 'third /no/such/file three' >"$work/tools/packages.txt"
fake() {
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1" && chmod +x "$work/bin/$1"
}
fake apt-get 'echo "apt-get $*" >>"$CALLS"'
fake sudo 'echo "sudo $*" >>"$CALLS"; while [ "$1" = -n ]; do shift; done; exec "$@"'
export CALLS="$work/calls" PATH="$work/bin:$PATH"

# expect USER CODE CALLS ARGUMENT... - as USER (0: root) the script ends with CODE and calls these programs, in order.
expect() {
    fake id "echo $1"
    code=0 && wanted=$2 calls=$3 && shift 3
    : >"$CALLS"
    "$work/tools/setup.sh" "$@" >"$work/out" 2>&1 || code=$?
    got=$(sed 's/^\(sudo -n\|sudo\|apt-get\).*\(update\|install\).*/\1 \2/; s/ env$//' "$CALLS" | tr '\n' ',')
    [ $code = "$wanted" ] && [ "$got" = "$calls" ] || { echo "setup.sh $*: $code, '$got'; wanted $wanted, '$calls'"; cat "$work/out"; exit 1; }
}
unset BERLU_SETUP
expect 1000 1 ''
grep -q 'sudo apt-get install -y first$' "$work/out" # the developers' packages are not asked for
expect 0 0 'apt-get update,apt-get install,'
expect 1000 1 '' second
grep -q 'install -y first second$' "$work/out"
expect 1000 0 'sudo update,apt-get update,sudo install,apt-get install,' install
BERLU_SETUP=yes
export BERLU_SETUP
expect 1000 0 'sudo -n update,apt-get update,sudo -n install,apt-get install,'
expect 0 0 'apt-get update,apt-get install,apt-get install,' dev # what is needed, then the rest
fake apt-get 'echo "apt-get $*" >>"$CALLS"; case $* in *second*) exit 1 ;; esac'
expect 0 0 'apt-get update,apt-get install,apt-get install,apt-get install,apt-get install,' dev
grep -q 'second could not be installed' "$work/out"
fake apt-get 'exit 100'
expect 0 1 ''
printf '%s\n' 'present /bin/sh here' >"$work/tools/packages.txt"
expect 1000 0 ''
echo "ten cases as documented"
