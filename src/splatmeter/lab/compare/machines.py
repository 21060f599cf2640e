"""Several machines in one comparison: each is a stratum with its own ratio, pooled only where they agree.

Whether they agree is a test that was fixed before any run: Brown and Forsythe's F over the log ratios of
blocks, at 10 %, with at least three blocks on every machine. Unlike the plain F test it does not ask machines
to be equally noisy, and with few blocks it keeps its level better than Welch's
(benchmarks/results/machine_simulations.md). Ten per cent instead of five, because few blocks see little.

- They agree: all blocks are one sample. What is left of a difference between machines is in its spread.
- They do not, or a machine has too few blocks to tell: there is no common ratio and no pooled verdict. The
  ratios of the machines stand side by side; *faster* needs every one of them to show it by itself.
- A machine that is shown to lose, at a level that all machines share, decides the verdict by itself.

A block whose arms ran on different machines is no block: it is left out, and said.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from splatmeter.lab.compare.aim_figures import NOTHING_KNOWN, Figure
from splatmeter.lab.compare.assemble import Rules
from splatmeter.lab.compare.comparison import Agreement, Comparison
from splatmeter.lab.compare.quality import QUALITY_GAIN
from splatmeter.lab.compare.ratio import Estimate, SpeedEvidence
from splatmeter.lab.samples.averages import deviation_of, mean
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.run_sample import RunSample
from splatmeter.lab.samples.student import variance_ratio_tail

LEVEL = 0.10
FEWEST_ON_A_MACHINE = 3
APART = "machines apart"
"""The method where there is no estimate: machines disagree, or it cannot be told whether they do."""

Whole = Callable[[Sequence[RunSample], Rules], Comparison]
Differences = Callable[[Sequence[RunSample]], Sequence[float]]


def compare_machines(
    runs: Sequence[RunSample],
    whole: Whole,
    differences: Differences,
    rules: Rules,
    rules_of: Callable[[str], Rules] = lambda machine: Rules(),
) -> Comparison:
    """`whole` compares runs as if they were of one machine, `differences` gives their log ratios by block."""
    names = machine_names(runs)
    if len(names) < 2:
        return whole(runs, rules)
    parts = [
        _named(whole(of_machine(runs, machine), rules_of(machine)), name) for machine, name in names.items()
    ]
    joint = whole(runs, rules)
    groups = {name: differences(of_machine(runs, machine)) for machine, name in names.items()}
    agreed = agreement(groups)
    return dataclasses.replace(
        joint,
        speed=joint.speed if agreed.holds else SpeedEvidence(_no_estimate(sum(map(len, groups.values())))),
        findings=(
            *rules.findings,
            *(finding for part in parts for finding in part.findings),
            *(finding for finding in joint.findings if finding.kind == QUALITY_GAIN),
        ),
        figures=tuple(_figure(figure, place, parts) for place, figure in enumerate(joint.figures)),
        machines=tuple(parts),
        agreement=agreed,
    )


def machine_names(runs: Sequence[RunSample]) -> dict[str, str]:
    """What each machine is called, in a sentence; in an order that does not depend on who ran first."""
    machines = sorted({run.machine for run in runs})
    length = 4
    while len({machine[:length] for machine in machines}) < len(machines) and length < 40:
        length += 1
    return {machine: f"machine {machine[:length]}" for machine in machines}


def of_machine(runs: Sequence[RunSample], machine: str) -> list[RunSample]:
    return [run for run in runs if run.machine == machine]


def whole_blocks(runs: Sequence[RunSample]) -> list[RunSample]:
    """Without blocks of which a part ran elsewhere."""
    split = split_blocks(runs)
    return [run for run in runs if run.block not in split]


def split_blocks(runs: Sequence[RunSample]) -> set[int]:
    machines: dict[int, set[str]] = {}
    for run in runs:
        machines.setdefault(run.block, set()).add(run.machine)
    return {block for block, found in machines.items() if len(found) > 1}


def agreement(
    groups: Mapping[str, Sequence[float]], what: str = "speed", resolution: float = 0.0
) -> Agreement:
    """Whether log ratios by block (or by seed) are the same on all machines, as far as can be told."""
    few = [name for name, values in groups.items() if len(values) < FEWEST_ON_A_MACHINE]
    if few:
        count = len(groups[few[0]])
        blocks = f"{count} block{'s' if count != 1 else ''}"
        return Agreement(
            False,
            math.nan,
            f"{few[0][:1].upper()}{few[0][1:]} has {blocks}, too few to tell whether it agrees with the "
            f"others in {what}; {FEWEST_ON_A_MACHINE} on each machine are the fewest.",
        )
    chance = heterogeneity(list(groups.values()), resolution)
    told = f"Brown-Forsythe p = {chance:.2g}, {'not ' if chance >= LEVEL else ''}below {100 * LEVEL:.0f} %"
    if chance >= LEVEL:
        return Agreement(True, chance, f"The {len(groups)} machines agree in {what} ({told}).")
    return Agreement(False, chance, f"The {len(groups)} machines disagree in {what} ({told}).")


def heterogeneity(groups: Sequence[Sequence[float]], resolution: float = 0.0) -> float:
    """How often equal machines look this different, by Brown and Forsythe (1974): variances may differ."""
    sizes, centers = [len(group) for group in groups], [mean(group) for group in groups]
    if max(centers) - min(centers) <= 2 * resolution + 1e-12:
        return 1.0
    total = sum(sizes)
    grand = math.fsum(n * m for n, m in zip(sizes, centers, strict=True)) / total
    between = math.fsum(n * (m - grand) ** 2 for n, m in zip(sizes, centers, strict=True))
    within = [(1 - len(group) / total) * deviation_of(group) ** 2 for group in groups]
    spread = math.fsum(within)
    if spread <= 0.0:
        return 0.0
    degrees = 1.0 / math.fsum((w / spread) ** 2 / (n - 1) for w, n in zip(within, sizes, strict=True))
    return variance_ratio_tail(between / spread, len(groups) - 1, degrees)


def _no_estimate(blocks: int) -> Estimate:
    """Nobody may take a mean over machines that disagree for a ratio of its own."""
    return Estimate(f"{APART}, {blocks} blocks", 0, math.nan, math.nan, math.inf, math.inf)


def _figure(figure: Figure, place: int, parts: Sequence[Comparison]) -> Figure:
    """A figure of an aim, without its estimate where machines disagree in it."""
    own = [(part.machine, part.figures[place]) for part in parts if place < len(part.figures)]
    groups = {machine: list(found.samples.values()) for machine, found in own}
    if len(groups) < len(parts):
        told = Agreement(False, math.nan, f"The {figure.name} was not observed on every machine.")
    else:
        told = agreement(groups, figure.name, figure.estimate.resolution)
    if told.holds:
        return figure
    return dataclasses.replace(figure, estimate=NOTHING_KNOWN, lacking=(*figure.lacking, told.sentence))


def _named(part: Comparison, name: str) -> Comparison:
    """Sentences that leave their machine must say which it was."""
    return dataclasses.replace(
        part, machine=name, findings=tuple(_on_machine(finding, name) for finding in part.findings)
    )


def _on_machine(finding: Finding, name: str) -> Finding:
    return dataclasses.replace(finding, sentence=f"On {name}: {finding.sentence}")
