"""Dense Adam, and the closed form of the steps that unseen rows have missed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import UsageError
from ...ops import (
    GEOMETRY_WIDTH,
    HARMONICS_WIDTH,
    LAST_UPDATE,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    OPTIMIZED,
    ROTATIONS,
    SECOND_GEOMETRY,
    Rates,
    Table,
)
from ..kernels import Gradients
from ..lazy_adam import AdamStep, Pending, pending_of

FIRST = OPTIMIZED  # the first moments' columns in geometry_moments
SECOND = slice(SECOND_GEOMETRY, SECOND_GEOMETRY + OPTIMIZED.stop)


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """A copy of a table's parameters and true moments with nothing pending."""

    geometry: Tensor  # [N, 16]
    harmonics: Tensor  # [N, 48]
    geometry_first: Tensor  # [N, 11]
    geometry_second: Tensor  # [N, 11]
    harmonics_first: Tensor  # [N, 48]
    harmonics_second: Tensor  # [N, 48]


def copies(table: Table, dtype: torch.dtype) -> Settled:
    moments = torch.tensor(table.geometry_moments, dtype=dtype)
    first, second = (torch.tensor(a, dtype=dtype) for a in (table.harmonics_first, table.harmonics_second))
    return Settled(
        torch.tensor(table.geometry, dtype=dtype),
        torch.tensor(table.harmonics, dtype=dtype),
        moments[:, FIRST] * moments[:, SECOND],
        moments[:, SECOND] ** 2,
        first * second,
        second**2,
    )


