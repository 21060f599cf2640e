"""Where the photos of the built-in city are taken: a flight over its roofs, and walks along its streets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from splatmeter.ops import F64, Pinhole
from splatmeter.scene.built_in import looking_at
from splatmeter.scene.camera_files import Intrinsics, centered, focal_of_angle

PITCH = 40.0
"""Metres from street to street: as in native/demo/city_plan.hpp."""
FIELD_OF_VIEW = math.radians(70)
ALTITUDE = 45.0
"""Photos of 3:2 then show 63 x 42 m of the ground; the steps of the flight are 0.32 of either."""
STEPS_EAST, STEPS_NORTH = 2, 3  # photos straight down, in each block
OBLIQUE_OFFSETS = (-10.0, 10.0)  # of their targets from the middle of a block
EYE_HEIGHT = 1.7
WALK_STEPS = 5  # photos along a block, in each direction
LANE = 1.3  # metres from the middle of the street: clear of parked cars
GLANCE = math.radians(28)  # to one side and the other, from photo to photo
GLANCE_AT_THE_END = math.radians(50)
"""Where a street leaves the city: towards the last house, not into the fields."""
EVERY = 8  # the usual test split

NORTH, UP = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

View = Literal["air", "street"]


@dataclass(frozen=True, slots=True)
class Shot:
    """A photo still to be taken."""

    view: View
    camera: Pinhole


def count_of_photos(size: int) -> int:
    down, oblique = STEPS_EAST * STEPS_NORTH, 4 * len(OBLIQUE_OFFSETS)
    return size * size * (down + oblique) + 2 * (size + 1) * size * 2 * WALK_STEPS


def city_shots(size: int, seed: int, width: int, height: int) -> list[Shot]:
    """In the order of their names: every eighth, a test view, is now from the air, now from the street."""
    lens = centered(focal_of_angle(FIELD_OF_VIEW, width), width, height)
    air = [Shot("air", camera) for camera in _flight(size, seed, lens)]
    street = [Shot("street", camera) for camera in _walks(size, seed, lens)]
    return _spread(air, street, seed)


def _flight(size: int, seed: int, lens: Intrinsics) -> Iterator[Pinhole]:
    above = np.array([0.0, 0.0, ALTITUDE])
    for j in range(size):
        for i in range(size):
            generator = np.random.default_rng([seed, 1, i, j])
            corner = np.array([PITCH * i, PITCH * j, 0.0])
            for number in range(STEPS_EAST * STEPS_NORTH):
                east, north = number % STEPS_EAST, number // STEPS_EAST
                place = PITCH * np.array([(east + 0.5) / STEPS_EAST, (north + 0.5) / STEPS_NORTH, 0])  # [3]
                target = corner + place
                yield _camera(lens, target + above + generator.normal(0, 0.7, 3), target, NORTH)
            for quarter in range(4):
                ahead = np.array([math.cos(quarter * math.pi / 2), math.sin(quarter * math.pi / 2), 0.0])
                across = np.array([-ahead[1], ahead[0], 0.0])
                for offset in OBLIQUE_OFFSETS:
                    target = corner + [PITCH / 2, PITCH / 2, 0] + across * offset
                    eye = target - ahead * ALTITUDE + above + generator.normal(0, 0.7, 3)
                    yield _camera(lens, eye, target)


def _walks(size: int, seed: int, lens: Intrinsics) -> Iterator[Pinhole]:
    """Along every street, there and back."""
    for axis in (0, 1):
        for line in range(size + 1):
            for block in range(size):
                for way in (1.0, -1.0):
                    yield from _stretch(Stretch(size, axis, line, block, way), seed, lens)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A walk along one block."""

    size: int
    axis: int
    """0: along x, 1: along y."""
    line: int
    """Which street in that direction; the first and the last have houses on one side only."""
    block: int
    way: float
    """1 there, -1 back."""

    def glance(self, step: int) -> float:
        """Radians to the right: from side to side, but never out of the city."""
        to_the_right = 1.0 if step % 2 else -1.0
        if self.line in (0, self.size):
            towards_larger = 1.0 if self.line == 0 else -1.0  # where the houses are, on the other axis
            to_the_right = towards_larger * self.way * (-1.0 if self.axis == 0 else 1.0)
        last_step, last_block = (WALK_STEPS - 1, self.size - 1) if self.way > 0 else (0, 0)
        leaves = step == last_step and self.block == last_block
        return to_the_right * (GLANCE_AT_THE_END if leaves else GLANCE)


def _stretch(stretch: Stretch, seed: int, lens: Intrinsics) -> Iterator[Pinhole]:
    axis, line, block, way = stretch.axis, stretch.line, stretch.block, stretch.way
    generator = np.random.default_rng([seed, 2 + axis, line, block, int(way > 0)])
    ahead = np.roll([way, 0.0, 0.0], axis)  # [3] along x, or along y
    right = np.cross(ahead, [0.0, 0.0, 1.0])  # [3]
    start = np.zeros(3)
    start[axis], start[1 - axis] = PITCH * block, PITCH * line
    for step in range(WALK_STEPS):
        along = PITCH * (step + (0.25 if way > 0 else 0.75)) / WALK_STEPS + generator.normal(0, 0.4)
        aside = LANE + generator.normal(0, 0.1)
        eye = start + np.abs(ahead) * along + right * aside + [0, 0, EYE_HEIGHT + generator.normal(0, 0.05)]
        turn = stretch.glance(step) + generator.normal(0, 0.05)
        look = ahead * math.cos(turn) + right * math.sin(turn) + [0, 0, math.tan(math.radians(4))]
        yield _camera(lens, eye, eye + look)


def _camera(lens: Intrinsics, eye: F64, target: F64, up: tuple[float, float, float] = UP) -> Pinhole:
    rotation = looking_at(eye, target, up)
    return Pinhole(rotation, -rotation @ eye, lens.fx, lens.fy, lens.cx, lens.cy, lens.width, lens.height)


def _spread(air: list[Shot], street: list[Shot], seed: int) -> list[Shot]:
    """Test views: one at random of every eight neighbours, from the air and from the street alike."""
    total = len(air) + len(street)
    wanted = -(-total // EVERY)
    from_air = round(wanted * len(air) / total)
    held, rest = [], []
    for shots, number in ((air, from_air), (street, wanted - from_air)):
        chosen = _one_of_each_stretch(len(shots), number, np.random.default_rng([seed, 4]))
        held += [shots[k] for k in sorted(chosen)]
        rest += [shot for k, shot in enumerate(shots) if k not in chosen]
    ordered: list[Shot] = []
    for number, shot in enumerate(held):
        ordered += [shot, *rest[number * (EVERY - 1) : (number + 1) * (EVERY - 1)]]
    return ordered


def _one_of_each_stretch(count: int, number: int, generator: np.random.Generator) -> set[int]:
    edges = [k * count // number for k in range(number)] + [count] if number else []
    return {int(generator.integers(low, high)) for low, high in pairwise(edges)}
