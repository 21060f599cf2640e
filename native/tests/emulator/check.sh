#!/usr/bin/env bash
# Builds and runs the emulator's own test, and the test of the card's host code over the stand-in driver:
#     native/tests/emulator/check.sh [plain|emulator|address|thread|arm] [build folder]
# emulator: only the first of them
# address: address and undefined-behaviour sanitizers over the host code;  thread: thread sanitizer
# arm:     the emulator's own test for 64-bit Arm, run by qemu-aarch64
# Leaves with 77 if a tool is missing, and says which.
set -euo pipefail
kind=${1:-plain}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
native=$(cd "$here/../.." && pwd)
build=${2:-$native/../build/card-$kind}
cxx=${CXX:-g++}
flags=(-std=c++20 -O1 -g1 -Wall -Wextra -Werror -Wno-unused-function)

need() { command -v "$1" >/dev/null || { echo "$1 is missing: $2" >&2; exit 77; }; }

runner=()
case $kind in
    plain | emulator) ;;
    address) flags+=(-fsanitize=address,undefined -fno-sanitize-recover=all) ;;
    thread) flags+=(-fsanitize=thread) ;;
    arm)
        cxx=aarch64-linux-gnu-g++ runner=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
        need "$cxx" "apt-get install g++-aarch64-linux-gnu"
        need qemu-aarch64 "apt-get install qemu-user"
        ;;
    *) echo "the kind is plain, emulator, address, thread or arm, not $kind" >&2; exit 2 ;;
esac
need "$cxx" "apt-get install g++"
mkdir -p "$build"
if [[ $kind == plain || $kind == emulator || $kind == arm ]]; then
    "$cxx" "${flags[@]}" -o "$build/emulator_test" "$here"/{emulator_test,machine,memory_checks}.cpp
    "${runner[@]}" "$build/emulator_test"
fi
[[ $kind != arm && $kind != emulator ]] || exit 0
library=$(env -u CXX "$here/build.sh" "$build")
"$cxx" "${flags[@]}" -o "$build/card_test" "$here/card_test.cpp" "$native"/cuda/*.cpp -ldl -pthread
SPLATMETER_LIBCUDA=$library "$build/card_test" "$native/../src/splatmeter/backends/cuda/images/compute_80.ptx" 2>"$build/stderr.txt" || { tail -n 40 "$build/stderr.txt" >&2; exit 1; }
