"""Adam with dense semantics, and the account of what rows that were not seen are still owed.

The published optimizer moves every Gaussian in every step, seen or not. A lazy backend touches only the
seen ones; for the others the missed steps have the closed form of `ops.Pending`, whose tables are kept here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from splatmeter.ops import (
    F32,
    F64,
    PENDING_AGES,
    AdamStep,
    Backend,
    Pending,
    Rates,
    Table,
    Tape,
    one_step_older,
)

BETA1 = 0.9
BETA2 = 0.999
EPSILON = 1e-15

SETTLE_INTERVAL = 500
"""Every so many steps all rows catch up, so that none grows older than the tables of what it is owed."""
assert SETTLE_INTERVAL < PENDING_AGES

OneStepOlder = Callable[[F64, F64, Sequence[float], float], F64]

_AGES = np.arange(PENDING_AGES, dtype=np.float64)  # [AGES]
_FADING: F64 = BETA1**_AGES * BETA2 ** (-_AGES / 2)  # [AGES] b1^k b2^(-k/2), but nothing at age 0
_FADING[0] = 0
_FIRST_DECAY: F32 = (BETA1**_AGES).astype(np.float32)
_SECOND_DECAY: F32 = (BETA2**_AGES).astype(np.float32)


class Drift:
    """By age k in steps: the sum of what the last k zero-gradient steps add up to, in float64."""

    def __init__(self) -> None:
        self._tables: F64 = np.zeros((2, PENDING_AGES))  # never changed once they are handed out

    @property
    def unit(self) -> F64:
        return self._tables[0]  # [AGES] in units of the last step's rate

    @property
    def mean(self) -> F64:
        return self._tables[1]  # [AGES] with the means' own rate of each step

    def advance(
        self, number: int, mean_rate: float, fallen: float = 1.0, grow: OneStepOlder = one_step_older
    ) -> None:
        """Account for step `number`: everyone grows one step older and owes one more term.

        The rates other than the means' fall together: `fallen` is the step before's over this one's.
        """
        correction = math.sqrt(1 - BETA2**number) / (1 - BETA1**number)
        self._tables = grow(self._tables, _FADING, (correction, mean_rate * correction), fallen)

    def pending(self, step: int, rates: Rates) -> Pending:
        return Pending(step, self.unit, self.mean, rates, _FIRST_DECAY, _SECOND_DECAY)


class Optimizer:
    """Counts Adam steps (densification steps are none) and hands the account to the table after each."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.steps = 0
        self.drift = Drift()
        self.rates: Rates | None = None

    def update(self, table: Table, tape: Tape, image_gradient: F32, rates: Rates) -> None:
        """One step: backward, statistics and Adam, fused where the backend can."""
        step = AdamStep(self.steps + 1, rates, BETA1, BETA2, EPSILON)
        self.backend.backward_and_update(tape, image_gradient, step)
        self.steps += 1
        self.drift.advance(self.steps, rates.mean, _fallen(self.rates, rates), self.backend.one_step_older)
        self.rates = rates
        table.pending = self.drift.pending(self.steps, rates)
        if self.steps % SETTLE_INTERVAL == 0:  # by the count alone: a resumed run does it at the same steps
            self.backend.settle(table)

    def observe(self, tape: Tape, image_gradient: F32) -> None:
        """Backward for the statistics alone: the turn of a densification step, in which nothing learns."""
        self.backend.backward_and_update(tape, image_gradient, None)

    def restore(self, table: Table, steps: int, drift: Drift, rates: Rates | None) -> None:
        """Go on where a checkpoint ended."""
        self.steps = steps
        self.drift = drift
        self.rates = rates
        table.pending = drift.pending(steps, rates) if rates is not None else None


def _fallen(before: Rates | None, now: Rates) -> float:
    """How much higher the rates other than the means' were one step before; exactly 1 where they stay."""
    sums = [
        0.0 if rates is None else rates.harmonics_dc + rates.opacity + rates.scale + rates.rotation
        for rates in (before, now)
    ]
    return sums[0] / sums[1] if all(sums) else 1.0
