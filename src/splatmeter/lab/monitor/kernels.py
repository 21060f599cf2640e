"""Registers and spills per CUDA kernel, from what `nvcc -Xptxas -v` prints, and two builds side by side."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    architecture: str
    registers: int | None = None
    stack_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    shared_bytes: int = 0

    @property
    def spills(self) -> bool:
        return bool(self.spill_store_bytes or self.spill_load_bytes)


def parse(text: str) -> list[Kernel]:
    """Entry functions only; a called device function's frame is already in its caller's."""
    kernels: list[Kernel] = []
    properties_of = ""
    for line in text.splitlines():
        if found := _ENTRY.search(line):
            kernels.append(Kernel(found[1], found[2]))
            properties_of = found[1]
        elif found := _PROPERTIES.search(line):
            properties_of = found[1]
        elif not kernels or kernels[-1].name != properties_of:
            continue
        elif found := _STACK.search(line):
            stack, stores, loads = map(int, found.groups())
            kernels[-1] = replace(
                kernels[-1], stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads
            )
        elif found := _USED.search(line):
            shared = _SHARED.search(line)
            kernels[-1] = replace(
                kernels[-1], registers=int(found[1]), shared_bytes=int(shared[1]) if shared else 0
            )
    return kernels


def readable(names: Iterable[str]) -> Mapping[str, str]:
    """Demangled where c++filt or NVIDIA's cu++filt is installed; otherwise as they are."""
    wanted = sorted(set(names))
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if not tool or not wanted:
        return {name: name for name in wanted}
    answer = subprocess.run(
        [tool], input="\n".join(wanted), capture_output=True, text=True, timeout=30, check=False
    )
    lines = answer.stdout.splitlines()
    return (
        dict(zip(wanted, lines, strict=True))
        if len(lines) == len(wanted)
        else {name: name for name in wanted}
    )


@dataclass(frozen=True, slots=True)
class Change:
    """One kernel in two builds; None where a build has no such kernel."""

    name: str
    architecture: str
    before: Kernel | None
    after: Kernel | None

    @property
    def differs(self) -> bool:
        return self.before is None or self.after is None or _figures(self.before) != _figures(self.after)


def compare(before: Sequence[Kernel], after: Sequence[Kernel]) -> list[Change]:
    """By name and architecture, in the order of the first build, new ones last."""
    old = {(kernel.name, kernel.architecture): kernel for kernel in before}
    new = {(kernel.name, kernel.architecture): kernel for kernel in after}
    return [Change(*key, old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]


def _figures(kernel: Kernel) -> tuple[object, ...]:
    return (
        kernel.registers, kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes,
        kernel.shared_bytes,
    )  # fmt: skip
