"""The grid that a scene is divided by: cells over the ground, which together are all of space.

The ground is the plane in which cameras and points spread most. Slabs across its first axis are each cut
across its second axis, always where the loads on both sides are alike. Outermost cells reach to infinity, so
that every point of space lies in exactly one cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import HalfSpaces
from splatmeter.densify.region import along
from splatmeter.errors import UsageError
from splatmeter.ops import F32, F64

Axis = tuple[float, float, float]
Cut = tuple[float, float, float]
"""Coordinates: where the block above begins, the border itself, and where the block below ends."""

OVERLAP = 0.3
"""A block reaches beyond its cell, on each inner side, as far as this share of the cell's load lies there: in
crowded places it is a narrow strip, in empty ones a wide one."""

NEAR_SHARE = 0.8
"""Share of the points, nearest to the middle, that decides what is level: a few far ones would tilt it."""

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
    across: tuple[Cut, ...]
    """Between slabs, along the first axis."""
    within: tuple[tuple[Cut, ...], ...]
    """Between the cells of each slab, along the second."""

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        return tuple((slab, cell) for slab, cuts in enumerate(self.within) for cell in range(len(cuts) + 1))

    def numbers_of(self, points: F32 | F64) -> NDArray[np.int64]:
        """Place in `cells` of each point [N]; -1 for what is not a number."""
        first, second = (along(points, axis) for axis in self.axes)  # [N] each
        slabs = np.searchsorted(borders(self.across), first, side="right")  # [N]
        numbers = np.full(len(points), -1, np.int64)
        begin = 0
        for slab, cuts in enumerate(self.within):
            rows = np.flatnonzero(slabs == slab)
            numbers[rows] = begin + np.searchsorted(borders(cuts), second[rows], side="right")
            begin += len(cuts) + 1
        numbers[~(np.isfinite(first) & np.isfinite(second))] = -1
        return numbers

    def region(self, cell: tuple[int, int]) -> HalfSpaces:
        """The cell and its margins."""
        slab, place = cell
        bounds: list[tuple[float, float, float, float]] = []
        for axis, cuts, number in (
            (self.axes[0], self.across, slab),
            (self.axes[1], self.within[slab], place),
        ):
            if number:
                bounds.append((*axis, cuts[number - 1][0]))
            if number < len(cuts):
                bounds.append((-axis[0], -axis[1], -axis[2], -cuts[number][2]))
        return tuple(bounds)

    def record(self) -> dict[str, Any]:
        return {"axes": self.axes, "across": self.across, "within": self.within}


def borders(cuts: Sequence[Cut]) -> list[float]:
    return [border for _, border, _ in cuts]


def from_record(record: dict[str, Any]) -> Grid:
    """KeyError, TypeError or ValueError where it is none."""
    first, second = (_three(values) for values in record["axes"])
    within = tuple(tuple(map(_three, cuts)) for cuts in record["within"])
    across = tuple(map(_three, record["across"]))
    if len(within) != len(across) + 1 or not all(len(cuts) == len(within[0]) for cuts in within):
        raise ValueError("the grid")
    return Grid((first, second), across, within)


def divide(cameras: F64, points: F64 | F32, loads: F64, shape: tuple[int, int]) -> Grid:
    """`loads` [N]: how often somebody looks at each of the points."""
    axes = ground(cameras, points)
    first, second = (along(points, axis) for axis in axes)  # [N] each
    across = cuts(first, loads, shape[0])
    slabs = np.searchsorted(borders(across), first, side="right")
    within = tuple(cuts(second[slabs == slab], loads[slabs == slab], shape[1]) for slab in range(shape[0]))
    return Grid(axes, across, within)


def ground(cameras: F64, points: F64 | F32) -> tuple[Axis, Axis]:
    """The two directions in which cameras and points, counted as much as each other, spread most."""
    everything = points.astype(np.float64)
    distance = np.linalg.norm(everything - np.median(everything, axis=0), axis=1)
    near = everything[distance <= np.quantile(distance, NEAR_SHARE)]
    spread = sum((_covariance(group) for group in (cameras, near)), np.zeros((3, 3)))
    _, directions = np.linalg.eigh(spread)  # ascending
    return _pointed(directions[:, 2]), _pointed(directions[:, 1])


def cuts(coordinates: F64, loads: F64, parts: int) -> tuple[Cut, ...]:
    """Where to cut so that all parts have the same load: halfway between two neighbours."""
    order = np.argsort(coordinates, kind="stable")
    sorted_, total = coordinates[order], np.cumsum(loads[order])
    if not len(sorted_):
        return ((0.0, 0.0, 0.0),) * (parts - 1)  # whoever asks finds the cells empty
    shares = (np.arange(1, parts)[:, None] + np.array([-OVERLAP, 0.0, OVERLAP])) / parts  # [parts - 1, 3]
    places = np.minimum(np.searchsorted(total, total[-1] * shares), len(sorted_) - 1)
    after = np.minimum(places + 1, len(sorted_) - 1)
    return tuple(_three(row) for row in ((sorted_[places] + sorted_[after]) / 2).tolist())


def _covariance(group: F64) -> F64:
    offsets = group - group.mean(axis=0)
    matrix = offsets.T @ offsets  # [3, 3]
    trace = np.trace(matrix)
    return matrix / trace if trace > 0 else np.zeros((3, 3))


def _pointed(direction: F64) -> Axis:
    """The one of two opposite directions whose largest component is positive."""
    x, y, z = (direction * np.sign(direction[np.argmax(np.abs(direction))])).tolist()
    return x, y, z


def _three(values: Any) -> tuple[float, float, float]:
    one, two, three = map(float, values)
    return one, two, three
