"""The rule on several machines keeps its promises, and its arithmetic is that of the textbook."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from splatmeter.lab.compare.assemble import Rules, compare
from splatmeter.lab.compare.machines import (
    FEWEST_ON_A_MACHINE,
    LEVEL,
    agreement,
    compare_machines,
    heterogeneity,
    machine_names,
    split_blocks,
)
from splatmeter.lab.compare.ratio import log_ratios
from splatmeter.lab.compare.verdict import judge
from splatmeter.lab.samples.run_sample import Arm, Evaluation, RunSample
from splatmeter.lab.samples.verdict_kinds import VerdictKind

TRIALS = 1500


def test_two_machines_are_compared_as_by_welch() -> None:
    """Of two groups Brown and Forsythe's test is Welch's t test."""
    a, b = [3.0, 4.0, 1.0, 2.1, 3.4], [5.2, 3.9, 4.8, 3.3, 6.9, 2.7, 5.0]
    means, sizes = [sum(g) / len(g) for g in (a, b)], [len(a), len(b)]
    errors = [statistics.variance(g) / len(g) for g in (a, b)]
    t = (means[0] - means[1]) / math.sqrt(sum(errors))
    degrees = sum(errors) ** 2 / sum(e * e / (n - 1) for e, n in zip(errors, sizes, strict=True))
    from splatmeter.lab.samples.student import cdf

    assert heterogeneity([a, b]) == pytest.approx(2 * cdf(-abs(t), degrees), rel=1e-9)


@pytest.mark.parametrize("shape", [(3, 3), (3, 6), (4, 8), (3, 3, 3), (3, 5, 8)])
@pytest.mark.parametrize("noise", [(1.0, 1.0), (1.0, 3.0), (3.0, 1.0)])
def test_equal_machines_are_seldom_said_to_disagree(
    shape: tuple[int, ...], noise: tuple[float, float]
) -> None:
    """At most 10 %, whichever machine is noisy: 2 % more where the noisy one has the fewest blocks."""
    source = random.Random(str((shape, noise)))
    steps = len(shape) - 1
    deviations = [noise[0] + (noise[1] - noise[0]) * place / steps for place in range(len(shape))]
    said = 0
    for _ in range(TRIALS):
        groups = [[source.gauss(0, d) for _ in range(n)] for d, n in zip(deviations, shape, strict=True)]
        said += heterogeneity(groups) < LEVEL
    allowed = LEVEL + (0.02 if noise[0] > noise[1] and shape[0] < shape[-1] else 0.0)
    assert said / TRIALS <= allowed + 4 * math.sqrt(allowed * (1 - allowed) / TRIALS)


def test_machines_far_apart_are_told_apart() -> None:
    groups = {"a": [0.0, 0.01, -0.01, 0.0], "b": [0.3, 0.31, 0.29, 0.3]}
    assert not agreement(groups).holds and "disagree" in agreement(groups).sentence


def test_without_any_spread_equal_is_equal_and_different_is_different() -> None:
    assert heterogeneity([[0.1] * 3, [0.1] * 3]) == 1.0
    assert heterogeneity([[0.1] * 3, [0.2] * 3]) < 1e-12
    assert heterogeneity([[0.1] * 3, [0.2] * 3], resolution=0.06) == 1.0


def test_too_few_blocks_are_no_agreement() -> None:
    few = agreement({"machine a": [0.0] * 9, "machine b": [0.0] * (FEWEST_ON_A_MACHINE - 1)})
    assert not few.holds and few.sentence.startswith("Machine b has 2 blocks, too few")


def run(machine: str, block: int, arm: str, seconds: float) -> RunSample:
    evaluations = (Evaluation(100, "test", {"psnr": 26.0 + 0.01 * block}, model_sha256=f"m{block}"),)
    return RunSample(
        Arm(arm), block, 0, seconds, 100, 1000, 1000, f"{machine}/{block}/{arm}", seed=block, machine=machine,
        last_step=100, evaluations=evaluations, model_sha256=f"m{block}",
    )  # fmt: skip


def judged(ratios: dict[str, list[float]]) -> VerdictKind:
    runs: list[RunSample] = []
    for machine, values in ratios.items():
        for ratio in values:
            block = len(runs) // 2
            runs += [run(machine, block, "a", ratio), run(machine, block, "b", 1.0)]
    found = compare_machines(
        runs,
        lambda runs, rules: compare(runs, "a", "b", rules),
        lambda runs: log_ratios(runs, "a", "b"),
        Rules(),
    )
    return judge(found).kind


def test_the_verdict_follows_the_machines() -> None:
    near = [0.999, 1.001, 1.0, 1.002]
    fast, slow = [1.1 * value for value in near], [0.9 * value for value in near]
    assert judged({"m": fast, "n": fast}) is VerdictKind.FASTER
    assert judged({"m": near, "n": near}) is VerdictKind.NO_SPEED_UP
    assert judged({"m": fast, "n": near}) is VerdictKind.UNDECIDED
    assert judged({"m": fast, "n": slow}) is VerdictKind.SLOWER
    assert judged({"m": fast, "n": [1.5 * value for value in near]}) is VerdictKind.FASTER
    assert judged({"m": fast, "n": fast[:2]}) is VerdictKind.UNDECIDED


def test_names_are_as_short_as_they_can_be_told_apart() -> None:
    runs = [run(machine, 0, "a", 1.0) for machine in ("abcdef", "abcdxx", "123456")]
    assert list(machine_names(runs).values()) == ["machine 12345", "machine abcde", "machine abcdx"]
    assert split_blocks(runs) == {0}
