"""Adam with dense semantics that touches only rows somebody saw, and the account of what the others are owed.

The published optimizer moves every Gaussian in every step, seen or not. Steps in which a row's gradient is
zero have a closed form: after k of them
    m -> b1^k m,   v -> b2^k v,   p -> p - (m / (sqrt(v) + epsilon)) * rate * drift[k].
So an engine touches what it sees, and a row only remembers its last step. With moments kept as m / sqrt(v)
and sqrt(v), what a row owes is the first of the two times a number: reading it needs neither v nor a root.

Where momentum waits (--unseen wait), k such steps are
    m -> m,   v -> b2^k v,   p -> p
instead: in the end a gradient moves its row as far as ever, but only in steps that see it, and what a row
owes need not be read to draw it.

native/lazy_adam.cpp is the same account in C++ and has its tables from here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Momentum, OptimizerState
from splatmeter.ops import F32, F64, Rates, Table

BETA2 = 0.999
EPSILON = 1e-15

PENDING_AGES = 512
"""0.9^512 is 4e-24: nothing moves after that."""

SETTLE_INTERVAL = 500
"""Every so many steps all rows catch up, so that none grows older than the tables of what it is owed."""
assert SETTLE_INTERVAL < PENDING_AGES

_AGES = np.arange(PENDING_AGES, dtype=np.float64)  # [AGES]


@dataclass(frozen=True, slots=True, eq=False)
class Ages:
    """What k missed steps do, by k."""

    fading: F64  # [AGES] what the last adds to the drift, rate 1: b1^k b2^(-k/2), but nothing at age 0
    first_decay: F32  # [AGES] of m: b1^k
    second_decay: F32  # [AGES] of v: b2^k


@functools.cache
def ages(momentum: Momentum) -> Ages:
    second = (BETA2**_AGES).astype(np.float32)  # [AGES]
    if momentum.waits:
        return Ages(np.zeros(PENDING_AGES), np.ones(PENDING_AGES, np.float32), second)
    fading = momentum.kept**_AGES * BETA2 ** (-_AGES / 2)  # [AGES]
    fading[0] = 0
    return Ages(fading, (momentum.kept**_AGES).astype(np.float32), second)


def constants(momentum: Momentum) -> tuple[float, float, float, int, F64, F32, F32]:
    """As engines take them."""
    by_age = ages(momentum)
    tables = (by_age.fading, by_age.first_decay, by_age.second_decay)
    return (momentum.kept, BETA2, EPSILON, SETTLE_INTERVAL, *tables)


@dataclass(frozen=True, slots=True)
class AdamStep:
    """One step of the published optimizer; `number` counts from 1 and drives the bias correction."""

    number: int
    rates: Rates
    beta1: float = Momentum().kept
    beta2: float = BETA2
    epsilon: float = EPSILON


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """What zero-gradient steps still owe to rows that were not seen for a while.

    A row whose LAST_UPDATE is `step - k` is k steps behind. Ages past the tables use the last entry, except
    that second moments go on decaying as second_decay[1]^k.
    """

    step: int  # optimizer steps done
    drift: F64  # [AGES] sum over the missed steps of b1^j b2^(-j/2) and the bias corrections, rate 1
    mean_drift: F64  # [AGES] the same with the means' own, changing rate already in
    rates: Rates  # of the latest step; `mean` is contained in mean_drift instead
    first_decay: F32  # [AGES] b1^k, or 1 where momentum waits
    second_decay: F32  # [AGES] b2^k
    momentum: Momentum = field(default_factory=Momentum)


@dataclass(slots=True, eq=False)
class LazyTable(Table):
    """A table some of whose rows may be behind; without `pending` all are current."""

    pending: Pending | None = None


def lazy(table: Table, pending: Pending | None = None) -> LazyTable:
    """The same arrays."""
    moments = (table.geometry_moments, table.harmonics_first, table.harmonics_second)
    return LazyTable(table.geometry, table.harmonics, *moments, pending)


def pending_of(table: Table) -> Pending | None:
    return table.pending if isinstance(table, LazyTable) else None


class LazyAdam:
    """Counts steps (those of densification are none) and knows what a row of any age is owed after each."""

    def __init__(self, state: OptimizerState | None = None) -> None:
        state = state or OptimizerState()
        self.steps = state.steps
        self.rates = state.rates
        self.momentum = state.momentum
        self.drifts = drifts_of(state.owed)  # [2, AGES] never changed once they are handed out

    def next_step(self, rates: Rates) -> AdamStep:
        return AdamStep(self.steps + 1, rates, self.momentum.kept)

    def advance(self, rates: Rates) -> None:
        """A step was done: everyone grows one step older and owes one more term."""
        self.steps += 1
        correction = math.sqrt(1 - BETA2**self.steps) / (1 - self.momentum.kept**self.steps)
        fallen = _fallen(self.rates, rates)
        fading = ages(self.momentum).fading
        self.drifts = one_step_older(self.drifts, fading, (correction, rates.mean * correction), fallen)
        self.rates = rates

    @property
    def settling(self) -> bool:
        """Whether all rows catch up now: by the count alone, so that a resumed run does it then too."""
        return self.steps % SETTLE_INTERVAL == 0

    def state(self) -> OptimizerState:
        return OptimizerState(self.steps, self.rates, owed_of(self.drifts), self.momentum)

    def pending(self) -> Pending | None:
        return pending(self.steps, self.rates, self.drifts, self.momentum)


def pending(steps: int, rates: Rates | None, drifts: F64, momentum: Momentum) -> Pending | None:
    """None before the first step."""
    if rates is None:
        return None
    by_age = ages(momentum)
    return Pending(steps, drifts[0], drifts[1], rates, by_age.first_decay, by_age.second_decay, momentum)


def one_step_older(drifts: F64, terms: F64, rates: Sequence[float], fallen: float) -> F64:
    """`drift` and `mean_drift` [2, AGES] after one more step: sums of one term more, at one age more.

    `rates` are what each table's new terms are multiplied by; what is in the first one grows by `fallen`.
    """
    older = np.multiply.outer(rates, terms)  # [2, AGES]
    older[0, 1:] += drifts[0, :-1] * fallen
    older[1, 1:] += drifts[1, :-1]
    return older


def _fallen(before: Rates | None, now: Rates) -> float:
    """How much higher the rates other than the means' were one step before; exactly 1 where they stay."""
    sums = [
        0.0 if rates is None else rates.harmonics_dc + rates.opacity + rates.scale + rates.rotation
        for rates in (before, now)
    ]
    return sums[0] / sums[1] if all(sums) else 1.0


# ---- in a checkpoint --------------------------------------------------------------------------------------
def owed_of(drifts: F64) -> dict[str, NDArray[Any]]:
    return {"drift": drifts[0], "mean_drift": drifts[1]}


def drifts_of(owed: Mapping[str, NDArray[Any]]) -> F64:
    """[2, AGES]; ValueError for tables that are none. Without any, nothing is owed."""
    drifts = np.zeros((2, PENDING_AGES))
    for row, name in enumerate(("drift", "mean_drift")):
        if not owed:
            continue
        if name not in owed or owed[name].shape != (PENDING_AGES,) or owed[name].dtype != np.float64:
            raise ValueError(name)
        drifts[row] = owed[name]
    return drifts
