#!/bin/sh
# check_headers.sh - every public header compiles alone, as C11 and as C++. SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
count=0
for header in include/berlu/*.h; do
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -pedantic-errors -Iinclude -fsyntax-only -x c "$header"
    for standard in c++11 c++20; do
        ${CXX:-c++} -std=$standard -Wall -Wextra -Werror -pedantic-errors -Iinclude -fsyntax-only -x c++ "$header"
    done
    count=$((count + 1))
done
[ $count -gt 0 ]
echo "$count headers compile alone"
