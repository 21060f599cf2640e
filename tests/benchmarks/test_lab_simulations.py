"""The lab's rules by simulation, quick: what benchmarks/lab_simulations.py does with ten times as many.

A rate may exceed its promise by four binomial standard errors: a rule that keeps it fails such a test once in
30,000.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import lab_noise
import lab_simulations as simulations
from lab_noise import AFTER, BEFORE, REGIMES, claims, first_claims, log_ratios, sine

from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.metric import judge_metric
from splatmeter.lab.compare.noise import noise_floor, with_noise
from splatmeter.lab.compare.ratio import evidence
from splatmeter.lab.compare.sequential import evidence_so_far
from splatmeter.lab.compare.verdict import judge
from splatmeter.lab.samples.verdict_kinds import VerdictKind

TRIALS = 4000
lab_noise.POOL = TRIALS  # drawing orders takes longest
SAME = (judge_metric(("psnr", "test", 1), [(26.0, 26.0)], True, 0.005),)


def at_most(promise: float, share: float, trials: int = TRIALS) -> bool:
    return share <= promise + 4 * math.sqrt(promise * (1 - promise) / trials)


@pytest.mark.parametrize("until", [False, True])
def test_the_rules_over_arrays_are_the_products_own(until: bool) -> None:
    """Effects near the limit, so that both answers come often; noises alike and far apart."""
    g = np.random.default_rng(1)
    scale = np.exp(g.normal(0, 0.7, (200, 1)))
    d = (0.05 if until else 0.02) + 0.02 * g.standard_normal((200, 7))
    control = 0.012 + 0.02 * scale * g.standard_normal((200, 6))
    faster, slower = claims(AFTER, d, control, until)
    told = evidence_so_far if until else evidence
    kinds = []
    for row, other in zip(d.tolist(), control.tolist(), strict=True):
        noise = noise_floor(evidence(other))
        kinds.append(judge(Comparison("A", "B", with_noise(told(row), noise), SAME, noise=noise)).kind)
    assert [kind is VerdictKind.FASTER for kind in kinds] == faster.tolist()
    assert [kind is VerdictKind.SLOWER for kind in kinds] == slower.tolist()
    assert 20 < faster.sum() < 180


@pytest.mark.parametrize("regime", REGIMES)
def test_equal_arms_are_seldom_called_faster_in_any_regime(regime: str) -> None:
    for after_aa in (False, True):
        found = simulations.false_faster(AFTER, REGIMES[regime], TRIALS, after_aa)
        assert all(at_most(0.05, share) for share in found.values()), (after_aa, found)


@pytest.mark.parametrize("period", [2, 2.5, 3, 4, 5, 8])
def test_a_disturbance_locked_to_the_run_count_fools_less_than_one_in_twenty(period: float) -> None:
    g = np.random.default_rng(2)
    faster, slower = claims(AFTER, log_ratios(AFTER, sine(period), g, TRIALS, 4))
    assert at_most(0.05, faster.mean()) and at_most(0.05, slower.mean())
    faster, slower = first_claims(AFTER, log_ratios(AFTER, sine(period), g, TRIALS, 20, True))
    assert at_most(0.05, faster.mean()) and at_most(0.05, slower.mean())


def test_balanced_orders_were_fooled_three_times_as_often() -> None:
    """Without this the test above would prove nothing."""
    g = np.random.default_rng(3)
    assert claims(BEFORE, log_ratios(BEFORE, sine(4), g, TRIALS, 4))[0].mean() > 0.12
    assert first_claims(BEFORE, log_ratios(BEFORE, sine(4), g, TRIALS, 20, True))[0].mean() > 0.06


def test_an_a_a_costs_little_power_and_once_cost_nearly_all_of_it() -> None:
    g = np.random.default_rng(4)
    control = 0.0283 * g.standard_normal((TRIALS, 10))
    d = math.log(1.03) + 0.0283 * g.standard_normal((TRIALS, 10))
    assert claims(AFTER, d)[0].mean() > 0.81
    assert claims(AFTER, d, control)[0].mean() > 0.76
    assert claims(BEFORE, d, control)[0].mean() < 0.12


def test_an_a_a_of_a_noisy_day_does_not_silence_a_quiet_one() -> None:
    g = np.random.default_rng(5)
    control = 0.12 * g.standard_normal((TRIALS, 10))
    assert claims(AFTER, math.log(1.03) + 0.0283 * g.standard_normal((TRIALS, 10)), control)[0].mean() > 0.70


@pytest.mark.parametrize(("pairs", "rho"), [(6, 0.5), (10, 0.0)])
def test_equal_arms_pass_the_gate_on_all_metrics_and_a_loss_of_one_percent_does_not(
    pairs: int, rho: float
) -> None:
    trials = 600
    held, lost = simulations.gate_rates(True, pairs, rho, 0.0, 1, trials)
    assert held > 0.80 - 2 * math.sqrt(0.16 / trials) and lost == 0.0
    held, lost = simulations.gate_rates(True, pairs, rho, 0.01, 1, trials)
    assert held <= 0.01 and lost > 0.6
    held, lost = simulations.gate_rates(True, pairs, rho, 0.005, 1, trials)
    assert at_most(0.05, held, trials) and at_most(0.05, lost, trials)


def test_repeats_of_one_seed_settle_nothing_and_a_ruin_is_still_seen() -> None:
    from splatmeter.lab.compare.metric import Quality
    from splatmeter.lab.compare.quality import compare_quality

    g = np.random.default_rng(6)
    for loss, wanted in ((0.0, Quality.UNDECIDED), (0.01, Quality.UNDECIDED), (0.1, Quality.LOST)):
        for _ in range(100):
            a = 26 + 0.1 * g.standard_normal() + 0.02 * g.standard_normal(4)
            b = 26 * (1 - loss) + 0.1 * g.standard_normal() + 0.02 * g.standard_normal(4)
            runs = [simulations.seedless("A", k, v) for k, v in enumerate(a)]
            runs += [simulations.seedless("B", k, v) for k, v in enumerate(b)]
            assert {result.quality for result in compare_quality(runs, "A", "B")} == {wanted}


def test_the_tables_can_be_written() -> None:
    for title, text in simulations.sections(40):
        assert title[0].isdigit() and ("±" in text)
