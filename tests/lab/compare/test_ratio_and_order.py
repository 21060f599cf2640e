from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatmeter.lab.compare.noise import noise_floor
from splatmeter.lab.compare.power import blocks_to_detect, blocks_to_prove_equal, more_blocks, power_to_detect
from splatmeter.lab.compare.ratio import evidence, log_ratios, paired, slice_log_ratios, trimmed
from splatmeter.lab.compare.sequential import anytime, half_width
from splatmeter.lab.plan.block_orders import block_orders, next_orders
from splatmeter.lab.samples.run_sample import Arm, RunSample, SliceSample

KNOWN = [0.021, 0.013, 0.034, 0.008, 0.017, 0.025]


def run(arm: str, block: int, seconds: float, steps: int = 950) -> RunSample:
    return RunSample(Arm(arm), block, 0, seconds, steps, 1000, 1000)


def test_a_ratio_above_one_means_that_the_candidate_is_faster() -> None:
    runs = [run("A", 0, 10.0), run("B", 0, 5.0), run("B", 1, 5.0), run("A", 1, 10.0)]
    assert log_ratios(runs, "A", "B") == pytest.approx([math.log(2)] * 2)
    assert log_ratios(runs, "B", "A") == pytest.approx([-math.log(2)] * 2)


def test_a_block_that_lacks_an_arm_is_left_out() -> None:
    runs = [run("A", 0, 10.0), run("A", 1, 9.0), run("B", 1, 9.0), run("C", 1, 3.0)]
    assert log_ratios(runs, "A", "B") == (0.0,)


def test_the_paired_interval_is_the_textbook_one() -> None:
    estimate = paired(KNOWN)
    deviation = math.sqrt(sum((d - sum(KNOWN) / 6) ** 2 for d in KNOWN) / 5)
    assert estimate.ratio == pytest.approx(math.exp(sum(KNOWN) / 6))
    assert estimate.half_width == pytest.approx(2.5705818356 * deviation / math.sqrt(6))
    assert estimate.half_width_90 == pytest.approx(2.0150483733 * deviation / math.sqrt(6))


def test_a_single_block_has_no_interval() -> None:
    bounds = evidence([0.1]).main.interval_95
    assert (bounds.low, bounds.high) == (0.0, math.inf)


def test_no_block_at_all_is_said_plainly() -> None:
    nothing = evidence([]).main
    assert nothing.blocks == 0 and nothing.method == "no complete block" and nothing.half_width == math.inf


def test_the_trimmed_mean_ignores_a_spike_that_moves_the_mean() -> None:
    calm = [0.01 + 0.001 * (i % 3) for i in range(10)]
    spiked = [*calm[:-1], 0.5]
    assert abs(trimmed(spiked).log_mean - trimmed(calm).log_mean) < 0.001
    assert abs(paired(spiked).log_mean - paired(calm).log_mean) > 0.04


def test_the_trimmed_mean_agrees_with_its_published_definition() -> None:
    # n = 10: two cut at each end, six kept; winsorised to the third smallest and third largest.
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    winsorized = [2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.0, 7.0]
    squares = sum((w - 4.5) ** 2 for w in winsorized)
    assert trimmed(values).log_mean == 4.5
    assert trimmed(values).half_width == pytest.approx(2.5705818356 * math.sqrt(squares / (6 * 5)))


def test_a_second_opinion_exists_from_eight_blocks_on() -> None:
    assert evidence([0.01, 0.02] * 3 + [0.01]).trimmed is None
    assert evidence([0.01, 0.02] * 4).trimmed is not None


def test_estimates_that_differ_by_more_than_the_half_width_disagree() -> None:
    # Forty blocks near +1 % and nine far below: the mean moves with them and the trimmed mean does not.
    lopsided = [0.010 + 0.0001 * (i % 5) for i in range(40)] + [-0.05] * 9
    assert "more than the half-width" in evidence(lopsided).disagreement
    assert evidence([0.01, 0.02, 0.03, 0.02] * 4).disagreement == ""


def test_the_anytime_interval_cannot_decide_before_the_fifth_block() -> None:
    assert anytime([0.1, 0.1, 0.1, 0.1001]).half_width == math.inf
    assert anytime([0.1, 0.1, 0.1, 0.1, 0.1001]).half_width < 0.01


def test_the_anytime_half_width_is_the_formula_of_the_procedure() -> None:
    n, alpha, squares = 12, 0.05, 11 * 0.03**2
    growth = ((n + 1) / alpha**2) ** (1 / n)
    expected = math.sqrt(squares * (growth - 1) / (n * (1 - growth / (n + 1))))
    assert half_width(squares, n, alpha) == pytest.approx(expected)
    assert expected == pytest.approx(0.032, abs=0.0005)


