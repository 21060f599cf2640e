"""The rules cry wolf no more often than they promise, in every noise regime of the procedure.

Times are invented for 2n runs in a row and handed to the arms in the order the lab would run them. A rate may
exceed its promise by four binomial standard errors: a correct rule fails such a test once in 30,000.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.metric import Quality, judge_metric
from splatmeter.lab.compare.power import power_of_equivalence, power_to_detect
from splatmeter.lab.compare.ratio import Estimate, evidence, paired, trimmed
from splatmeter.lab.compare.sequential import anytime, half_width
from splatmeter.lab.compare.verdict import judge
from splatmeter.lab.plan.block_orders import block_orders, next_orders
from splatmeter.lab.samples.verdict_kinds import VerdictKind

JITTER = 0.008
Noise = Callable[[np.random.Generator, int], NDArray[np.float64]]


def white(generator: np.random.Generator, runs: int) -> NDArray[np.float64]:
    return 0.01 * generator.standard_normal(runs)


def autoregressive(generator: np.random.Generator, runs: int) -> NDArray[np.float64]:
    shocks = 0.02 * np.sqrt(1 - 0.8**2) * generator.standard_normal(runs)
    values = np.empty(runs)
    values[0] = 0.02 * generator.standard_normal()
    for i in range(1, runs):
        values[i] = 0.8 * values[i - 1] + shocks[i]
    return values


def drift(generator: np.random.Generator, runs: int) -> NDArray[np.float64]:
    return -0.004 * np.arange(runs)


def step(generator: np.random.Generator, runs: int) -> NDArray[np.float64]:
    return 0.05 * (np.arange(runs) >= generator.integers(1, runs))


def spikes(generator: np.random.Generator, runs: int) -> NDArray[np.float64]:
    return 8 * JITTER * (generator.random(runs) < 0.1)


def heavy_tails(generator: np.random.Generator, runs: int) -> NDArray[np.float64]:
    return 0.01 * generator.standard_t(3, runs)


REGIMES: dict[str, Noise] = {
    "white": white,
    "AR(1)": autoregressive,
    "drift": drift,
    "step": step,
    "spikes": spikes,
    "t3": heavy_tails,
}


def experiment(noise: Noise, blocks: int, seed: int, effect: float = 0.0) -> list[float]:
    """Log ratios of one A/B experiment; `effect` is ln of the true speed-up."""
    generator = np.random.default_rng(seed)
    log_times = noise(generator, 2 * blocks) + JITTER * generator.standard_normal(2 * blocks)
    return paired_up(log_times, block_orders("AB", blocks, seed), effect)


def paired_up(log_times: NDArray[np.float64], orders: list[tuple[str, ...]], effect: float) -> list[float]:
    result = []
    for block, order in enumerate(orders):
        at = {arm: float(log_times[2 * block + place]) for place, arm in enumerate(order)}
        result.append(at["A"] - at["B"] + effect)
    return result


def at_most(promise: float, hits: int, trials: int) -> bool:
    return hits / trials <= promise + 4 * math.sqrt(promise * (1 - promise) / trials)


def claims(estimates: list[Estimate]) -> tuple[int, int]:
    """How many say faster, and how many say faster or slower."""
    faster = sum(e.interval_95.low > 1 for e in estimates)
    return faster, faster + sum(e.interval_95.high < 1 for e in estimates)


def check_false_alarms(regime: str, blocks: int, trials: int) -> None:
    samples = [experiment(REGIMES[regime], blocks, seed) for seed in range(trials)]
    for method in (paired, trimmed) if blocks >= 8 else (paired,):
        faster, either = claims([method(sample) for sample in samples])
        assert at_most(0.05, either, trials), f"{method.__name__}: {either} of {trials}"
        assert at_most(0.05, faster, trials)
    equal = [evidence(sample) for sample in samples]
    faster = sum(e.main.interval_95.low > 1 and not e.disagreement for e in equal)
    assert at_most(0.05, faster, trials)


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("blocks", [4, 6, 10])
def test_two_equal_arms_are_rarely_called_different(regime: str, blocks: int) -> None:
    check_false_alarms(regime, blocks, trials=600)


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("blocks", [4, 6, 8, 10, 20])
def test_thousands_of_equal_arms_are_rarely_called_different(regime: str, blocks: int) -> None:
    check_false_alarms(regime, blocks, trials=5000)


def test_running_all_of_one_arm_first_is_what_the_order_protects_from() -> None:
    """The same drift, the usual way: without this the tests above would prove nothing."""
    wrong = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        times = drift(generator, 20) + JITTER * generator.standard_normal(20)
        estimate = paired([float(a - b) for a, b in zip(times[:10], times[10:], strict=True)])
        wrong += estimate.interval_95.low > 1
    assert wrong > 150


def white_experiments(blocks: int, deviation: float, effect: float, trials: int) -> list[list[float]]:
    generator = np.random.default_rng(blocks)
    return (effect + deviation * generator.standard_normal((trials, blocks))).tolist()


@pytest.mark.parametrize(("effect", "blocks"), [(0.02, 5), (0.01, 13)])
def test_a_real_speed_up_is_found_as_often_as_promised(effect: float, blocks: int) -> None:
    trials = 1500
    samples = white_experiments(blocks, 0.01, effect, trials)
    found, _ = claims([paired(sample) for sample in samples])
    expected = power_to_detect(effect, 0.01, blocks)
    assert expected >= 0.9
    assert abs(found / trials - expected) < 4 * math.sqrt(0.1 * 0.9 / trials)


@pytest.mark.parametrize(("tolerated", "blocks"), [(0.01, 13), (0.005, 46)])
def test_equality_is_proved_as_often_as_promised(tolerated: float, blocks: int) -> None:
    trials = 1500
    samples = white_experiments(blocks, 0.01, 0.0, trials)
    proved = sum(paired(s).interval_90.inside(1 - tolerated, 1 + tolerated) for s in samples)
    expected = power_of_equivalence(0.0, 0.01, blocks, tolerated)
    assert expected >= 0.9
    assert abs(proved / trials - expected) < 4 * math.sqrt(0.1 * 0.9 / trials)


def test_a_difference_at_the_tolerated_limit_is_rarely_called_equal() -> None:
    trials = 1500
    samples = white_experiments(10, 0.01, math.log(1.02), trials)
    wrong = sum(paired(s).interval_90.inside(0.98, 1.02) for s in samples)
    assert at_most(0.05, wrong, trials)


def first_claim(log_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row the block at which looking after every block first excludes 1; inf if never."""
    counts = np.arange(1, log_ratios.shape[1] + 1)
    sums, squares = log_ratios.cumsum(1), (log_ratios**2).cumsum(1)
    unit = np.array([half_width(1.0, int(n), 0.05) for n in counts])
    spread = np.maximum(squares - sums**2 / counts, 0.0)
    with np.errstate(invalid="ignore"):
        width = np.where(np.isinf(unit), np.inf, unit * np.sqrt(spread))
    claimed = np.abs(sums / counts) > width
    return np.where(claimed.any(1), claimed.argmax(1) + 1.0, np.inf)


