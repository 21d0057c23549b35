#!/bin/bash
# sanitize_cuda.sh FOLDER [SECONDS [LOGS]] - the CUDA tests under memcheck, racecheck and initcheck, side by side.
# SPDX-License-Identifier: MIT
#
# FOLDER holds test_cuda_kernels, test_cuda_depthwise, test_cuda_mlp and test_cuda_engine
# (build/tests/cuda). Kernels are tested with small shapes (BERLU_TEST_SMALL), the engine runs every
# op in bf16; FILTER in the environment names other tests of it (all would take hours), TOOLS some of
# the tools. A test that did not end within SECONDS (600) is reported; a finding fails in any case.
# Errors that a CUDA call returns are the library's way of asking what a chip can do, so calls are
# not checked. Exit 1 where a tool found something, 77 without a GPU or compute-sanitizer.
set -u
folder=$1 seconds=${2:-600} logs=${3:-$(mktemp -d)}
filter=${FILTER:-every_case_in_bf16_equals_the_reference}
checker=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
[ -n "$checker" ] && nvidia-smi -L > /dev/null 2>&1 || { echo "skipped: no compute-sanitizer or no GPU"; exit 77; }
mkdir -p "$logs"
export BERLU_TEST_SMALL=1

# TOOL PROGRAM [ARGUMENT]: a line for the report in LOGS/TOOL-PROGRAM.end
check()
{
    local name=$1-$2${3:+-$3} begin=$SECONDS state=clean
    timeout "$seconds" "$checker" --tool "$1" --report-api-errors no --print-limit 8 --error-exitcode 9 \
        "$folder/$2" ${3:+"$3"} > "$logs/$name.log" 2>&1
    local code=$?
    [ $code != 124 ] || state="not ended"
    ! grep -qE "^=+ (Invalid|Error|Uninitialized|Race|Internal|Program hit)" "$logs/$name.log" || state="FOUND"
    [ $code != 9 ] || state="FOUND"
    [ $code = 0 ] || [ $code = 9 ] || [ $code = 124 ] || state="failed ($code)"
    echo "$name: $state, $((SECONDS - begin)) s; $(grep -E "SUMMARY" "$logs/$name.log" | tail -n 1)" > "$logs/$name.end"
}

for tool in ${TOOLS:-memcheck racecheck initcheck}; do
    for test in "test_cuda_kernels norm" "test_cuda_kernels attention" "test_cuda_kernels rows" test_cuda_depthwise \
        test_cuda_mlp "test_cuda_engine $filter"; do
        [ -x "$folder/${test%% *}" ] || { echo "$folder/${test%% *}: missing"; continue; }
        check $tool $test &
    done
done
wait
cat "$logs"/*.end
bad=$(grep -lE "FOUND|failed" "$logs"/*.end)
for end in $bad; do
    echo "--- ${end%.end}"
    grep -E "^=" "${end%.end}.log" | head -n 12
    tail -n 3 "${end%.end}.log"
done
[ -z "$bad" ]