def test_numbers_of_blocks_are_those_the_procedure_promises() -> None:
    assert blocks_to_detect(0.02, 0.01) == 5
    assert blocks_to_detect(0.01, 0.01) == 13
    assert blocks_to_prove_equal(0.0, 0.01, 0.01) == 13
    assert blocks_to_prove_equal(0.0, 0.01, 0.005) in (45, 46)


def test_power_is_the_error_rate_when_there_is_no_effect() -> None:
    assert power_to_detect(0.0, 0.01, 6) == pytest.approx(0.025, abs=1e-4)


def test_advice_on_more_blocks_shrinks_as_blocks_arrive() -> None:
    noisy = [0.03, -0.02, 0.04, -0.01, 0.03, 0.0]
    first = more_blocks(paired(noisy), tolerated=0.02)
    second = more_blocks(paired(noisy * 2), tolerated=0.02)
    assert first is not None and second is not None and second < first


def test_more_blocks_are_no_advice_when_the_noise_is_hopeless() -> None:
    assert more_blocks(paired([2.0, -2.0, 2.0, -2.0001]), tolerated=0.001) is None


def test_the_noise_floor_is_the_larger_bound_of_the_control() -> None:
    control = noise_floor(evidence([0.012, -0.004, 0.008, -0.002, 0.006, -0.001]))
    bounds = control.estimate.interval_95
    assert control.floor == pytest.approx(max(bounds.high, 1 / bounds.low) - 1)
    assert not control.failed
    assert noise_floor(evidence([0.02, 0.021, 0.019, 0.02])).failed


@pytest.mark.parametrize("blocks", [4, 5, 6, 10])
def test_each_arm_leads_in_half_of_all_blocks_and_no_block_follows_from_another(blocks: int) -> None:
    """Four standard errors; balance within a session is what a disturbance could follow."""
    trials = 3000
    leads = [[order[0] == "A" for order in block_orders("AB", blocks, seed)] for seed in range(trials)]
    for block in range(blocks):
        assert abs(sum(lead[block] for lead in leads) - trials / 2) < 2 * math.sqrt(trials)
    same = sum(lead[0] == lead[1] for lead in leads)
    assert abs(same - trials / 2) < 2 * math.sqrt(trials)


def test_of_sixteen_orders_of_four_blocks_none_is_drawn_too_often() -> None:
    """Those that a pattern of period two or four follows are rarer."""
    trials = 20_000
    drawn = Counter("".join(order[0] for order in block_orders("AB", 4, seed)) for seed in range(trials))
    assert len(drawn) == 16
    for order, count in drawn.items():
        wanted = {"AAAA": 6, "BBBB": 6, "ABAB": 5, "BABA": 5}.get(order, 8) / 118
        assert abs(count / trials - wanted) < 4.5 * math.sqrt(wanted / trials), order


def test_three_arms_stand_in_each_of_six_orders_equally_often() -> None:
    arms = ("baseline", "parent", "candidate")
    drawn = Counter(order for seed in range(1500) for order in block_orders(arms, 4, seed))
    assert len(drawn) == 6 and max(drawn.values()) - min(drawn.values()) < 6 * math.sqrt(1000)


def test_a_recorded_seed_gives_the_same_orders_again_and_another_seed_others() -> None:
    assert block_orders("AB", 12, 7) == block_orders("AB", 12, 7)
    assert len({tuple(block_orders("AB", 12, seed)) for seed in range(20)}) > 10


@given(st.integers(0, 30), st.integers(1, 12), st.integers(0, 1000))
def test_asking_for_more_blocks_never_changes_those_that_ran(already: int, more: int, seed: int) -> None:
    everything = next_orders("AB", 0, already + more, seed)
    assert everything[already:] == next_orders("AB", already, more, seed)


def test_fewer_than_two_different_arms_are_refused() -> None:
    with pytest.raises(ValueError, match="two different arms"):
        block_orders(("A", "A"), 4, 0)


def test_slices_cancel_a_drift_within_the_block_and_give_one_number_per_block() -> None:
    slices = []
    for block in range(2):
        for index in range(10):
            machine = 1.0 + 0.3 * index  # the machine slows down threefold during the block
            for arm, factor in (("A", 1.0), ("B", 0.8)):
                first = 100 * index
                slices.append(SliceSample(arm, block, index, first, first + 100, machine * factor))
    assert slice_log_ratios(slices, "A", "B") == pytest.approx([math.log(1.25)] * 2)


def test_a_slice_without_its_partner_is_left_out() -> None:
    whole = [SliceSample("A", 0, 0, 0, 50, 1.0), SliceSample("B", 0, 0, 0, 50, 1.0)]
    assert slice_log_ratios([*whole, SliceSample("A", 0, 1, 50, 100, 9.0)], "A", "B") == (0.0,)
