"""The tables of `lazy_adam.Pending`, summed up term by term from Adam's definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splatmeter.backend import Momentum
from splatmeter.backends.lazy_adam import PENDING_AGES, Pending
from splatmeter.ops import Rates

BETA1, BETA2 = 0.9, 0.999
WAITS = Momentum(waits=True)


def pending_after(step: int, rates: Rates, mean_rate: Callable[[int], float] | None = None) -> Pending:
    """What rows of each age owe once `step` steps are done; `mean_rate(t)` is the means' rate in step t."""
    of_step = mean_rate or (lambda number: rates.mean)
    drift, mean_drift = np.zeros(PENDING_AGES), np.zeros(PENDING_AGES)
    for age in range(1, PENDING_AGES):
        last = step - age  # the last step the row took part in
        if last < 0:
            drift[age], mean_drift[age] = drift[age - 1], mean_drift[age - 1]
            continue
        number = np.arange(last + 1, step + 1)  # the missed steps [age]
        power = number - last
        term = BETA1**power * BETA2 ** (-power / 2) * np.sqrt(1 - BETA2**number) / (1 - BETA1**number)
        drift[age] = term.sum()
        mean_drift[age] = (term * [of_step(int(one)) for one in number]).sum()
    ages = np.arange(PENDING_AGES)
    return Pending(
        step=step,
        drift=drift,
        mean_drift=mean_drift,
        rates=rates,
        first_decay=(BETA1**ages).astype(np.float32),
        second_decay=_fading(ages),
    )


def waiting_after(step: int, rates: Rates) -> Pending:
    """The same where momentum waits: nothing is owed but the fading of second moments."""
    nothing, ages = np.zeros(PENDING_AGES), np.arange(PENDING_AGES)
    return Pending(step, nothing, nothing, rates, np.ones(PENDING_AGES, np.float32), _fading(ages), WAITS)


def _fading(ages: np.ndarray) -> np.ndarray:
    return (BETA2**ages).astype(np.float32)
