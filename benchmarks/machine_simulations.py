"""How often the rule on several machines errs, and what it sees.

    python benchmarks/machine_simulations.py OUT.md

Log ratios of blocks are invented with noise that may differ between machines; one per cent is the unit.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from splatmeter.lab.compare.machines import LEVEL, heterogeneity
from splatmeter.lab.compare.ratio import evidence

TRIALS = 4000
SHAPES = ((3, 3), (3, 6), (4, 4), (4, 8), (3, 3, 3), (3, 5, 8), (4, 4, 4, 4))
NOISES = {
    "equal": (1.0, 1.0),
    "last machine 3 times as noisy": (1.0, 3.0),
    "first machine 3 times as noisy": (3.0, 1.0),
}


def drawn(
    source: random.Random, shape: Sequence[int], noise: tuple[float, float], apart: float
) -> list[list[float]]:
    """Noise goes evenly from the first machine to the last; so do the true ratios."""
    steps = len(shape) - 1
    found: list[list[float]] = []
    for place, blocks in enumerate(shape):
        deviation = noise[0] + (noise[1] - noise[0]) * place / steps
        found.append([apart * place / steps + source.gauss(0, deviation) for _ in range(blocks)])
    return found


def share(shape: Sequence[int], noise: tuple[float, float], apart: float, seed: int) -> float:
    source = random.Random(seed)
    trials = (heterogeneity(drawn(source, shape, noise, apart)) for _ in range(TRIALS))
    return sum(chance < LEVEL for chance in trials) / TRIALS


def pooled_claims(shape: Sequence[int], noise: tuple[float, float], apart: float, seed: int) -> float:
    """How often machines whose mean ratio is 1 are pooled and called faster."""
    source = random.Random(seed)
    claims = 0
    for _ in range(TRIALS):
        groups = drawn(source, shape, noise, apart)
        total = sum(map(len, groups))
        middle = sum(apart * place / (len(shape) - 1) * n for place, n in enumerate(shape)) / total
        values = [value - middle for group in groups for value in group]
        if heterogeneity(groups) >= LEVEL:
            estimate = evidence(values).main
            claims += estimate.log_mean > estimate.half_width
    return claims / TRIALS


def table() -> str:
    lines = [
        "# Several machines by simulation",
        "",
        f"Per cent of {TRIALS:,} comparisons each (standard error at most 0.8). Made by",
        "`benchmarks/machine_simulations.py`. Machines agree unless Brown and Forsythe's test says otherwise",
        f"at {100 * LEVEL:.0f} %; *apart* is the distance of true ratios in units of the noise of a block.",
        "",
        "| blocks on each machine | noise | said to disagree, equal | apart by 2 | apart by 5 |"
        " pooled *faster*, equal | pooled *faster*, mean 1, apart by 2 |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, shape in enumerate(SHAPES):
        for name, noise in NOISES.items():
            cells = [share(shape, noise, apart, 7 * number) for apart in (0.0, 2.0, 5.0)]
            cells += [pooled_claims(shape, noise, apart, 7 * number + 1) for apart in (0.0, 2.0)]
            figures = " | ".join(f"{100 * cell:.1f}" for cell in cells)
            lines.append(f"| {' + '.join(map(str, shape))} | {name} | {figures} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.parse_args().out.write_text(table(), "utf-8")
