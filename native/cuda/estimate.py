"""What a step should take on an RTX 5060 Ti by the model: docs/cards/estimate.md, pass by pass.

    python native/cuda/estimate.py          # writes docs/cards/estimate.md, which is kept
    python native/cuda/estimate.py --check  # fails if that page is not what model and kept report give

Nothing here was measured on a card. Bytes and instructions are those of
src/splatmeter/backends/cuda/work_model.py, registers and warps those of kernel_report.md; every assumption is
a number with a name below.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from splatmeter.backends.cuda.work_model import (
    HARMONICS,
    PAIR_INSTRUCTIONS,
    SECTOR,
    TABLE_ROW,
    Counts,
    Work,
    work_of,
)

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "cards" / "estimate.md"

# ---- the card, as its maker describes it ------------------------------------------------------------------
BANDWIDTH = 448.0  # GB/s
MULTIPROCESSORS, ISSUES, GIGAHERTZ = 36, 4, 2.5
ISSUE_RATE = MULTIPROCESSORS * ISSUES * GIGAHERTZ  # thousand millions of warp instructions a second

# ---- assumptions ------------------------------------------------------------------------------------------
BANDWIDTH_REACHED = 0.80
ISSUE_REACHED = 0.55
LOW_ISSUE = 0.35
BETWEEN_KERNELS = 3.0  # microseconds
UNKNOWN = 1.6  # the same model is too optimistic by this for gsplat, and by 1.2 for Faster-GS
CAMERAS = 161
FLOPS_A_CAMERA = 25  # of the 3D filter, for each row
FILTER_INTERVAL = 100  # steps from one refresh of the 3D filter to the next, and from growth to growth
FLOAT_RATE = ISSUE_RATE * 32  # G a second
GROWTH_WAITS = 0.1  # ms: two readbacks
GROWTH_LAUNCHES = 85
FIRST_MOMENTS = 2 * SECTOR  # of geometry, twelve floats of 24
MORTON_DIGITS = 7
WIDTH, HEIGHT = 1297, 840
MOST_OF_GROWTH = 0.02

SCENES = {  # millions of Gaussians: garden, by the design's counts on models trained here; 4 M extrapolated
    1: Counts(1e6, 0.424e6, 0.412e6, 1.22e6, WIDTH, HEIGHT, 3.21),
    2: Counts(2e6, 0.361e6 * 2, 0.344e6 * 2, 0.87e6 * 2, WIDTH, HEIGHT, 2.86),
    4: Counts(4e6, 0.323e6 * 4, 0.302e6 * 4, 0.65e6 * 4, WIDTH, HEIGHT, 2.50),
}
DESIGN = {1: 100, 2: 70, 4: 44}  # it/s to plan with

PASSES = {
    "project": (["project"], 1),
    "sorts, scans, emit": (
        [
            "count_rows",
            "compact",
            "radix_count",
            "radix_scatter",
            "scan_sums",
            "scan_apply",
            "emit",
            "tile_begins",
        ],
        33,
    ),
    "blend forward": (["blend_forward"], 1),
    "loss": (["loss_values", "loss_gradient"], 3),
    "blend backward": (["blend_backward_absolute"], 1),
    "update": (["update"], 1),
}
"""Kernels, and how many launches they are."""


@dataclass(frozen=True)
class Cost:
    milliseconds: float
    bytes: float
    instructions: float
    bound: str


def cost_of(work: Work, issue: float) -> tuple[float, str]:
    memory = work.bytes / (BANDWIDTH_REACHED * BANDWIDTH * 1e6)
    issued = work.instructions / (issue * ISSUE_RATE * 1e6)
    return max(memory, issued), "memory" if memory >= issued else "issue"


def step_of(counts: Counts, issue: float = ISSUE_REACHED, absolute: bool = True) -> dict[str, Cost]:
    works, found = work_of(counts), {}
    for name, (kernels, launches) in PASSES.items():
        plain = [kernel if absolute else kernel.removesuffix("_absolute") for kernel in kernels]
        costs = [cost_of(works[kernel], issue) for kernel in plain]
        total = sum(milliseconds for milliseconds, _ in costs) + launches * BETWEEN_KERNELS / 1e3
        bound = max(costs)[1]
        moved, issued = (
            sum(getattr(works[kernel], what) for kernel in plain) for what in ("bytes", "instructions")
        )
        found[name] = Cost(total, moved, issued, bound)
    return found


def growth_bytes(counts: Counts) -> dict[str, float]:
    """Of one densification with a budget, by what growth.cpp and rows.cpp launch; as many rows afterwards."""
    rows, behind = counts.rows, counts.rows - counts.seen
    return {
        "looking at every row": rows * (64 + 192 + 12) + behind * FIRST_MOMENTS,
        "quantile and budget by radix selection": rows * (4 * 4 + 4 + 8 * 8),
        "choosing, ties, deciding, scans": rows * (24 + 36 + 12),
        "new places and means": rows * (4 + SECTOR + 20) + behind * SECTOR,
        "Morton order": rows * (12 + 20 + MORTON_DIGITS * (8 + 2 * 12 + 5)),
        "moving five arrays": rows * (2 * TABLE_ROW + 4 * 12),
        "first moments once more, to settle harmonics": behind * HARMONICS,
    }


def growth_of(counts: Counts) -> float:
    moved = sum(growth_bytes(counts).values())
    return (
        moved / (BANDWIDTH_REACHED * BANDWIDTH * 1e6) + GROWTH_LAUNCHES * BETWEEN_KERNELS / 1e3 + GROWTH_WAITS
    )


def filter_of(counts: Counts) -> float:
    """The 3D filter: every row against every camera, and the column written."""
    arithmetic = counts.rows * CAMERAS * FLOPS_A_CAMERA / (ISSUE_REACHED * FLOAT_RATE * 1e6)
    return arithmetic + counts.rows * (64 + 64 + 8) / (BANDWIDTH_REACHED * BANDWIDTH * 1e6)


def total_of(counts: Counts, issue: float = ISSUE_REACHED, absolute: bool = True) -> float:
    between = (growth_of(counts) + filter_of(counts)) / FILTER_INTERVAL
    return sum(cost.milliseconds for cost in step_of(counts, issue, absolute).values()) + between


# ---- the page ---------------------------------------------------------------------------------------------
def kept_report() -> str:
    return (HERE / "kernel_report.md").read_text("utf-8")


def on_this_card(kernel: str) -> tuple[int, int]:
    """Registers and resident warps on sm_120, by the compiler that makes the images."""
    part = kept_report().split("## NVRTC 12.8\n")[1].split("\n## ")[0]
    row = (
        next(line for line in part.splitlines() if line.startswith(f"| {kernel} |")).strip("| ").split(" | ")
    )
    return int(row[2].split(" / ")[-1]), int(row[6].split(" / ")[-1])


def counted() -> dict[str, tuple[float, int]]:
    """Instructions a pair at 2 M as kept, and the design's bar."""
    found = re.findall(r"\| (blend_\w+) \| ([\d.]+) \| (\d+) \|", kept_report())
    return {name: (float(count), int(most)) for name, count, most in found}