def normalized(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """As the table keeps moments: m / sqrt(v) and sqrt(v)."""
    root = second.sqrt()
    return torch.where(root > 0, first / root, 0), root


def geometry_rates(rates: Rates, dtype: torch.dtype) -> Tensor:
    """One rate per optimized column [11]."""
    result = torch.empty(GEOMETRY_WIDTH, dtype=dtype)
    result[MEANS] = rates.mean
    result[LOG_SCALES] = rates.scale
    result[ROTATIONS] = rates.rotation
    result[OPACITY_LOGITS] = rates.opacity
    return result[OPTIMIZED]


def harmonics_rates(rates: Rates, dtype: torch.dtype) -> Tensor:
    """One rate per coefficient [48]; the first three are the constant band."""
    result = torch.full((HARMONICS_WIDTH,), rates.harmonics_rest, dtype=dtype)
    result[:3] = rates.harmonics_dc
    return result


def settled(table: Table, *, dtype: torch.dtype) -> Settled:
    """What the table stands for: each row moved by the zero-gradient steps it has missed.

    In such a step t the moments only shrink, so that with epsilon negligible beside sqrt(v)
        p -= rate_t * (b1^j m) / sqrt(b2^j v) * sqrt(1 - b2^t) / (1 - b1^t),   j = 1 ... age,
    where everything but m / sqrt(v) is the same for all rows of one age: `drift[age]` is its sum.
    """
    now = copies(table, dtype)
    pending = pending_of(table)
    if pending is None or not table.trainable:
        return now
    age = (pending.step - now.geometry[:, LAST_UPDATE]).long().clamp(min=0)  # [N]
    tabled = age.clamp(max=len(pending.drift) - 1)  # [N]
    drift = torch.as_tensor(pending.drift, dtype=dtype)[tabled]  # [N]
    mean_drift = torch.as_tensor(pending.mean_drift, dtype=dtype)[tabled]  # [N]
    epsilon = AdamStep(pending.step, pending.rates).epsilon

    distance = drift[:, None] * geometry_rates(pending.rates, dtype)  # [N, 11]
    distance[:, MEANS] = mean_drift[:, None]  # their rate changes with the step: it is inside the sum
    direction = now.geometry_first / (now.geometry_second.sqrt() + epsilon)
    now.geometry[:, OPTIMIZED] -= direction * distance
    direction = now.harmonics_first / (now.harmonics_second.sqrt() + epsilon)
    now.harmonics.sub_(direction * drift[:, None] * harmonics_rates(pending.rates, dtype))
    shrink_moments(now, pending, age)
    now.geometry[:, LAST_UPDATE] = pending.step
    return now


def shrink_moments(now: Settled, pending: Pending, age: Tensor) -> None:
    """Past the tables first moments are as good as gone; second ones, slower, go on shrinking."""
    dtype, oldest = now.geometry.dtype, len(pending.drift) - 1
    tabled = age.clamp(max=oldest)  # [N]
    first_decay = torch.as_tensor(pending.first_decay, dtype=dtype)[tabled][:, None]  # [N, 1]
    decays = torch.as_tensor(pending.second_decay, dtype=dtype)  # [AGES]
    second_decay = torch.where(age > oldest, decays[1] ** age, decays[tabled])[:, None]  # [N, 1]
    now.geometry_first.mul_(first_decay)
    now.harmonics_first.mul_(first_decay)
    now.geometry_second.mul_(second_decay)
    now.harmonics_second.mul_(second_decay)


def write_back(table: Table, now: Settled) -> None:
    table.geometry[:] = now.geometry.numpy()
    table.harmonics[:] = now.harmonics.numpy()
    first, second = normalized(now.geometry_first, now.geometry_second)
    table.geometry_moments[:, FIRST], table.geometry_moments[:, SECOND] = first.numpy(), second.numpy()
    first, second = normalized(now.harmonics_first, now.harmonics_second)
    table.harmonics_first[:], table.harmonics_second[:] = first.numpy(), second.numpy()


def settle(table: Table, *, dtype: torch.dtype) -> None:
    """Doing it twice changes nothing: the second time every age is 0."""
    if pending_of(table) is not None and table.trainable:
        write_back(table, settled(table, dtype=dtype))


def step(
    table: Table, gradients: Gradients, adam_step: AdamStep, *, dtype: torch.dtype, waits: bool = False
) -> None:
    """Every row moves, seen or not, unless momentum waits. The table must be settled."""
    if not table.trainable:
        raise UsageError(
            "This table was read from a model file: without optimizer moments it cannot be trained."
        )
    now = copies(table, dtype)
    slope = torch.as_tensor(gradients.geometry[:, OPTIMIZED], dtype=dtype)  # [N, 11]
    colour = torch.as_tensor(gradients.harmonics, dtype=dtype)  # [N, 48]
    seen = torch.ones(len(slope), dtype=torch.bool)  # [N]
    if waits:
        seen = (slope != 0).any(dim=1) | (colour != 0).any(dim=1)
    moments = (now.geometry_first, now.geometry_second)
    moved = descent(moments, slope, adam_step, seen) * geometry_rates(adam_step.rates, dtype)
    now.geometry[:, OPTIMIZED] -= moved
    moments = (now.harmonics_first, now.harmonics_second)
    moved = descent(moments, colour, adam_step, seen) * harmonics_rates(adam_step.rates, dtype)
    now.harmonics.sub_(moved)
    now.geometry[:, LAST_UPDATE] = adam_step.number
    write_back(table, now)


def descent(moments: tuple[Tensor, Tensor], slope: Tensor, adam_step: AdamStep, seen: Tensor) -> Tensor:
    """Updates the moments in place; the step for a rate of 1, epsilon outside the root as in torch. Rows that
    are not `seen` have a second moment that fades, and nothing else."""
    first, second = moments
    beta1, beta2, number = adam_step.beta1, adam_step.beta2, adam_step.number
    first[seen] = first[seen] * beta1 + (1 - beta1) * slope[seen]
    second.mul_(beta2).add_((1 - beta2) * slope * slope)
    root = second.sqrt() / (1 - beta2**number) ** 0.5
    return seen[:, None] * first / (1 - beta1**number) / (root + adam_step.epsilon)
