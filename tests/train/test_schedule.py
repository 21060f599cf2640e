from __future__ import annotations

from pathlib import Path

import pytest

from splatmeter.scene.scene import SceneOptions, load_scene
from splatmeter.train.config import TrainConfig
from splatmeter.train.schedule import Schedule, next_degree, position_scale, rest_divisor


def test_the_position_rate_falls_by_a_hundred_over_the_run_and_scales_with_the_extent() -> None:
    schedule = Schedule(extent=5.0)
    assert schedule.position(0) == pytest.approx(5 * 1.6e-4, rel=1e-12)
    assert schedule.position(15_000) == pytest.approx(5 * 1.6e-5, rel=1e-12)
    assert schedule.position(30_000) == pytest.approx(5 * 1.6e-6, rel=1e-12)
    assert schedule.position(40_000) == schedule.position(30_000)


def test_a_tenth_of_the_run_costs_the_tenth_root_of_a_hundred() -> None:
    assert Schedule(extent=1.0).position(3000) == pytest.approx(1.6e-4 * 100**-0.1, rel=1e-12)


def test_the_other_rates_stay() -> None:
    early, late = Schedule(extent=2.0).rates(1), Schedule(extent=2.0).rates(29_999)
    assert early.mean > late.mean
    for name in ("harmonics_dc", "harmonics_rest", "opacity", "scale", "rotation"):
        assert getattr(early, name) == getattr(late, name)
    assert early.harmonics_rest == pytest.approx(0.000125)


def test_the_other_rates_fall_together_to_the_share_asked_for() -> None:
    schedule = Schedule(extent=2.0, position_steps=1000, last_share=0.04)
    first, half, last, after = (schedule.rates(step) for step in (0, 500, 1000, 2000))
    assert last == after
    for name in ("harmonics_dc", "harmonics_rest", "opacity", "scale", "rotation"):
        assert getattr(half, name) == pytest.approx(0.2 * getattr(first, name), rel=1e-12)
        assert getattr(last, name) == pytest.approx(0.04 * getattr(first, name), rel=1e-12)
    assert half.mean == pytest.approx(schedule.position(500))


def test_positions_begin_with_steps_of_so_many_pixels_whatever_the_lens() -> None:
    for pixels_per_unit in (60.0, 700.0):
        scale = position_scale(0.25, 0.00016, 5.0 * pixels_per_unit)
        schedule = Schedule(extent=5.0, position_first=scale * 0.00016, position_last=scale * 0.0000016)
        assert schedule.position(0) * pixels_per_unit == pytest.approx(0.25)
        assert schedule.position(30_000) * pixels_per_unit == pytest.approx(0.0025)
    assert position_scale(0.0, 0.00016, 300.0) == position_scale(0.25, 0.0, 300.0) == 1
    assert position_scale(0.25, 0.00016, 0.0) == 1  # nobody sees a point


def test_higher_harmonics_learn_as_fast_as_there_are_directions_to_back_them() -> None:
    assert rest_divisor(0, 1000) == rest_divisor(130, 0) == 20  # as published
    assert [rest_divisor(130, photos) for photos in (13, 65, 104, 130, 1000)] == [20, 20, 7.8125, 5, 5]
    rates = Schedule(extent=1.0, harmonics=0.01, rest_divisor=50).rates(1)
    assert (rates.harmonics_dc, rates.harmonics_rest) == (0.01, 0.01 / 50)


def test_a_position_rate_of_zero_keeps_positions() -> None:
    assert Schedule(extent=2.0, position_first=0.0, position_last=0.0).position(10) == 0.0


def test_one_degree_more_every_thousand_steps_up_to_the_limit() -> None:
    degree, seen = 0, {}
    for step in range(1, 5001):
        degree = next_degree(degree, step, 3)
        seen[step] = degree
    assert [seen[step] for step in (1, 999, 1000, 1999, 2000, 3000, 5000)] == [0, 0, 1, 1, 2, 3, 3]
    assert next_degree(0, 1000, 0) == 0


def test_degrees_come_as_often_as_asked_for() -> None:
    assert [next_degree(0, step, 3, 400) for step in (399, 400, 1000)] == [0, 1, 0]


def test_photos_of_half_the_size_get_twice_the_rate(scene_folder: Path) -> None:
    first = []
    for resolution in (1, 2):
        scene = load_scene(SceneOptions(source=scene_folder, resolution=resolution))
        rates = TrainConfig(position_lr_pixels=0.28).schedule(scene)
        assert rates.position(0) * scene.pixels_per_unit == pytest.approx(0.28)
        assert TrainConfig().schedule(scene).position_first == 0.00016  # to the bit, where nobody asked
        first.append(rates.position(0))
    assert first[1] == pytest.approx(2 * first[0], rel=0.05)
