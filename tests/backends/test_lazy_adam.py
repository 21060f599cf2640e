"""What rows that nobody saw are owed: the closed form against the recursion."""

from __future__ import annotations

import math

import numpy as np
import pytest

from splatmeter.backend import Momentum, OptimizerState
from splatmeter.backends.lazy_adam import (
    BETA2,
    EPSILON,
    PENDING_AGES,
    LazyAdam,
    ages,
    lazy,
    one_step_older,
)
from splatmeter.ops import SECOND_GEOMETRY, Rates, empty_table, normalize_moments
from splatmeter.train.schedule import Schedule

RATES = Rates(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
ONES = Rates(*[1.0] * 6)
BETA1 = Momentum().kept


def zero_gradient_adam(
    parameter: float, first: float, second: float, steps: range, rate: list[float]
) -> float:
    """The plain recursion in float64, one step at a time."""
    for number in steps:
        first *= BETA1
        second *= BETA2
        corrected = first / (1 - BETA1**number)
        root = math.sqrt(second / (1 - BETA2**number)) + EPSILON
        parameter -= rate[number] * corrected / root
    return parameter


def advanced(rates: list[Rates]) -> LazyAdam:
    adam = LazyAdam()
    for one in rates:
        adam.advance(one)
    return adam


@pytest.mark.parametrize("age", [1, 2, 7, 60, 400])
def test_what_is_owed_by_age_equals_that_many_steps_without_gradient(age: int) -> None:
    last = 700
    schedule = Schedule(extent=3.0, position_steps=1000)
    mean_rates = [schedule.position(step) for step in range(last + 1)]
    adam = advanced([schedule.rates(step) for step in range(1, last + 1)])
    first, second = 0.03, 4e-4
    for rates, owed in ((mean_rates, adam.drifts[1, age]), ([1.0] * (last + 1), adam.drifts[0, age])):
        expected = zero_gradient_adam(0.0, first, second, range(last - age + 1, last + 1), rates)
        assert -(first / (math.sqrt(second) + EPSILON)) * owed == pytest.approx(expected, rel=1e-10)


def test_where_momentum_waits_nothing_moves_unseen_and_only_second_moments_fade() -> None:
    adam = LazyAdam(OptimizerState(momentum=Momentum(waits=True)))
    for _ in range(30):
        adam.advance(ONES)
    owed = adam.pending()
    assert owed is not None and owed.momentum == adam.state().momentum == Momentum(waits=True)
    assert not adam.drifts.any() and (owed.first_decay == 1).all()
    assert owed.second_decay[7] == pytest.approx(BETA2**7)


def test_what_is_owed_counts_each_steps_own_rate_where_rates_fall() -> None:
    last, age = 300, 40
    schedule = Schedule(extent=1.0, position_steps=300, last_share=0.01)
    adam = advanced([schedule.rates(step) for step in range(1, last + 1)])
    scale_rates = [schedule.rates(step).scale for step in range(last + 1)]
    first, second = 0.03, 4e-4
    expected = zero_gradient_adam(0.0, first, second, range(last - age + 1, last + 1), scale_rates)
    owed = scale_rates[last] * adam.drifts[0, age]
    assert -(first / (math.sqrt(second) + EPSILON)) * owed == pytest.approx(expected, rel=1e-10)


def test_rates_of_zero_owe_nothing_and_divide_nothing() -> None:
    adam = advanced([Rates(*[0.0] * 6)] * 3)
    assert np.isfinite(adam.drifts[0]).all() and not adam.drifts[1].any()


def test_in_the_first_steps_the_bias_corrections_of_each_step_count() -> None:
    adam = advanced([ONES] * 4)
    expected = zero_gradient_adam(0.0, 1.0, 1.0, range(2, 5), [1.0] * 5)
    assert -adam.drifts[0, 3] == pytest.approx(expected, rel=1e-12)


def test_nothing_is_owed_at_age_zero_and_ages_beyond_the_table_owe_its_last_entry() -> None:
    adam = advanced([ONES] * 11_999)  # late enough for the bias corrections to be 1 within 1e-5
    first, second = 0.03, 4e-4
    much_older = zero_gradient_adam(0.0, first, second, range(11_000, 12_000), [1.0] * 12_000)
    assert adam.drifts[0, 0] == 0
    owed = adam.drifts[0, PENDING_AGES - 1]
    assert -first / math.sqrt(second) * owed == pytest.approx(much_older, rel=1e-5)


def test_a_step_older_is_one_term_more_at_one_age_more() -> None:
    random = np.random.default_rng(3)
    drifts, fading = random.random((2, PENDING_AGES)), ages(Momentum()).fading
    older = one_step_older(drifts, fading, (0.3, 1e-4), 1.02)
    for age in (1, 2, 511):
        assert older[0, age] == pytest.approx(0.3 * fading[age] + 1.02 * drifts[0, age - 1])
        assert older[1, age] == pytest.approx(1e-4 * fading[age] + drifts[1, age - 1])


def test_before_the_first_step_nothing_is_pending_and_a_state_goes_round() -> None:
    assert LazyAdam().pending() is None
    adam = advanced([RATES] * 3)
    again = LazyAdam(adam.state())
    again.advance(RATES)
    adam.advance(RATES)
    assert again.steps == adam.steps == 4
    np.testing.assert_array_equal(again.drifts, adam.drifts)
    owed = adam.pending()
    assert owed is not None and owed.step == 4
    assert owed.first_decay[3] == pytest.approx(0.9**3) and owed.second_decay[3] == pytest.approx(0.999**3)


@pytest.mark.parametrize("broken", ["missing", "short", "single"])
def test_tables_that_are_none_are_refused(broken: str) -> None:
    owed = dict(advanced([RATES]).state().owed)
    if broken == "missing":
        del owed["mean_drift"]
    elif broken == "short":
        owed["drift"] = owed["drift"][:-1]
    else:
        owed["drift"] = owed["drift"].astype(np.float32)
    with pytest.raises(ValueError, match="drift"):
        LazyAdam(OptimizerState(1, RATES, owed))


def test_a_row_unseen_for_long_moves_as_dense_adam_moves_it() -> None:
    """Through the early steps, where an age past the tables would use the wrong bias corrections."""
    pytest.importorskip("torch", reason="the readable settle needs torch: not checked")
    from splatmeter.backends.reference import reference_kernels

    settle, steps = reference_kernels().settle, 1200
    adam, table = LazyAdam(), empty_table(1)
    first, second = 0.03, 4e-4
    table.geometry_moments[0, 0], table.geometry_moments[0, SECOND_GEOMETRY] = first, second
    normalize_moments(table)
    for _ in range(steps):
        adam.advance(RATES)
        if adam.settling:
            settle(lazy(table, adam.pending()))
    settle(lazy(table, adam.pending()))
    expected = zero_gradient_adam(0.0, first, second, range(1, steps + 1), [RATES.mean] * (steps + 1))
    assert table.geometry[0, 0] == pytest.approx(expected, rel=1e-4)
