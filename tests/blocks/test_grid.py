"""Cells fill space: every point lies in exactly one, loads are alike, and a block holds its cell."""

from __future__ import annotations

import json

import numpy as np
import pytest

from splatmeter.blocks import grid as grids
from splatmeter.blocks.grid import Grid, borders, divide, parse
from splatmeter.densify.region import along, inside
from splatmeter.errors import UsageError


def some_grid(shape: tuple[int, int] = (3, 2), seed: int = 0) -> tuple[Grid, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(5000, 3)) * [10, 4, 0.5]
    loads = generator.integers(1, 30, 5000).astype(np.float64)
    cameras = generator.normal(size=(50, 3)) * [10, 4, 0.1] + [0, 0, 3]
    return divide(cameras, points, loads, shape), points, loads


def test_cells_have_like_loads() -> None:
    grid, points, loads = some_grid()
    shares = np.bincount(grid.numbers_of(points), loads, len(grid.cells)) / loads.sum()
    assert len(shares) == 6 and abs(shares - 1 / 6).max() < 0.005


def test_every_point_of_space_lies_in_exactly_one_cell() -> None:
    """Also far away, on a border to the last bit, and whoever is asked about at the same time."""
    grid, _, _ = some_grid()
    generator = np.random.default_rng(5)
    axis = np.array(grid.axes[0])
    on_borders = np.array(borders(grid.across))[:, None] * axis  # [2, 3]
    points = np.concatenate(
        [generator.normal(size=(300, 3)) * 1e6, on_borders, generator.normal(size=(300, 3))]
    )
    points = points.astype(np.float32)
    numbers = grid.numbers_of(points)
    assert ((numbers >= 0) & (numbers < 6)).all()
    one_by_one = np.concatenate([grid.numbers_of(points[k : k + 1]) for k in range(len(points))])
    np.testing.assert_array_equal(numbers, one_by_one)


def test_a_block_holds_its_cell_and_a_margin() -> None:
    grid, points, loads = some_grid()
    numbers = grid.numbers_of(points)
    for number, cell in enumerate(grid.cells):
        held = inside(points, grid.region(cell))
        assert held[numbers == number].all()
        share = loads[held].sum() / loads[numbers == number].sum()
        assert 1.2 < share < 2.2


def test_one_cell_is_all_of_space() -> None:
    grid, points, _ = some_grid((1, 1))
    assert grid.region((0, 0)) == () and not grid.numbers_of(points * 1e9).any()


def test_what_is_not_a_number_lies_nowhere() -> None:
    grid, _, _ = some_grid()
    bad = np.array([[np.nan, 0, 0], [np.inf, 0, 0], [0, -np.inf, 0]], np.float32)
    with np.errstate(invalid="ignore"):
        assert grid.numbers_of(bad).tolist() == [-1, -1, -1]


def test_level_ground_is_found_however_the_scene_is_turned() -> None:
    generator = np.random.default_rng(2)
    turn, _ = np.linalg.qr(generator.normal(size=(3, 3)))
    flat = generator.normal(size=(2000, 3)) * [9, 5, 0.3]
    flat[:20] *= [1, 1, 4000]  # a few points in the sky
    axes = grids.ground(flat[100:150] @ turn.T, flat @ turn.T)
    up = turn @ [0, 0, 1]
    assert abs(np.dot(axes[0], up)) < 0.05 and abs(np.dot(axes[1], up)) < 0.05
    assert abs(np.dot(axes[0], turn @ [1, 0, 0])) > 0.95


def test_a_grid_in_a_file_is_the_same_grid_to_the_last_bit() -> None:
    grid, _, _ = some_grid()
    assert grids.from_record(json.loads(json.dumps(grid.record()))) == grid


@pytest.mark.parametrize(
    "damage", [{"axes": [[1, 0, 0]]}, {"within": []}, {"across": [[1, 2]]}, {"across": "x"}]
)
def test_a_garbled_grid_is_a_value_error(damage: dict[str, object]) -> None:
    record = json.loads(json.dumps(some_grid()[0].record())) | damage
    with pytest.raises((ValueError, TypeError)):
        grids.from_record(record)


@pytest.mark.parametrize("text", ["", "2", "2x", "0x2", "2x-1", "axb", "2x2x2", "99x99", "2 2", "1e3x1"])
def test_what_is_no_grid_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--blocks"):
        parse(text)


def test_spellings_of_a_grid() -> None:
    assert parse("7x1") == (7, 1) and parse(" 2 X 3 ") == (2, 3) and parse("2×2") == (2, 2)


def test_borders_are_along_the_axes() -> None:
    grid, points, _ = some_grid((2, 1))
    first = along(points, grid.axes[0])
    np.testing.assert_array_equal(grid.numbers_of(points), (first >= borders(grid.across)[0]).astype(int))
