from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from splatmeter.backends.registry import backend
from splatmeter.ops import (
    PENDING_AGES,
    SECOND_GEOMETRY,
    AdamStep,
    Pending,
    Rates,
    Table,
    empty_table,
    normalize_moments,
    one_step_older,
)
from splatmeter.update.optimizer import BETA1, BETA2, EPSILON, Drift, Optimizer
from splatmeter.update.schedule import Schedule
from splatmeter.update.settled import settled_copy


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


@pytest.mark.parametrize("age", [1, 2, 7, 60, 400])
def test_what_is_owed_by_age_equals_that_many_steps_without_gradient(age: int) -> None:
    last = 700
    schedule = Schedule(extent=3.0, position_steps=1000)
    mean_rates = [schedule.position(step) for step in range(last + 1)]
    drift = Drift()
    for number in range(1, last + 1):
        drift.advance(number, mean_rates[number])
    first, second = 0.03, 4e-4
    for rates, owed in ((mean_rates, drift.mean[age]), ([1.0] * (last + 1), drift.unit[age])):
        expected = zero_gradient_adam(0.0, first, second, range(last - age + 1, last + 1), rates)
        assert -(first / (math.sqrt(second) + EPSILON)) * owed == pytest.approx(expected, rel=1e-10)


def test_what_is_owed_counts_each_steps_own_rate_where_rates_fall() -> None:
    last, age = 300, 40
    schedule = Schedule(extent=1.0, position_steps=300, last_share=0.01)
    optimizer = Optimizer(Recording())  # type: ignore[arg-type]
    table, image = empty_table(1), np.zeros((3, 1, 1), np.float32)
    for step in range(1, last + 1):
        optimizer.update(table, None, image, schedule.rates(step))
    scale_rates = [schedule.rates(step).scale for step in range(last + 1)]
    first, second = 0.03, 4e-4
    expected = zero_gradient_adam(0.0, first, second, range(last - age + 1, last + 1), scale_rates)
    owed = scale_rates[last] * optimizer.drift.unit[age]
    assert -(first / (math.sqrt(second) + EPSILON)) * owed == pytest.approx(expected, rel=1e-10)


def test_rates_of_zero_owe_nothing_and_divide_nothing() -> None:
    optimizer = Optimizer(Recording())  # type: ignore[arg-type]
    table, image = empty_table(1), np.zeros((3, 1, 1), np.float32)
    for _ in range(3):
        optimizer.update(table, None, image, Rates(*[0.0] * 6))
    assert np.isfinite(optimizer.drift.unit).all() and not optimizer.drift.mean.any()


def test_in_the_first_steps_the_bias_corrections_of_each_step_count() -> None:
    drift = Drift()
    for number in range(1, 5):
        drift.advance(number, 1.0)
    expected = zero_gradient_adam(0.0, 1.0, 1.0, range(2, 5), [1.0] * 5)
    assert -drift.unit[3] == pytest.approx(expected, rel=1e-12)


def test_nothing_is_owed_at_age_zero_and_ages_beyond_the_table_owe_its_last_entry() -> None:
    drift = Drift()
    for number in range(1, 12_000):  # late enough for the bias corrections to be 1 within 1e-5
        drift.advance(number, 1.0)
    first, second = 0.03, 4e-4
    much_older = zero_gradient_adam(0.0, first, second, range(11_000, 12_000), [1.0] * 12_000)
    assert drift.unit[0] == 0
    assert -first / math.sqrt(second) * drift.unit[PENDING_AGES - 1] == pytest.approx(much_older, rel=1e-5)


def test_the_native_account_is_its_twins() -> None:
    random = np.random.default_rng(3)
    drifts, terms = random.random((2, PENDING_AGES)), random.random(PENDING_AGES)
    native = backend("native").one_step_older(drifts, terms, (0.3, 1e-4), 1.02)
    np.testing.assert_allclose(native, one_step_older(drifts, terms, (0.3, 1e-4), 1.02), rtol=1e-15)


class Recording:
    """A backend's operations that the optimizer and the settled copy use."""

    one_step_older = staticmethod(one_step_older)

    def __init__(self) -> None:
        self.steps: list[AdamStep | None] = []
        self.settled_at: list[int] = []

    def backward_and_update(self, tape: object, gradient: object, step: AdamStep | None) -> None:
        self.steps.append(step)

    def settle(self, table: Table) -> None:
        self.settled_at.append(0 if table.pending is None else table.pending.step)
        table.geometry += 1
        table.geometry_moments += 1


RATES = Rates(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def test_observing_does_not_count_as_a_step() -> None:
    backend = Recording()
    optimizer = Optimizer(backend)  # type: ignore[arg-type]
    table = empty_table(2)
    image = np.zeros((3, 1, 1), np.float32)
    optimizer.update(table, None, image, RATES)
    before = table.pending
    optimizer.observe(None, image)
    assert optimizer.steps == 1 and table.pending is before
    optimizer.update(table, None, image, RATES)
    assert [step and step.number for step in backend.steps] == [1, None, 2]
    assert isinstance(table.pending, Pending) and table.pending.step == 2
    assert table.pending.first_decay[3] == pytest.approx(0.9**3)
    assert table.pending.second_decay[3] == pytest.approx(0.999**3)


def test_a_settled_copy_leaves_the_table_as_it_is() -> None:
    table = empty_table(5)
    table.pending = Drift().pending(1, RATES)
    copy = settled_copy(table, Recording())  # type: ignore[arg-type]
    assert not table.geometry.any() and not table.geometry_moments.any()
    assert (copy.geometry == 1).all() and not copy.trainable


def test_a_settled_copy_of_a_model_without_an_optimizer_is_a_copy() -> None:
    table = empty_table(3, trainable=False)
    copy = settled_copy(table, Recording())  # type: ignore[arg-type]
    assert not copy.geometry.any() and copy.geometry is not table.geometry


def test_all_rows_catch_up_before_any_is_older_than_the_tables() -> None:
    """Also after a resume in between: what counts is the optimizer's own number of steps."""
    backend = Recording()
    image = np.zeros((3, 1, 1), np.float32)
    optimizer, table = Optimizer(backend), empty_table(2)  # type: ignore[arg-type]
    for _ in range(730):
        optimizer.update(table, None, image, RATES)
    resumed = Optimizer(backend)  # type: ignore[arg-type]
    resumed.restore(table, optimizer.steps, optimizer.drift, optimizer.rates)
    for _ in range(800):
        resumed.update(table, None, image, RATES)
    assert backend.settled_at == [500, 1000, 1500]
    assert max(np.diff([0, *backend.settled_at])) < PENDING_AGES


def test_a_row_unseen_for_long_moves_as_dense_adam_moves_it() -> None:
    """Through the early steps, where an age past the tables would use the wrong bias corrections."""
    pytest.importorskip("torch", reason="the readable settle needs torch: not checked")
    from splatmeter.backends import registry

    reference = registry.backend("reference")
    steps, image = 1200, np.zeros((3, 1, 1), np.float32)
    backend = dataclasses.replace(reference, backward_and_update=lambda *_: None)
    optimizer, table = Optimizer(backend), empty_table(1)
    first, second = 0.03, 4e-4
    table.geometry_moments[0, 0], table.geometry_moments[0, SECOND_GEOMETRY] = first, second
    normalize_moments(table)
    for _ in range(steps):
        optimizer.update(table, None, image, RATES)
    reference.settle(table)
    expected = zero_gradient_adam(0.0, first, second, range(1, steps + 1), [RATES.mean] * (steps + 1))
    assert table.geometry[0, 0] == pytest.approx(expected, rel=1e-4)
