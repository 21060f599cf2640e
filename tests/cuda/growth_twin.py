"""Growth as densify/ defines it, over plain arrays and with counter-based draws: what the card's must equal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from twins import arrays_of

from splatmeter import _native  # type: ignore[attr-defined]
from splatmeter.ops import Table


@dataclass(frozen=True)
class Rule:
    threshold: float = 2e-4
    by_absolute: bool = True
    lowest_opacity: float = 0.005
    small_limit: float = 0.05
    size_limit: float = math.inf
    shrink: float = 1.6
    budget: int | None = None
    child_keys: tuple[tuple[int, ...], ...] = ((11, 22, 33, 44, 55), (66, 77, 88, 99, 111))


@dataclass(frozen=True, eq=False)
class Grown:
    table: Table
    cloned: int
    split: int
    pruned: int


def _means(table: Table) -> tuple[np.ndarray, np.ndarray]:
    visits = table.geometry[:, 14]
    share = np.divide(1.0, visits, out=np.zeros_like(visits), where=visits > 0)
    with np.errstate(invalid="ignore", over="ignore"):
        gradient, absolute = (np.nan_to_num(table.geometry[:, k] * share, nan=0, posinf=0, neginf=0) for k in (12, 13))
    return gradient, absolute


def _quantile(values: np.ndarray, fraction: float) -> float:
    position = fraction * (len(values) - 1)
    low = min(max(math.floor(position), 0), len(values) - 1)
    high = min(low + 1, len(values) - 1)
    ordered = np.sort(values)
    below, above = float(ordered[low]), float(ordered[high])
    return below + (above - below) * (position - low)


def _candidates(table: Table, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    gradient, absolute = _means(table)
    chosen, urgency = gradient >= np.float32(rule.threshold), gradient.astype(np.float64) / rule.threshold
    if rule.by_absolute:
        level = _quantile(absolute, 1.0 - np.count_nonzero(chosen) / len(chosen))
        chosen = chosen | (absolute.astype(np.float64) >= level)
        if level > 0:
            urgency = np.maximum(urgency, absolute / np.float32(level))
    return chosen, urgency


def _within(rule: Rule, chosen: np.ndarray, urgency: np.ndarray, gone: np.ndarray, wasted: np.ndarray) -> np.ndarray:
    if rule.budget is None:
        return chosen
    stay = np.count_nonzero(~gone)
    if stay + np.count_nonzero(chosen & ~wasted) + np.count_nonzero(chosen & gone & ~wasted) <= rule.budget:
        return chosen
    rows = np.flatnonzero(chosen & ~gone)
    order = np.argsort(-urgency[rows], kind="stable")[: max(0, rule.budget - stay)]
    kept = np.zeros_like(chosen)
    kept[rows[order]] = True
    return kept


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> np.uint32(16))


def normals(rows: np.ndarray, keys: tuple[int, ...]) -> np.ndarray:
    """Three standard normal numbers for each row [K, 3]: Box and Muller, as native/passes/explore.cpp has them."""
    first, *others = (np.uint32(key) for key in keys)
    bits = [_mixed(_mixed(rows.astype(np.uint32) + first) ^ key) for key in others]

    def pair(one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        radius = np.sqrt(-2 * np.log(((one >> np.uint32(8)) + 1) / 2**24))
        angle = ((two >> np.uint32(8)) / 2**24 - 0.5) * np.pi
        return radius * np.sin(angle), radius * np.cos(angle) * np.where(two & np.uint32(1), -1.0, 1.0)

    return np.stack([*pair(bits[0], bits[1]), pair(bits[2], bits[3])[0]], axis=1)


def rotations(quaternions: np.ndarray) -> np.ndarray:
    w, x, y, z = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _faint(table: Table, rule: Rule) -> np.ndarray:
    logits = table.geometry[:, 10]
    visible = logits >= np.float32(math.log(rule.lowest_opacity / (1 - rule.lowest_opacity)))
    finite = np.isfinite(table.geometry[:, :11]).all(axis=1) & np.isfinite(table.harmonics).all(axis=1)
    return ~visible | ~finite


def _placed(table: Table, keep: np.ndarray, clone: np.ndarray, split: np.ndarray, rule: Rule) -> Table:
    kept, cloned, parents = (np.flatnonzero(mask) for mask in (keep, clone, split))
    sources = np.concatenate([kept, cloned, parents, parents])
    first_child = len(kept) + len(cloned)
    means = table.geometry[sources, :3]
    sigma, turn = np.exp(table.geometry[parents, 3:6].astype(np.float64)), rotations(table.geometry[parents, 6:10].astype(np.float64))
    for child in range(2):
        draws = normals(parents, rule.child_keys[child]) * sigma
        begin = first_child + child * len(parents)
        means[begin : begin + len(parents)] += np.einsum("kij,kj->ki", turn, draws).astype(np.float32)
    order = np.empty(len(sources), np.int64)
    _native.Engine(1).morton_order(np.ascontiguousarray(means), order)
    rows = [array[sources[order]] for array in arrays_of(table)]
    for moments in rows[2:]:
        moments[order >= len(kept)] = 0
    children = order >= first_child
    rows[0][children, :3] = means[order[children]]
    rows[0][children, 3:6] -= np.float32(math.log(rule.shrink))
    rows[0][:, 12:15] = 0
    return Table(*rows)


def grown(table: Table, rule: Rule) -> Grown:
    chosen, urgency = _candidates(table, rule)
    faint = _faint(table, rule)
    with np.errstate(over="ignore"):
        scales = np.exp(table.geometry[:, 3:6].max(axis=1))
    small = scales <= np.float32(rule.small_limit)
    gone = faint | (scales > np.float32(rule.size_limit))
    gone_child = faint | (scales / np.float32(rule.shrink) > np.float32(rule.size_limit))
    chosen = _within(rule, chosen, urgency, gone, np.where(small, gone, gone_child))
    clone, split = chosen & small, chosen & ~small
    pruned = (gone & ~split).sum() + (gone & clone).sum() + 2 * (gone_child & split).sum()
    table = _placed(table, ~split & ~gone, clone & ~gone, split & ~gone_child, rule)
    return Grown(table, int(clone.sum()), int(split.sum()), int(pruned))
