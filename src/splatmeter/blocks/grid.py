"""The grid that a scene is divided by: cells over the ground, which together are all of space.

The ground is the plane in which cameras and points spread most. Slabs across its first axis are each cut
across its second axis, always where the loads on both sides are alike. Outermost cells reach to infinity, so
that every point of space lies in exactly one cell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import HalfSpaces
from splatmeter.densify.region import along
from splatmeter.errors import UsageError
from splatmeter.ops import F32, F64

Axis = tuple[float, float, float]
Interval = tuple[float, float]

OVERLAP = 0.1
"""Share of a cell's own width by which its block reaches beyond it on each inner side."""

OUTLIERS = 0.02
"""Share of the load at each end of an axis that does not count for the width of an outermost cell."""

NEAR_SHARE = 0.8
"""Of the points, those nearest to the middle decide what is level: a few far ones would tilt it."""

MOST_CELLS = 1024


def parse(text: str) -> tuple[int, int]:
    """'3x2' is three cells along the longer axis of the ground and two along the shorter one."""
    match = re.fullmatch(r"\s*(\d{1,4})\s*[xX×]\s*(\d{1,4})\s*", text)
    if match is None or not 1 <= int(match[1]) * int(match[2]) <= MOST_CELLS:
        raise UsageError(
            f"--blocks {text[:40]} is no grid. Write for example 2x2, two by two blocks; "
            f"at most {MOST_CELLS} are possible."
        )
    return int(match[1]), int(match[2])


@dataclass(frozen=True, slots=True)
class Grid:
    axes: tuple[Axis, Axis]
    across: tuple[float, ...]
    """Where slabs end, along the first axis."""
    within: tuple[tuple[float, ...], ...]
    """Where the cells of each slab end, along the second."""
    spans: tuple[Interval, Interval]
    """Between which coordinates almost all of the load lies: outermost cells end there, for their width."""

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        return tuple((slab, cell) for slab, cuts in enumerate(self.within) for cell in range(len(cuts) + 1))

    def numbers_of(self, points: F32 | F64) -> NDArray[np.int64]:
        """Place in `cells` of each point [N]; -1 for what is not a number."""
        first, second = (along(points, axis) for axis in self.axes)  # [N] each
        slabs = np.searchsorted(self.across, first, side="right")  # [N]
        numbers = np.full(len(points), -1, np.int64)
        begin = 0
        for slab, cuts in enumerate(self.within):
            rows = np.flatnonzero(slabs == slab)
            numbers[rows] = begin + np.searchsorted(cuts, second[rows], side="right")
            begin += len(cuts) + 1
        numbers[~(np.isfinite(first) & np.isfinite(second))] = -1
        return numbers

    def region(self, cell: tuple[int, int]) -> HalfSpaces:
        """The cell and its margins."""
        slab, place = cell
        bounds: list[tuple[float, float, float, float]] = []
        for axis, cuts, number, span in (
            (self.axes[0], self.across, slab, self.spans[0]),
            (self.axes[1], self.within[slab], place, self.spans[1]),
        ):
            low = cuts[number - 1] if number else None
            high = cuts[number] if number < len(cuts) else None
            width = (span[1] if high is None else high) - (span[0] if low is None else low)
            margin = OVERLAP * max(width, 0.0)
            if low is not None:
                bounds.append((*axis, low - margin))
            if high is not None:
                bounds.append((-axis[0], -axis[1], -axis[2], -(high + margin)))
        return tuple(bounds)

    def record(self) -> dict[str, Any]:
        return {"axes": self.axes, "across": self.across, "within": self.within, "spans": self.spans}


def from_record(record: dict[str, Any]) -> Grid:
    """KeyError, TypeError or ValueError where it is none."""
    first, second = (_axis(values) for values in record["axes"])
    low, high = (_interval(values) for values in record["spans"])
    within = tuple(tuple(map(float, cuts)) for cuts in record["within"])
    across = tuple(map(float, record["across"]))
    if len(within) != len(across) + 1 or not all(len(cuts) == len(within[0]) for cuts in within):
        raise ValueError("the grid")
    return Grid((first, second), across, within, (low, high))


def divide(cameras: F64, points: F64 | F32, loads: F64, shape: tuple[int, int]) -> Grid:
    """`loads` [N]: how often somebody looks at each of the points."""
    axes = ground(cameras, points)
    first, second = (along(points, axis) for axis in axes)  # [N] each
    across = cuts(first, loads, shape[0])
    slabs = np.searchsorted(across, first, side="right")
    within = tuple(cuts(second[slabs == slab], loads[slabs == slab], shape[1]) for slab in range(shape[0]))
    spans = (_span(first, loads), _span(second, loads))
    return Grid(axes, across, within, spans)


def ground(cameras: F64, points: F64 | F32) -> tuple[Axis, Axis]:
    """The two directions in which cameras and points, counted as much as each other, spread most."""
    everything = points.astype(np.float64)
    distance = np.linalg.norm(everything - np.median(everything, axis=0), axis=1)
    near = everything[distance <= np.quantile(distance, NEAR_SHARE)]
    spread = sum((_covariance(group) for group in (cameras, near)), np.zeros((3, 3)))
    _, directions = np.linalg.eigh(spread)  # ascending
    return _pointed(directions[:, 2]), _pointed(directions[:, 1])


def cuts(coordinates: F64, loads: F64, parts: int) -> tuple[float, ...]:
    """Where to cut so that all parts have the same load: halfway between two neighbours."""
    order = np.argsort(coordinates, kind="stable")
    sorted_, total = coordinates[order], np.cumsum(loads[order])
    if not len(sorted_):
        return (0.0,) * (parts - 1)  # nobody can live there: whoever asks finds the cells empty
    places = np.searchsorted(total, total[-1] * np.arange(1, parts) / parts)
    after = np.minimum(places + 1, len(sorted_) - 1)
    return tuple(((sorted_[places] + sorted_[after]) / 2).tolist())


def _span(coordinates: F64, loads: F64) -> Interval:
    order = np.argsort(coordinates, kind="stable")
    total = np.cumsum(loads[order])
    low, high = np.searchsorted(total, total[-1] * np.array([OUTLIERS, 1 - OUTLIERS]))
    return float(coordinates[order[low]]), float(coordinates[order[min(high, len(order) - 1)]])


def _covariance(group: F64) -> F64:
    offsets = group - group.mean(axis=0)
    matrix = offsets.T @ offsets  # [3, 3]
    trace = np.trace(matrix)
    return matrix / trace if trace > 0 else np.zeros((3, 3))


def _pointed(direction: F64) -> Axis:
    """Of the two opposite ones the one whose largest component is positive."""
    x, y, z = (direction * np.sign(direction[np.argmax(np.abs(direction))])).tolist()
    return x, y, z


def _axis(values: Any) -> Axis:
    x, y, z = map(float, values)
    return x, y, z


def _interval(values: Any) -> Interval:
    low, high = map(float, values)
    return low, high
