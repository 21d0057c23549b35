# neon.sh - sourced by tests that cross-compile for AArch64: $compiler, $emulator and $flags, or exit 77 (skipped) where compiler or
# emulator is missing. Needs $source, the folder of the sources. SPDX-License-Identifier: MIT
compiler=$(command -v aarch64-linux-gnu-gcc) || { echo "skipped: no aarch64-linux-gnu-gcc"; exit 77; }
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || { echo "skipped: no qemu-aarch64"; exit 77; }
flags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wshadow -ffp-contract=off -fno-math-errno -I$source/src -I$source/include -I$source/tests -DBERLU_VERSION=\"neon\""
