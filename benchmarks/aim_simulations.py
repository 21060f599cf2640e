"""The rules on aims other than speed, and on several scenes, on thousands of invented comparisons.

Writes results/aim_simulations.md. Every case is judged by the product's own functions, from invented samples
to the verdict. Nothing here trains anything; --trials makes it quicker or finer.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from splatmeter.lab.compare.aim_figures import Figure, How, estimated
from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.metric import judge_metric
from splatmeter.lab.compare.noise import NoiseFloor
from splatmeter.lab.compare.peak_figures import MARK_BYTES
from splatmeter.lab.compare.ratio import evidence
from splatmeter.lab.compare.trajectory import Goal, trajectory_figure
from splatmeter.lab.compare.verdict import judge
from splatmeter.lab.samples.aim import Aim
from splatmeter.lab.samples.run_sample import Arm, Evaluation, RunSample
from splatmeter.lab.samples.verdict_kinds import VerdictKind

RESULTS = Path(__file__).parent / "results" / "aim_simulations.md"
SAME = (judge_metric(("psnr", "test", 200), [(26.0, 26.0)], True, 0.005),)
"""Equal quality is given: its gate has simulations of its own."""
RESOLUTION = 2 * MARK_BYTES / 1e9
"""Of peaks of a gigabyte in both arms."""
GRID = tuple(range(20, 201, 20))
Case = Callable[[np.random.Generator], Comparison]


def shares(case: Case, trials: int, seed: int = 1) -> Counter[VerdictKind]:
    generator = np.random.default_rng(seed)
    return Counter(judge(case(generator)).kind for _ in range(trials))


# Memory


def memory(
    blocks: int,
    saving: float = 0.0,
    spread: float = 0.01,
    slow_down: float = 0.0,
    noise: float = 0.01,
    training: float = 0.0,
    control: bool = False,
    aim: Aim = Aim.MEMORY,
) -> Case:
    """`saving`, `slow_down` and `training` (more memory there) are true log ratios."""

    def figure(g: np.random.Generator, name: str, truth: float) -> Figure:
        floor = None
        if control:
            twins = estimated(dict(enumerate(spread * g.standard_normal(blocks))), How(0.025, RESOLUTION))
            floor = NoiseFloor(twins)
        samples = dict(enumerate(truth + spread * g.standard_normal(blocks)))
        estimate = estimated(samples, How(0.025, RESOLUTION, noise=floor))
        return Figure(name, samples, estimate, 1e9, 1e9, "bytes", noise=floor)

    def case(g: np.random.Generator) -> Comparison:
        speed = evidence((-slow_down + noise * g.standard_normal(blocks)).tolist())
        figures = figure(g, "training peak", -training), figure(g, "evaluation peak", saving)
        return Comparison("A", "B", speed, SAME, aim=aim, figures=figures)

    return case


# Curves over time


def run(arm: str, seed: int, curve: Sequence[float], each: float) -> RunSample:
    evaluations = tuple(
        Evaluation(step, "test", {"psnr": psnr}, clock_seconds=step * each)
        for step, psnr in zip(GRID, curve, strict=True)
    )
    return RunSample(Arm(arm), seed, 0, 200 * each, 200, 1, 1, seed=seed, evaluations=evaluations)


def curve(
    seeds: int,
    aim: Aim,
    speed_up: float = 0.0,
    target: float = 24.0,
    noise: float = 0.02,
    luck: float = 0.1,
    wobble: float = 0.03,
) -> Case:
    """PSNR rises to 26 dB as 1 - exp(-t); seeds have `luck` (dB, shared by half), evaluations a `wobble`."""

    def case(g: np.random.Generator) -> Comparison:
        runs: list[RunSample] = []
        steps = np.array(GRID)
        for seed in range(seeds):
            shared = luck * g.standard_normal() / math.sqrt(2)
            for arm, gain in (("A", 0.0), ("B", speed_up)):
                own = shared + luck * g.standard_normal() / math.sqrt(2)
                psnr = 18 + 8 * (1 - np.exp(-steps / 60)) + own + wobble * g.standard_normal(len(GRID))
                runs.append(run(arm, seed, psnr.tolist(), 0.1 * math.exp(noise * g.standard_normal() - gain)))
        goal = Goal(target, 10.0, steps=GRID)
        figure = trajectory_figure(runs, "A", "B", aim, goal, None)
        return Comparison("A", "B", evidence([0.0] * 4), SAME, aim=aim, figures=(figure,))

    return case


# Scenes


def scenes(
    count: int, blocks: int, effects: Sequence[float], noise: float = 0.02, alike: float = 0.5
) -> Case:
    """Log ratios of `count` scenes whose noises share a part; `effects` are repeated over the scenes."""

    def case(g: np.random.Generator) -> Comparison:
        shared = math.sqrt(alike) * g.standard_normal((blocks, 1))
        own = math.sqrt(1 - alike) * g.standard_normal((blocks, count))
        truth = np.array([effects[i % len(effects)] for i in range(count)])
        d = truth + noise * (shared + own)
        parts = tuple(
            Comparison("A", "B", evidence(d[:, i].tolist()), SAME, scene=f"scene {i + 1}")
            for i in range(count)
        )
        return Comparison("A", "B", evidence(d.mean(1).tolist()), SAME, scenes=parts)

    return case


FALSE: dict[str, tuple[Case, VerdictKind]] = {
    **{
        f"equal peaks, spread {100 * spread:g} %, {blocks} blocks": (
            memory(blocks, spread=spread), VerdictKind.LEANER)
        for blocks in (4, 6, 10) for spread in (0.0, 0.005, 0.03)
    },
    "equal peaks, spread 3 %, 6 blocks, with an A/A": (
        memory(6, spread=0.03, control=True), VerdictKind.LEANER),
    "saves 20 %, slower by just the margin of 2 %, 6 blocks": (
        memory(6, math.log(1.25), slow_down=-math.log(0.98)), VerdictKind.LEANER),
    "saves 20 % in evaluation, costs just the margin in training, 6 blocks": (
        memory(6, math.log(1.25), training=-math.log(0.98)), VerdictKind.LEANER),
    "half a high-water mark's resolution, no spread, 6 blocks": (
        memory(6, RESOLUTION / 2, spread=0.0), VerdictKind.LEANER),
    "aim both, nothing changed, 6 blocks: faster": (
        memory(6, spread=0.03, aim=Aim.BOTH), VerdictKind.FASTER),
    "aim both, nothing changed, 6 blocks: leaner": (
        memory(6, spread=0.03, aim=Aim.BOTH), VerdictKind.LEANER),
    **{f"equal curves, {seeds} seeds": (curve(seeds, Aim.TIME), VerdictKind.SOONER) for seeds in (4, 6, 10)},
    "equal curves, target reached by every other run, 6 seeds": (
        curve(6, Aim.TIME, target=25.71), VerdictKind.SOONER),
    "equal curves, target almost never reached, 6 seeds": (
        curve(6, Aim.TIME, target=25.9), VerdictKind.SOONER),
    **{f"equal curves after 10 s, {seeds} seeds": (curve(seeds, Aim.QUALITY), VerdictKind.BETTER)
       for seeds in (4, 6, 10)},
    **{f"{count} equal scenes, {blocks} blocks": (scenes(count, blocks, (0.0,)), VerdictKind.FASTER)
       for count, blocks in ((3, 4), (3, 6), (9, 6))},
    "9 equal scenes, 6 blocks: slower on one of them": (scenes(9, 6, (0.0,)), VerdictKind.SLOWER),
}  # fmt: skip
"""Nothing was gained; the verdict that would be false."""

TRUE: dict[str, tuple[Case, VerdictKind]] = {
    **{
        f"saves 10 %, spread 1 %, s_d of speed {100 * noise:g} %, {blocks} blocks": (
            memory(blocks, -math.log(0.9), noise=noise), VerdictKind.LEANER)
        for noise in (0.01, 0.02) for blocks in (6, 10)
    },
    "saves 50 %, no spread, s_d of speed 1 %, 6 blocks": (
        memory(6, math.log(2), spread=0.0), VerdictKind.LEANER),
    "uses 10 % more, 6 blocks": (memory(6, math.log(0.9)), VerdictKind.MORE_MEMORY),
    "equal peaks without spread, 10 blocks": (memory(10, spread=0.0), VerdictKind.NO_GAIN),
    **{f"10 % less time to 24 dB, {seeds} seeds": (curve(seeds, Aim.TIME, -math.log(0.9)), VerdictKind.SOONER)
       for seeds in (6, 10)},
    **{f"20 % less time to 24 dB, {seeds} seeds": (curve(seeds, Aim.TIME, -math.log(0.8)), VerdictKind.SOONER)
       for seeds in (4, 6)},
    "20 % less time after 10 s of training, 6 seeds": (
        curve(6, Aim.QUALITY, -math.log(0.8)), VerdictKind.BETTER),
    "3 scenes, 3 % faster in each, 6 blocks": (scenes(3, 6, (0.03,)), VerdictKind.FASTER),
    "3 scenes, 20 % faster in two and 10 % slower in one, 6 blocks": (
        scenes(3, 6, (0.2, 0.2, -0.1)), VerdictKind.SLOWER),
}  # fmt: skip
"""Something is there; the verdict that should be found."""


def table(cases: dict[str, tuple[Case, VerdictKind]], trials: int) -> str:
    lines = ["| truth | verdict | per cent |", "|---|---|---|"]
    for name, (case, kind) in cases.items():
        share = shares(case, trials)[kind] / trials
        error = math.sqrt(max(share * (1 - share), 1 / trials) / trials)
        lines.append(f"| {name} | {kind.value} | {100 * share:.1f} ± {100 * error:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=2000)
    trials = parser.parse_args().trials
    parts = [
        "# Aims and scenes by simulation",
        f"Per cent with standard errors, of {trials:,} comparisons each, quality equal. Made by "
        "`benchmarks/aim_simulations.py`.",
        "## Nothing was gained: how often it is claimed all the same (at most 5)",
        table(FALSE, trials),
        "## Something is there: how often it is found",
        table(TRUE, trials),
    ]
    RESULTS.write_text("\n\n".join([*parts, ""]), "utf-8")
    print(RESULTS)


if __name__ == "__main__":
    main()
