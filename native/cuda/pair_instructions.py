"""Instructions of the blending kernels a pair of one tile, counted in machine code as gpu-engine.md 6.5 does.

A pair costs what its loop has beside the eight subtiles' bodies, one body for each subtile it reaches, one
branch for each that it does not, and its share of what a batch of 32 costs. A garden of 2 M Gaussians at
1297 x 840 has 2.86 subtiles a pair.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

SUBTILES = 8
REACHED = 2.86
BATCH = 32
MOST = {"blend_forward": 96, "blend_backward": 214}


class DisassemblerMissing(Exception):
    pass


def disassembler() -> str:
    found = shutil.which("nvdisasm")
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found = found or next((str(path) for path in sorted(Path(folder).glob("*/bin/nvdisasm"))), None)
    if not found:
        raise DisassemblerMissing(
            "nvdisasm is missing: pip install nvidia-cuda-nvdisasm; instructions were not counted"
        )
    return found


def instructions_of(cubin: bytes) -> dict[str, tuple[list[str], dict[str, int]]]:
    """By kernel: the instructions, and where its labels stand among them."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [disassembler(), "-c", file.name], capture_output=True, text=True, check=True
        ).stdout
    kernels = {}
    for part in re.split(r"\n\s*\.section\s+\.text\.", text)[1:]:
        lines, labels = [], {}
        for line in part.split("\n"):
            if label := re.match(r"\s*(\.L_x_\d+):", line):
                labels[label.group(1)] = len(lines)
            elif found := re.match(r"\s*/\*[0-9a-f]{4,5}\*/\s+(.*?);", line):
                lines.append(found.group(1).strip())
        kernels[re.split(r"[,\n]", part)[0].strip()] = (lines, labels)
    return kernels


def loops(lines: list[str], labels: dict[str, int]) -> list[tuple[int, int]]:
    """From each branch backwards: where it leads to and where it stands."""
    found = set()
    for at, line in enumerate(lines):
        target = re.search(r"BRA.*?(\.L_x_\d+)", line)
        if target and labels.get(target.group(1), at + 1) <= at:
            found.add((labels[target.group(1)], at))
    return sorted((begin, end) for begin, end in found if end - begin > 2)


def a_pair(lines: list[str], labels: dict[str, int]) -> float:
    """The inner loop with eight exponentials is the walk over pairs; the one around it takes a batch."""
    walks = []
    for begin, end in loops(lines, labels):
        exponentials = [at for at in range(begin, end + 1) if "MUFU.EX2" in lines[at]]
        if len(exponentials) == SUBTILES:
            walks.append((end - begin + 1, exponentials))
    walk, exponentials = min(walks)
    batch = max(walks)[0] - walk
    distances = [after - before for before, after in itertools.pairwise(exponentials)]
    body = min(
        statistics.median(distances), statistics.mean(distances)
    )  # the compiler mixes bodies: err upwards
    return walk - SUBTILES * body + REACHED * body + (SUBTILES - REACHED) + batch / BATCH


def instructions_a_pair(cubin: bytes) -> dict[str, float]:
    kernels = instructions_of(cubin)
    return {name: a_pair(*kernels[name]) for name in MOST}
