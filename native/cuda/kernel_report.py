"""What the compilers make of the kernels: registers, spills, shared memory, warps, instructions a pair.

    python native/cuda/kernel_report.py          # writes native/cuda/kernel_report.md, which is kept
    python native/cuda/kernel_report.py --check  # fails on 10 % more registers than kept, on any spill,
                                                 # on more instructions a pair than the design has

NVRTC 12.8 (which makes the images) and nvcc 13 are asked where they are there; nvdisasm counts instructions
(pip install nvidia-cuda-nvdisasm). What is missing is named.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from make_images import CUBINS, FLAGS, KERNELS, CompilerMissing, compiled, compiler
from pair_instructions import MOST, DisassemblerMissing, instructions_a_pair

REPORT = Path(__file__).resolve().parent / "kernel_report.md"
MORE_REGISTERS = 1.1
ARCHITECTURES = CUBINS


@dataclass(frozen=True)
class Limits:
    """Of one multiprocessor."""

    warps: int
    blocks: int
    shared: int
    reserved: int  # shared memory a block takes for the system
    registers: int = 65536


LIMITS = {
    75: Limits(32, 16, 64 << 10, 0),
    86: Limits(48, 16, 100 << 10, 1024),
    89: Limits(48, 24, 100 << 10, 1024),
    90: Limits(64, 32, 228 << 10, 1024),
    120: Limits(48, 24, 100 << 10, 1024),
}


@dataclass(frozen=True)
class Usage:
    registers: int
    stack: int
    spilled: int
    shared: int


Usages = dict[str, dict[int, Usage]]  # by kernel, then architecture


def threads_of() -> dict[str, int]:
    """Threads a block by kernel, from the launch bounds in the source."""
    sizes = {
        name: int(value)
        for name, value in re.findall(r"(kThreads|kProjectThreads|kUpdateThreads) = (\d+)", _arguments())
    }
    tiles = re.search(r"kTilesPerBlock = (\d+)", _arguments())
    sizes["kBlendThreads"] = 32 * int(tiles.group(1)) if tiles else 0
    found = re.findall(
        r"KERNEL\((\w+), (\w+),", "".join(path.read_text("utf-8") for path in sorted(KERNELS.glob("*.cu")))
    )
    return {kernel: sizes[threads] for threads, kernel in found}


def _arguments() -> str:
    return (KERNELS / "arguments.hpp").read_text("utf-8")


def warps_of(usage: Usage, threads: int, architecture: int) -> int:
    """Resident at a time: registers come in portions of 256 a warp, shared memory of 128 bytes a block."""
    limits, warps = LIMITS[architecture], threads // 32
    by_registers = limits.registers // (-(-usage.registers * 32 // 256) * 256 * warps)
    shared = -(-(usage.shared + limits.reserved) // 128) * 128
    by_shared = limits.shared // shared if shared else limits.blocks
    return warps * min(limits.blocks, limits.warps // warps, by_registers, by_shared)


def parsed(text: str) -> dict[str, Usage]:
    """ptxas -v: three lines a kernel."""
    usages: dict[str, Usage] = {}
    name, stack, spilled = "", 0, 0
    for line in text.splitlines():
        if found := re.search(r"entry function '(\w+)'", line):
            name = found.group(1)
        elif found := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line
        ):
            stack, spilled = int(found.group(1)), int(found.group(2)) + int(found.group(3))
        elif found := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            usages[name] = Usage(int(found.group(1)), stack, spilled, int(shared.group(1)) if shared else 0)
    return usages


def by_nvcc() -> tuple[str, Usages]:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise CompilerMissing("nvcc is missing: it was not asked")
    version = re.search(
        r"V(\d+\.\d+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    )
    usages: Usages = {}
    with tempfile.TemporaryDirectory() as folder:
        for architecture in ARCHITECTURES:
            command = [
                nvcc,
                "-std=c++17",
                "-O3",
                "-use_fast_math",
                f"-arch=sm_{architecture}",
                "-cubin",
                "-Xptxas",
                "-v",
            ]
            done = subprocess.run(
                [*command, "-o", str(Path(folder) / "kernels.cubin"), str(KERNELS / "all.cu")],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise SystemExit(done.stderr)
            for kernel, usage in parsed(done.stderr).items():
                usages.setdefault(kernel, {})[architecture] = usage
    return f"nvcc {version.group(1) if version else ''}", usages


def by_nvrtc() -> tuple[str, Usages]:
    library, usages = compiler(), {}
    for architecture in ARCHITECTURES:
        log: list[str] = []
        compiled(library, f"sm_{architecture}", (*FLAGS, "--ptxas-options=-v"), log)
        for kernel, usage in parsed(log[0]).items():
            usages.setdefault(kernel, {})[architecture] = usage
    return "NVRTC 12.8", usages


def table_of(title: str, usages: Usages) -> list[str]:
    names = " / ".join(f"sm_{architecture}" for architecture in ARCHITECTURES)
    lines = [f"## {title}", "", f"Columns: {names}.", ""]
    lines += [
        "| kernel | threads | registers | stack | spilled | shared | warps |",
        "|---|---|---|---|---|---|---|",
    ]
    threads = threads_of()
    for kernel in sorted(usages):
        of = [usages[kernel][architecture] for architecture in ARCHITECTURES]
        warps = [warps_of(usage, threads[kernel], at) for usage, at in zip(of, ARCHITECTURES, strict=True)]
        columns = [
            [u.registers for u in of],
            [u.stack for u in of],
            [u.spilled for u in of],
            [u.shared for u in of],
            warps,
        ]
        lines.append(
            f"| {kernel} | {threads[kernel]} | "
            + " | ".join(" / ".join(map(str, column)) for column in columns)
            + " |"
        )
    return [*lines, ""]


def kept_registers(text: str, title: str) -> dict[str, list[int]]:
    part = text.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in part.splitlines() if re.match(r"\| \w+ \| \d", line)]
    return {row[0].lstrip("| "): [int(value) for value in row[2].split(" / ")] for row in rows}


def complaints(text: str, title: str, usages: Usages) -> list[str]:
    kept, found = kept_registers(text, title), []
    if kept.keys() != usages.keys():
        found.append(f"{title}: the report has other kernels than the source")
    for kernel, of in usages.items():
        for index, architecture in enumerate(ARCHITECTURES):
            usage, before = of[architecture], kept.get(kernel, [0] * len(ARCHITECTURES))[index]
            where = f"{title}: {kernel} on sm_{architecture}"
            if usage.spilled or usage.stack:
                found.append(f"{where}: spills {usage.spilled} bytes, stack {usage.stack}")
            if usage.registers > MORE_REGISTERS * before:
                found.append(f"{where}: takes {usage.registers} registers, {before} are kept")
    return found


def instructions_section(counts: dict[str, float]) -> list[str]:
    lines = [
        "## Instructions a pair of one tile",
        "",
        "sm_120, NVRTC 12.8, as gpu-engine.md 6.5 counts them at 2 M Gaussians.",
        "",
    ]
    lines += ["| kernel | instructions | at most |", "|---|---|---|"]
    return [*lines, *(f"| {kernel} | {count:.1f} | {MOST[kernel]} |" for kernel, count in counts.items()), ""]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    lines = ["# Kernel report", "", "Made by `python native/cuda/kernel_report.py`; do not edit.", ""]
    found: list[str] = []
    missing = 0
    kept = REPORT.read_text("utf-8") if REPORT.exists() else ""
    for ask in (by_nvrtc, by_nvcc):
        try:
            title, usages = ask()
        except CompilerMissing as problem:
            print(problem, file=sys.stderr)
            missing += 1
            continue
        lines += table_of(title, usages)
        found += complaints(kept, title, usages) if check else []
    try:
        counts = instructions_a_pair(compiled(compiler(), "sm_120"))
        lines += instructions_section(counts)
        found += [
            f"{kernel}: {count:.1f} instructions a pair"
            for kernel, count in counts.items()
            if count > MOST[kernel]
        ]
    except (CompilerMissing, DisassemblerMissing) as problem:
        print(problem, file=sys.stderr)
        missing += 1
    if not check and not missing:
        REPORT.write_text("\n".join(lines), "utf-8")
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found or (missing and not check) else 0


if __name__ == "__main__":
    sys.exit(main())
