"""`--until-decided` looks at speed after every block and at quality once: why, and that its promise holds."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from test_by_simulation import JITTER, REGIMES, at_most, paired_up
from test_by_simulation import experiment as experiment_of

from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.metric import MetricResult, Quality, judge_metric
from splatmeter.lab.compare.noise import noise_floor
from splatmeter.lab.compare.quality import QUALITY_GAIN
from splatmeter.lab.compare.ratio import evidence
from splatmeter.lab.compare.sequential import evidence_so_far
from splatmeter.lab.compare.verdict import judge, may_stop
from splatmeter.lab.plan.block_orders import next_orders
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.verdict_kinds import VerdictKind

TOLERANCE = 0.005
MOST_BLOCKS = 60


def psnr(gains: np.ndarray) -> MetricResult:
    """Seeds spread by 0.1 dB; `gains` are fractions."""
    pairs = [(26.0, 26.0 * (1 + float(gain))) for gain in gains]
    return judge_metric(("psnr", "test", 3100), pairs, False, TOLERANCE)


def looked_at(speeds: np.ndarray, gains: np.ndarray) -> Comparison:
    return Comparison("A", "B", evidence_so_far(speeds.tolist()), (psnr(gains),))


def experiment(generator: np.random.Generator, loss: float) -> tuple[np.ndarray, np.ndarray]:
    speeds = 0.03 + 0.03 * generator.standard_normal(MOST_BLOCKS)
    return speeds, -loss + 0.004 * generator.standard_normal(MOST_BLOCKS)


def stopped(speeds: np.ndarray, gains: np.ndarray) -> Comparison:
    """As `lab ab --until-decided` does it, a fresh seed in every block."""
    looks = (looked_at(speeds[:n], gains[:n]) for n in range(4, MOST_BLOCKS + 1))
    return next((look for look in looks if may_stop(look)), looked_at(speeds, gains))


def test_quality_judged_at_the_stop_errs_no_more_often_than_promised() -> None:
    """The true loss is the tolerance itself: neither *held* nor *lost* may be said in more than 5 %."""
    trials, held, lost = 400, 0, 0
    generator = np.random.default_rng(8)
    for _ in range(trials):
        found = stopped(*experiment(generator, TOLERANCE)).quality[0].quality
        held += found is Quality.NON_INFERIOR
        lost += found is Quality.LOST
    assert at_most(0.05, held, trials), f"{held} held"
    assert at_most(0.05, lost, trials), f"{lost} lost"


def test_stopping_as_soon_as_quality_pleases_would_err_far_more_often() -> None:
    """The rule that was here before; without this the test above would prove nothing."""
    trials, wrong = 100, 0
    generator = np.random.default_rng(8)
    for _ in range(trials):
        gains = experiment(generator, TOLERANCE)[1]
        looks = (psnr(gains[:n]).quality for n in range(4, MOST_BLOCKS + 1))
        wrong += any(look is Quality.LOST for look in looks)
    assert wrong > 0.10 * trials


def test_a_loss_of_quality_alone_never_ends_the_session() -> None:
    unclear = np.array([0.06, -0.05, 0.08, -0.02, 0.05, -0.03])
    look = looked_at(unclear, np.full(6, -0.05))
    assert judge(look).kind is VerdictKind.QUALITY_LOST and not may_stop(look)


def test_a_gain_of_quality_alone_never_ends_the_session_but_another_objection_does() -> None:
    look = looked_at(np.array([0.06, -0.05, 0.08, -0.02, 0.05, -0.03]), np.zeros(6))
    gain = dataclasses.replace(look, findings=(Finding(QUALITY_GAIN, "Better.", Severity.DOUBT),))
    leak = dataclasses.replace(look, findings=(Finding("leaked test views", "Seen.", Severity.WRONG),))
    assert not may_stop(gain) and may_stop(leak)


@pytest.mark.parametrize("effect", [0.1, -0.1, 0.0])
def test_speed_that_is_decided_ends_the_session(effect: float) -> None:
    speeds = effect + 0.002 * np.random.default_rng(1).standard_normal(8)
    assert may_stop(looked_at(speeds, np.zeros(8)))


def test_an_a_a_that_failed_ends_the_session() -> None:
    control = noise_floor(evidence([0.05, 0.051, 0.049, 0.05]))
    look = looked_at(np.array([0.06, -0.05, 0.08, -0.02, 0.05, -0.03]), np.zeros(6))
    assert may_stop(dataclasses.replace(look, noise=control))


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("blocks", [4, 10])
def test_a_difference_at_the_tolerated_limit_is_rarely_called_equal_in_any_regime(
    regime: str, blocks: int
) -> None:
    trials = 300
    estimates = [
        evidence(experiment_of(REGIMES[regime], blocks, seed, math.log(1.02))).main for seed in range(trials)
    ]
    assert at_most(0.05, sum(estimate.interval_90.inside(0.98, 1.02) for estimate in estimates), trials)


@pytest.mark.parametrize("regime", REGIMES)
def test_the_whole_rule_seldom_stops_on_a_difference_that_is_not_there(regime: str) -> None:
    """Looked at after every block up to the twentieth, equal quality given."""
    trials, wrong = 100, 0
    same = (judge_metric(("psnr", "test", 3100), [(26.0, 26.0)], True, TOLERANCE),)
    for seed in range(trials):
        generator = np.random.default_rng(seed)
        times = REGIMES[regime](generator, 40) + JITTER * generator.standard_normal(40)
        speeds = paired_up(times, next_orders("AB", 0, 20, seed), 0.0)
        looks = [Comparison("A", "B", evidence_so_far(speeds[:n]), same) for n in range(4, 21)]
        last = next((look for look in looks if may_stop(look)), looks[-1])
        wrong += judge(last).kind in (VerdictKind.FASTER, VerdictKind.SLOWER)
    assert at_most(0.05, wrong, trials)
