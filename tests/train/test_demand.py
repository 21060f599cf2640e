"""What gradients ask for limits what is told of growth: courses that 7000 default steps had, replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splatmeter.densify.statistics import Statistics
from splatmeter.densify.strategies.gof import absolute_criterion
from splatmeter.densify.strategies.three_dgs import gradient_criterion
from splatmeter.train.config import TrainConfig
from splatmeter.train.memory_forecast import Forecast

THRESHOLD = 2e-4
Row = tuple[int, int]
COURSES: dict[str, tuple[int, list[Row], int]] = {
    "built-in": (4000, [
        (5829, 25487), (9125, 179824), (14666, 266131), (23232, 283189), (35980, 327020),
        (53871, 339948), (77446, 340615), (106715, 332796), (139130, 295513),
    ], 501_103),
    "fox_540": (9628, [
        (13941, 34484), (21351, 80514), (30606, 82296), (41424, 94914), (53625, 102855),
        (66542, 112655), (80225, 116388), (94292, 127710), (108274, 135621),
    ], 375_000),
    "garden_512": (138_766, [
        (162780, 247074), (212399, 779020), (275797, 722548), (350164, 740493), (437090, 822714),
        (529634, 829909), (632227, 926762), (726224, 919166), (818896, 974894),
    ], 2_800_000),
    "maryrose_864": (16_815, [
        (19872, 30435), (24615, 64395), (29579, 67977), (34770, 81377), (40100, 89559),
        (45546, 96627), (51205, 105213), (57088, 112773), (63133, 117358),
    ], 431_000),
    "city": (16_000, [
        (18533, 20823), (23778, 52442), (30449, 59696), (39704, 75405), (49566, 76564),
        (60680, 86755), (73143, 96195), (86441, 109788), (98468, 118344),
    ], 771_645),
    "mic_400": (100_000, [
        (3022, 119162), (4223, 44147), (5707, 36551), (7492, 31227), (9476, 27234),
        (11564, 27393), (13780, 27658), (16046, 29088), (18295, 27376),
    ], 129_001),
}  # fmt: skip
"""Gaussians at the start; after each densification from step 600 on how many there were, and how many it
would have taken for none to ask; the most in the end."""


def highest_after(rows: list[Row], start: int, **told: Any) -> int:
    config = TrainConfig(source_path=Path("x"), iterations=7000, **told.pop("settings", {}))
    forecast = Forecast(config, lambda gaussians: gaussians, 0.9, **told)
    forecast.begin(500, start)
    for step, (count, demand) in zip(range(600, 1500, 100), rows, strict=True):
        forecast.note(step, count, demand=demand)
    found = forecast.gaussians()
    assert found is not None
    return found.high


@pytest.mark.parametrize("name", COURSES)
def test_what_gradients_ask_for_lowers_an_upper_end_and_never_below_what_comes(name: str) -> None:
    """The city, which no constant was chosen by, grows sevenfold after a fifth of the steps, and gradients
    ask for a fifth more than there are: only a set that bursts is limited by what they ask for."""
    start, rows, most = COURSES[name]
    told, without = highest_after(rows, start), highest_after([(count, 0) for count, _ in rows], start)
    assert 0.95 * most <= told <= without


def test_a_set_that_bursts_is_told_half_as_many() -> None:
    start, rows, _ = COURSES["built-in"]
    assert highest_after(rows, start) < 0.65 * highest_after([(count, 0) for count, _ in rows], start)


def test_where_larger_photos_are_to_come_what_small_ones_ask_for_is_no_limit() -> None:
    start, rows, _ = COURSES["built-in"]
    without = [(count, 0) for count, _ in rows]
    coarse = {"settings": {"progressive": "2:3000"}}
    assert highest_after(rows, start, **coarse) == highest_after(without, start, **coarse)


def test_a_gaussian_with_three_times_the_gradient_needs_nine_in_its_place() -> None:
    gradient = np.array([0, 0.5, 1, 3], np.float32) * THRESHOLD
    for criterion in (gradient_criterion, absolute_criterion):
        demand = criterion(Statistics(gradient, gradient), THRESHOLD).demand
        assert demand == pytest.approx(1 + 1 + 1 + 9, rel=1e-5)


def test_what_is_no_gradient_of_a_picture_still_gives_a_number() -> None:
    wild = np.array([0, 3e38], np.float32)
    assert np.isfinite(gradient_criterion(Statistics(wild, wild), 1e-150).demand)