def passes_table() -> list[str]:
    steps = {millions: step_of(counts) for millions, counts in SCENES.items()}
    lines = [
        "| pass | 1 M | 2 M | 4 M | bound by (2 M) | bytes at 2 M | warp instructions at 2 M |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in PASSES:
        times = " | ".join(f"{steps[millions][name].milliseconds:.2f}" for millions in SCENES)
        at = steps[2][name]
        lines.append(
            f"| {name} | {times} | {at.bound} | {at.bytes / 1e6:.0f} MB | {at.instructions / 1e6:.0f} M |"
        )
    growth = " | ".join(f"{growth_of(counts) / FILTER_INTERVAL:.2f}" for counts in SCENES.values())
    filters = " | ".join(f"{filter_of(counts) / FILTER_INTERVAL:.2f}" for counts in SCENES.values())
    totals = [total_of(counts) for counts in SCENES.values()]
    lines += [
        f"| growth, a hundredth | {growth} | memory | | |",
        f"| 3D filter, a hundredth | {filters} | arithmetic | | |",
        "| **sum, ms** | " + " | ".join(f"**{total:.1f}**" for total in totals) + " | | | |",
        "| it/s by the model | " + " | ".join(f"{1e3 / total:.0f}" for total in totals) + " | | | |",
        f"| **it/s to plan with (÷ {UNKNOWN})** | "
        + " | ".join(f"**{1e3 / total / UNKNOWN:.0f}**" for total in totals)
        + " | | | |",
        "| the design's, before the kernels were written | "
        + " | ".join(str(DESIGN[millions]) for millions in SCENES)
        + " | | | |",
    ]
    return lines


def kernels_table() -> list[str]:
    lines = [
        "| kernel | registers | warps, of 48 | instructions a pair at 2 M | the design's bar |",
        "|---|---|---|---|---|",
    ]
    bars = counted()
    for kernel in (
        "project",
        "radix_scatter",
        "emit",
        "blend_forward",
        "loss_values",
        "loss_gradient",
        "blend_backward",
        "blend_backward_absolute",
        "update",
        "take_rows",
    ):
        registers, warps = on_this_card(kernel)
        pair = PAIR_INSTRUCTIONS.get(kernel)
        count = (
            f"{bars[kernel][0]:.1f}" if kernel in bars else f"{pair[0] + 2.86 * pair[1]:.1f}" if pair else ""
        )
        lines.append(
            f"| {kernel} | {registers} | {warps} | {count} | {bars[kernel][1] if kernel in bars else ''} |"
        )
    return lines


def growth_share(counts: Counts) -> float:
    """Of the hundred steps between, growth left out."""
    return growth_of(counts) / (FILTER_INTERVAL * total_of(counts) - growth_of(counts))


def growth_lines() -> list[str]:
    every = SCENES.values()
    lines = ["| | 1 M | 2 M | 4 M |", "|---|---|---|---|"]
    for name in growth_bytes(SCENES[2]):
        lines.append(
            f"| {name}, MB | " + " | ".join(f"{growth_bytes(c)[name] / 1e6:.0f}" for c in every) + " |"
        )
    lines.append("| one growth, ms | " + " | ".join(f"{growth_of(c):.1f}" for c in every) + " |")
    lines.append(
        "| **of the steps between** | " + " | ".join(f"**{growth_share(c):.1%}**" for c in every) + " |"
    )
    return lines


def what_if() -> list[str]:
    """One assumption changed at a time, at 2 M; it/s to plan with."""
    counts = SCENES[2]
    work, usual = work_of(counts), total_of(counts)
    rate = BANDWIDTH_REACHED * BANDWIDTH * 1e6
    half = Counts(counts.rows, counts.rows / 2, counts.rows / 2, counts.pairs, WIDTH, HEIGHT, counts.subtiles)
    bf16 = usual - counts.seen * 2 * 96 / rate  # second moments of harmonics in half as many bytes
    cached = usual - counts.visible * 240 / rate  # project's reads of first moments
    rows = [
        ("as above", usual),
        ("issue slots filled to 35 % instead of 55 %", total_of(counts, LOW_ISSUE)),
        ("half of all rows seen in every step (late in training)", total_of(half)),
        ("after growth has ended: no sum of absolute gradients", total_of(counts, absolute=False)),
        ("second moments of harmonics in bf16", bf16),
        ("no moments read in project (rows current by other means)", cached),
        (
            "launches free (a graph of the step)",
            usual - sum(n for _, n in PASSES.values()) * BETWEEN_KERNELS / 1e3,
        ),
        (
            "update at 90 % of the bandwidth",
            usual - work["update"].bytes * (1 / rate - 1 / (0.9 * BANDWIDTH * 1e6)),
        ),
    ]
    lines = ["| at 2 M | ms | it/s to plan with |", "|---|---|---|"]
    return [*lines, *(f"| {name} | {each:.1f} | {1e3 / each / UNKNOWN:.0f} |" for name, each in rows)]


def page() -> str:
    text = (HERE / "estimate_page.md").read_text("utf-8")
    values = {
        "PASSES": "\n".join(passes_table()),
        "KERNELS": "\n".join(kernels_table()),
        "GROWTH": "\n".join(growth_lines()),
        "WHAT_IF": "\n".join(what_if()),
        "BANDWIDTH": f"{BANDWIDTH:.0f}",
        "ISSUE_RATE": f"{ISSUE_RATE:.0f}",
        "BANDWIDTH_REACHED": f"{BANDWIDTH_REACHED:.0%}",
        "ISSUE_REACHED": f"{ISSUE_REACHED:.0%}",
        "BETWEEN": f"{BETWEEN_KERNELS:.0f}",
        "UNKNOWN": f"{UNKNOWN}",
    }
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        PAGE.write_text(page(), "utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text("utf-8") != page():
        print(
            "docs/cards/estimate.md is not what the model gives: run python native/cuda/estimate.py",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
