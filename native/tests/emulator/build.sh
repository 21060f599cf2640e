#!/usr/bin/env bash
# Builds the stand-in driver, a libcuda.so.1 that runs our own kernels' source on the CPU, and prints its path:
#     native/tests/emulator/build.sh OUT [plain|noisy]
# noisy: special functions are wrong by up to two units in the last place.
# OBJECTS names a folder that keeps what does not depend on the kernels. Leaves with 77 if the compiler is missing.
set -euo pipefail
out=${1:?usage: build.sh OUT [plain|noisy]} kind=${2:-plain}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cxx=${CXX:-g++}
command -v "$cxx" >/dev/null || { echo "$cxx is missing: apt-get install g++" >&2; exit 77; }
flags=(-std=c++20 "${OPTIMIZATION:--O1}" -fPIC -fvisibility=hidden -fno-strict-aliasing -ffp-contract=fast -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-function)
# Fused multiply-add as on a card, where the machine has it.
if [ "$(uname -m)" = x86_64 ] && grep -qs '\bfma\b' /proc/cpuinfo; then flags+=(-march=x86-64-v3); fi
case $kind in
    plain) ;;
    noisy) flags+=(-DSPLAT_NOISY) ;;
    *) echo "the kind is plain or noisy, not $kind" >&2; exit 2 ;;
esac
mkdir -p "$out"
objects=${OBJECTS:-$out}
for name in standin streams memory machine memory_checks; do
    [ -n "${OBJECTS:-}" ] && [ -f "$objects/$name.o" ] || "$cxx" "${flags[@]}" -c -o "$objects/$name.o" "$here/$name.cpp"
done
"$cxx" "${flags[@]}" -c -o "$out/kernels.o" "$here/kernels.cpp"
"$cxx" "${flags[@]}" -shared -o "$out/libcuda.so.1" "$objects"/{standin,streams,memory,machine,memory_checks}.o "$out/kernels.o"
echo "$out/libcuda.so.1"