def test_the_vectorised_look_is_the_product_s_own() -> None:
    row = np.random.default_rng(3).normal(0.02, 0.02, 40)
    product = next(n for n in range(1, 41) if abs((e := anytime(row[:n].tolist())).log_mean) > e.half_width)
    assert first_claim(row[None])[0] == product


@pytest.mark.parametrize(("blocks", "promise"), [(10, 0.011), (20, 0.019), (100, 0.031)])
def test_looking_after_every_block_stays_honest(blocks: int, promise: float) -> None:
    trials = 20_000
    stops = first_claim(np.random.default_rng(11).standard_normal((trials, blocks)))
    alarms = int(np.isfinite(stops).sum())
    # The promises are printed to a tenth of a percent and were themselves simulated.
    assert at_most(promise + 0.001, alarms, trials)


@pytest.mark.parametrize(("effect", "median"), [(0.10, 6), (0.03, 12)])
def test_a_real_effect_stops_the_experiment_when_promised(effect: float, median: int) -> None:
    rows = np.random.default_rng(5).normal(math.log1p(effect), 0.03, (4000, 200))
    assert abs(statistics.median(first_claim(rows)) - median) <= 1


def check_peeking(regime: str, trials: int) -> None:
    blocks, rows = 20, []
    for seed in range(trials):
        generator = np.random.default_rng(seed)
        times = REGIMES[regime](generator, 2 * blocks) + JITTER * generator.standard_normal(2 * blocks)
        rows.append(paired_up(times, next_orders("AB", 0, blocks, seed), 0.0))
    alarms = int(np.isfinite(first_claim(np.array(rows))).sum())
    assert at_most(0.05, alarms, trials), f"{alarms} of {trials}"


@pytest.mark.parametrize("regime", REGIMES)
def test_looking_after_every_block_stays_honest_in_every_regime(regime: str) -> None:
    check_peeking(regime, trials=300)


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES)
def test_thousands_of_experiments_stay_honest_in_every_regime(regime: str) -> None:
    check_peeking(regime, trials=4000)


def verdicts(blocks: int, deviation: float, effect: float, trials: int) -> Counter[VerdictKind]:
    """What the whole rule says, equal quality given."""
    same = (judge_metric(("psnr", "test", 3100), [(26.0, 26.0)], True, 0.005),)
    samples = white_experiments(blocks, deviation, effect, trials)
    return Counter(judge(Comparison("A", "B", evidence(sample), same)).kind for sample in samples)


def test_an_a_a_on_a_quiet_machine_comes_out_as_no_speed_up() -> None:
    kinds = verdicts(20, 0.02, 0.0, 150)
    assert kinds[VerdictKind.NO_SPEED_UP] > 0.85 * 150
    assert at_most(0.05, kinds[VerdictKind.FASTER] + kinds[VerdictKind.SLOWER], 150)


def test_a_planted_slow_down_of_three_percent_is_found_within_twenty_blocks() -> None:
    assert verdicts(20, 0.02, -0.03, 150)[VerdictKind.SLOWER] >= 0.99 * 150


def test_a_noisy_machine_says_undecided() -> None:
    kinds = verdicts(6, 0.08, 0.0, 50)
    assert at_most(0.05, kinds[VerdictKind.FASTER] + kinds[VerdictKind.SLOWER], 50)
    assert kinds[VerdictKind.UNDECIDED] > 0.85 * 50


def test_a_loss_at_the_tolerance_is_rarely_called_held_and_rarely_called_lost() -> None:
    trials, tolerance = 1500, 0.005
    generator = np.random.default_rng(2)
    held = lost = 0
    for _ in range(trials):
        before = 26 + 0.1 * generator.standard_normal(4)
        after = before * (1 - tolerance) + 0.05 * generator.standard_normal(4)
        pairs = list(zip(before.tolist(), after.tolist(), strict=True))
        quality = judge_metric(("psnr", "test", 3100), pairs, False, tolerance).quality
        held += quality is Quality.NON_INFERIOR
        lost += quality is Quality.LOST
    assert at_most(0.05, held, trials)
    assert at_most(0.05, lost, trials)
