#!/usr/bin/env bash
# Builds the native test program in a folder of its own and runs it:
#     native/tests/check.sh [gcc|clang] [plain|address|thread|neon] [build folder]
# plain:   no warnings, every instruction set this machine has, and what the objects of each level contain
# address: address and undefined-behaviour sanitizers;  thread: thread sanitizer
# neon:    cross-compiled for 64-bit Arm, run by qemu-aarch64
# Leaves with 77 if a tool is missing, and says which.
set -euo pipefail
compiler=${1:-gcc} kind=${2:-plain}
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${3:-$source/build/native-$compiler-$kind}

need() { command -v "$1" >/dev/null || { echo "$1 is missing: $2" >&2; exit 77; }; }

case $compiler in
    gcc) cxx=g++ ;;
    clang) cxx=clang++ ;;
    *) echo "the compiler is gcc or clang, not $compiler" >&2; exit 2 ;;
esac
need cmake "pip install cmake"
need "$cxx" "apt-get install $compiler"

flags=-Werror
options=()
runner=()
case $kind in
    plain) options+=("-DCMAKE_CXX_COMPILER=$cxx") ;;
    address)
        options+=("-DCMAKE_CXX_COMPILER=$cxx" -DSPLAT_OPTIMIZATION=-O2)
        flags="-g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-sanitize-address-use-after-scope"
        # GCC takes minutes a file over checks of every pointer; Clang makes them.
        [ "$compiler" = clang ] || flags="$flags -fno-sanitize=null,alignment,object-size,pointer-overflow,vptr"
        ;;
    thread) options+=("-DCMAKE_CXX_COMPILER=$cxx" -DSPLAT_OPTIMIZATION=-O1); flags="-g1 -fsanitize=thread" ;;
    neon)
        need aarch64-linux-gnu-g++ "apt-get install g++-aarch64-linux-gnu"
        need qemu-aarch64 "apt-get install qemu-user"
        options+=("-DCMAKE_TOOLCHAIN_FILE=$source/native/tests/aarch64.cmake" "-DSPLAT_CROSS_COMPILER=$cxx")
        runner=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
        ;;
    *) echo "the kind is plain, address, thread or neon, not $kind" >&2; exit 2 ;;
esac
if command -v ninja >/dev/null; then options+=(-G Ninja); fi
# What cannot run here is compiled once, by plain.
if [ "$kind" != plain ] && ! grep -qs avx512vl /proc/cpuinfo; then options+=(-DSPLAT_AVX512=OFF); fi

# Code of a wide level must never run on a narrow machine: not while the library is loaded (no initialisers), and not
# because the linker took a wide copy of an inline function that every level has (no weak symbols).
look_into() {
    local level=$1 wanted=$2 unwanted=$3 objects code
    objects=$(find "$build" -path "*passes_$level.dir*" -name '*.o')
    [ -n "$objects" ] || { echo "no objects of level $level" >&2; exit 1; }
    # shellcheck disable=SC2086
    if nm $objects | grep -E ' [WVu] '; then echo "level $level has weak symbols" >&2; exit 1; fi
    # shellcheck disable=SC2086
    if objdump -h $objects | grep -E '[.](init_array|ctors)'; then echo "level $level runs code while loading" >&2; exit 1; fi
    # shellcheck disable=SC2086
    code=$(objdump -d --no-show-raw-insn $objects)
    if ! grep -qE "$wanted" <<<"$code"; then echo "level $level does not use its own instructions" >&2; exit 1; fi
    if [ -n "$unwanted" ] && grep -m 3 -E "$unwanted" <<<"$code"; then echo "level $level uses instructions of a wider one" >&2; exit 1; fi
    echo "level $level: $(grep -cE "$wanted" <<<"$code") lines of its own kind"
}

echo "== $compiler $kind"
mkdir -p "$build"
log=$build/log.txt
cmake -S "$source" -B "$build" -DSPLAT_TEST_ONLY=ON -DCMAKE_CXX_FLAGS="$flags" "${options[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build "$build" --parallel "${SPLATMETER_BUILD_JOBS:-2}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
"${runner[@]}" "$build/engine_test"
if [ "$kind" = plain ] && [ "$(uname -m)" = x86_64 ]; then
    evex='%zmm|%[xy]mm(1[6-9]|2[0-9]|3[01])|%k[0-7]'
    look_into avx512 "$evex" ''
    look_into avx2 '%ymm' "$evex"
    look_into baseline '%xmm' "%ymm|%v|[[:space:]]v[a-z]+ps|$evex"
fi
