#!/bin/bash
# pages.sh - every command has a man page with all of its options, and both shells complete them. SPDX-License-Identifier: MIT
set -eu
pages=$BERLU_BUILD_DIR/pages
berlu=$BERLU_BUILD_DIR/berlu
fail() { echo "$1"; exit 1; }

# Every option of --help stands in the page, and every command in the overview.
commands=$("$berlu" --help | sed -n 's/^  \([a-z][a-z ]*[a-z]\)   *.*/\1/p')
[ "$(echo "$commands" | wc -l)" -gt 20 ] || fail "no list of commands"
while read -r command; do
    page=$pages/man1/berlu-$(echo "$command" | tr ' ' -).1
    [ -e "$page" ] || fail "$page is missing"
    grep -qF "$(basename "$page" .1 | sed 's/-/\\-/g')" "$pages/man1/berlu.1" || fail "berlu.1 does not name $command"
    for option in $("$berlu" help $command | grep -o '^  --[a-z0-9-]*' | tr -d ' '); do
        grep -qF "$(echo "$option" | sed 's/-/\\-/g')" "$page" || fail "$page: no $option"
    done
done <<<"$commands"
if command -v groff >/dev/null; then
    for page in "$pages"/man1/*.1; do
        complaints=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$complaints" ] || fail "$page: $complaints"
    done
else
    echo "groff is not installed: pages are not set"
fi

# bash: complete LINE... prints what the last word may become.
. "$pages/berlu.bash"
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _berlu
    printf '%s\n' "${COMPREPLY[@]:-}"
}
has() { # WORD LINE...
    word=$1
    shift
    complete_words "$@" | grep -qxF -- "$word" || fail "bash: '$*' does not offer $word: $(complete_words "$@" | tr '\n' ' ')"
}
has train berlu tra
has eval berlu act e
has --init berlu train --in
has deit berlu train --recipe ''
has gelu_tanh berlu train --act gelu
has vit_tiny berlu train --model vit_
has vit_micro berlu summary vit_m
has --emit berlu smooth --e
has check berlu smooth ch
has c-f32 berlu smooth relu --emit c
has --json berlu smooth check --j
[ -z "$(complete_words berlu train --nosuch)" ] || fail "bash: offers something for --nosuch"
cd "$BERLU_SOURCE_DIR"
has README.md berlu train --config READ
has README.md berlu train --config '' # no option can stand where a value or an argument is expected
has README.md berlu predict ''
has README.md berlu eval docs --which ''
for line in 'train --config' 'predict' 'eval docs --which'; do
    ! complete_words berlu $line '' | grep -q '^--' || fail "bash: berlu $line offers options"
done
! complete_words berlu smooth check --e | grep -qx -- --emit || fail "bash: smooth check has the options of smooth"
mkdir -p "$BERLU_BUILD_DIR/test-data/pages"
cd "$BERLU_BUILD_DIR/test-data/pages"
touch 'a cat.png'
has 'a cat.png' berlu predict a
has train berlu help tra
has eval berlu help act e
if command -v zsh >/dev/null; then
    zsh -n "$pages/_berlu"
else
    echo "zsh is not installed: its completion is not parsed"
fi
