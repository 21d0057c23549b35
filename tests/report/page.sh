#!/bin/sh
# page.sh BERLU STORE FOLDER - a page as its readers' programs see it. SPDX-License-Identifier: MIT
#
# Well-formed XML (xmllint), HTML without a parse error (html5lib), and in headless Chromium no message on the console in
# light and dark, and tables that sort. What is not installed is left out with a word; without all three it is skipped.
set -eu
berlu=$1 store=$2 folder=$3
rm -rf "$folder"
"$berlu" study report "$store" --out "$folder" --format html,md,csv,latex >/dev/null
page=$folder/index.html checks=0

if command -v xmllint >/dev/null; then
    xmllint --noout "$page"
    checks=$((checks + 1))
else
    echo "xmllint is not installed"
fi

python=
for each in python3 /usr/bin/python3; do
    if "$each" -c 'import html5lib' 2>/dev/null; then python=$each; fi
done
if [ -n "$python" ]; then
    "$python" - "$page" <<'END'
import sys, html5lib
parser = html5lib.HTMLParser()
with open(sys.argv[1], encoding="utf-8") as page:
    parser.parse(page.read())
for where, what, more in parser.errors:
    print(where, what, more)
sys.exit(bool(parser.errors))
END
    checks=$((checks + 1))
else
    echo "html5lib is not installed"
fi

browser() { # PAGE [OPTION...]: the page after its script; what the console said goes to $folder/console
    at=$1
    shift
    timeout 100 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$folder/browser" --enable-logging=stderr "$@" \
        --dump-dom "file://$at" 2>"$folder/log"
    grep CONSOLE "$folder/log" >"$folder/console" || true
}

if command -v chromium >/dev/null && browser "$page" >"$folder/light" && grep -q '</html>' "$folder/light"; then
    test ! -s "$folder/console" || { cat "$folder/console"; exit 1; }
    grep -q 'class="[^"]*sort' "$folder/light" # the script ran
    browser "$page" --force-dark-mode >"$folder/dark"
    test ! -s "$folder/console" || { cat "$folder/console"; exit 1; }
    # A reader who clicks on the mean of the first table, twice: the best comes first.
    sed 's|</script>|var h=Array.from(document.querySelectorAll("#beside-1 th")).find(function(t){return t.textContent==="mean"});h.click();h.click();</script>|' \
        "$page" >"$folder/clicked.html"
    browser "$folder/clicked.html" >"$folder/sorted"
    test ! -s "$folder/console" || { cat "$folder/console"; exit 1; }
    tr -d '\n' <"$folder/sorted" | grep -o 'id="beside-1".*' | grep -o '<tbody><tr><td class="[a-z]*">' | head -1 | grep -q best
    checks=$((checks + 1))
else
    echo "chromium is not installed, or cannot run here"
fi
rm -rf "$folder/browser"
test $checks -gt 0 || exit 77
echo "$checks of 3 programs find no fault"
