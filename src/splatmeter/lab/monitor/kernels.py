"""Registers and spills per CUDA kernel, from what `nvcc -Xptxas -v` prints, and two builds side by side."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for '?([^\s':]+)")
_STACK = re.compile(r"(\d+) bytes stack frame")
_STORES = re.compile(r"(\d+) bytes spill stores")
_LOADS = re.compile(r"(\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")
_WARNED = re.compile(r"spilled to local memory in function '([^']+)'")
_ARCHITECTURE = re.compile(r"^\s*arch = (\S+)")
_LISTED = re.compile(r"^\s*Function (\S+?):\s*$")
_LISTED_FIGURES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)")
_OF_ONE_FILE = re.compile(r"_GLOBAL__N_|_INTERNAL_|__nv_static_")
_PLACE = re.compile(r"_[0-9a-f]{8}")
_Key = tuple[str, str]
"""Name and architecture."""


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
    """What ptxas told of each entry function, or `cuobjdump -res-usage` of a finished file.

    A device function that is called has its frame in its caller's already. Lines of nvlink are left out: what
    it says of a kernel ptxas said before.
    """
    reader = _Reader()
    for line in text.splitlines():
        if not line.lstrip().startswith("nvlink"):
            reader.line(line)
    return reader.kernels


class _Reader:
    """Knows whom a line speaks of: compilers that work side by side mix their lines."""

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self._current: int | None = None
        self._architecture = ""

    def line(self, text: str) -> None:
        if found := _ENTRY.search(text):
            self._begin(found[1], found[2])
        elif found := _PROPERTIES.search(text) or _WARNED.search(text):
            self._current = self._open(found[1])
            self._figures(text)
        elif found := _ARCHITECTURE.match(text):
            self._architecture = found[1]
        elif found := _LISTED.match(text):
            self._begin(found[1], self._architecture)
        elif found := _LISTED_FIGURES.search(text):
            registers, stack, shared = map(int, found.groups())
            self._tell(registers=registers, stack_bytes=stack, shared_bytes=shared)
        else:
            self._figures(text)

    def _begin(self, name: str, architecture: str) -> None:
        self.kernels.append(Kernel(name, architecture))
        self._current = len(self.kernels) - 1

    def _open(self, name: str) -> int | None:
        """The kernel of that name whose registers are still to come; else its last one."""
        places = [place for place, kernel in enumerate(self.kernels) if kernel.name == name]
        waiting = [place for place in places if self.kernels[place].registers is None]
        return (waiting or places[-1:] or [None])[0]

    def _figures(self, text: str) -> None:
        for pattern, field in (
            (_STACK, "stack_bytes"),
            (_STORES, "spill_store_bytes"),
            (_LOADS, "spill_load_bytes"),
        ):
            if found := pattern.search(text):
                self._tell(**{field: int(found[1])})
        if found := _USED.search(text):
            shared = _SHARED.search(text)
            self._tell(
                registers=int(found[1]),
                shared_bytes=sum(int(part or 0) for part in shared.groups()) if shared else 0,
            )
            self._current = None

    def _tell(self, **figures: int) -> None:
        if self._current is not None:
            self.kernels[self._current] = replace(self.kernels[self._current], **figures)


def build_warnings(text: str) -> list[str]:
    """What ptxas warns of, once each: bounds that it ignores, registers that it lacks."""
    found = [line.partition("ptxas warning :")[2].strip() for line in text.splitlines()]
    return list(dict.fromkeys(_PLACE.sub("_", line) for line in found if line))


def identity(name: str) -> str:
    """Without what nvcc makes of the place of a file: names that only that file sees carry a hash of it."""
    return _PLACE.sub("_", name) if _OF_ONE_FILE.search(name) else name


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
class KernelChange:
    """One kernel in two builds; None where a build has no such kernel."""

    name: str
    architecture: str
    before: Kernel | None
    after: Kernel | None

    @property
    def differs(self) -> bool:
        return self.before is None or self.after is None or _figures(self.before) != _figures(self.after)


def compare_kernels(before: Sequence[Kernel], after: Sequence[Kernel]) -> list[KernelChange]:
    """By name and architecture, in the order of the first build, new ones last; a kernel whose arguments have
    changed is still the same if only one on each side can be meant.
    """
    old = {(identity(kernel.name), kernel.architecture): kernel for kernel in before}
    new = {(identity(kernel.name), kernel.architecture): kernel for kernel in after}
    for gone, came in _renamed(
        [key for key in old if key not in new], [key for key in new if key not in old]
    ):
        new[gone] = new.pop(came)
    found: list[KernelChange] = []
    for key in dict.fromkeys([*old, *new]):
        shown = new.get(key) or old[key]
        found.append(KernelChange(shown.name, shown.architecture, old.get(key), new.get(key)))
    return found


def _renamed(gone: list[_Key], came: list[_Key]) -> list[tuple[_Key, _Key]]:
    """Pairs of one function name on one architecture, where each side has a single such kernel."""
    sides: list[dict[_Key, list[_Key]]] = []
    for keys in (gone, came):
        names = readable(name for name, _ in keys)
        found: dict[_Key, list[_Key]] = {}
        for key in keys:
            found.setdefault((function_name(names[key[0]]), key[1]), []).append(key)
        sides.append(found)
    old, new = sides
    return [(old[k][0], new[k][0]) for k in old if k in new and len(old[k]) == len(new[k]) == 1]


def function_name(shown: str) -> str:
    """'void gs::blend<3>(float*)' -> 'gs::blend'."""
    return short_name(shown).partition("<")[0] or shown


def short_name(shown: str) -> str:
    """'void gs::blend<3>(float*)' -> 'gs::blend<3>': without what it takes and gives back."""
    text = shown.replace("(anonymous namespace)::", "")
    depth, begin = 0, 0
    for place, letter in enumerate(text):
        if letter == "(" and depth == 0:
            return text[begin:place]
        if letter == " " and depth == 0:
            begin = place + 1
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
    return text[begin:]


def short_names(shown: Mapping[str, str]) -> dict[str, str]:
    """Mangled name -> short readable name; where two would read the same, both stay long."""
    short = {name: short_name(text) for name, text in shown.items()}
    texts = list(short.values())
    return {name: text if texts.count(text) == 1 else shown[name] for name, text in short.items()}


def _figures(kernel: Kernel) -> tuple[object, ...]:
    return (
        kernel.registers, kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes,
        kernel.shared_bytes,
    )  # fmt: skip
