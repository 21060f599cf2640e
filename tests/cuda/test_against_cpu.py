"""Each pass of a step on the card against the CPU engine."""

from __future__ import annotations

import numpy as np
import pytest
from parity_scenes import SETTINGS, camera, random_table, smooth_image, special
from standin import Standin
from twins import ARRAYS, CardTwin, NativeTwin, Owed, arrays_of, copied, owed_after

from splatmeter.ops import RasterSettings, Table

SIZE = (101, 53)  # neither is a multiple of a tile's or of the loss's blocks
COLOUR_BAR, GRADIENT_BAR = 2e-5, 5e-5
# Without a 2D filter roundings are magnified; the CPU engine's own are no smaller.
HARD = {"no 2d filter"}


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """Relative, of the whole array; what is not finite must be the same."""
    usual = np.isfinite(expected)
    np.testing.assert_array_equal(found[~usual], expected[~usual])
    found, expected = found[usual], expected[usual]
    difference = np.linalg.norm(found.astype(np.float64) - expected)
    return float(difference / max(np.linalg.norm(expected.astype(np.float64)), 1e-30))


def behind(table: Table, steps: int, degree: int = 3) -> Owed:
    """Rows that wait for up to `steps` steps, with moments that say what they owe."""
    generator = np.random.default_rng(8)
    active = 3 * (degree + 1) ** 2
    table.geometry[:, 15] = generator.integers(0, steps + 1, table.count)
    table.geometry_moments[:, :11] = generator.uniform(-0.9, 0.9, (table.count, 11))
    table.geometry_moments[:, 12:23] = generator.uniform(1e-5, 1e-3, (table.count, 11))
    table.harmonics_first[:, :active] = generator.uniform(-0.9, 0.9, (table.count, active))
    table.harmonics_second[:, :active] = generator.uniform(1e-6, 1e-4, (table.count, active))
    return owed_after(steps)


def assert_same_step(
    card: CardTwin,
    cpu: NativeTwin,
    table: Table,
    owed: Owed | None,
    settings: RasterSettings,
    bar: float = GRADIENT_BAR,
) -> None:
    view, weights = camera(*SIZE, seed=3), smooth_image(*SIZE, seed=5)
    extra = np.ascontiguousarray(weights[1])
    seen = []
    for engine in (card, cpu):
        engine.put(table, owed)
        image = engine.forward(view, settings)
        gradients = engine.gradients(weights, extra)
        engine.forward(view, settings)
        engine.update(weights, 8)
        seen.append((image, gradients, engine.get()))
    (image, found, after), (other, expected, wanted) = seen
    flipped = (
        np.abs(image[0] - other[0]).max(axis=0) > 1e-4
    )  # a contribution just at 1/255 may fall either way
    assert flipped.mean() <= 3e-3
    assert np.abs(image[0] - other[0])[:, ~flipped].max(initial=0) <= COLOUR_BAR
    assert np.abs(image[1] - other[1])[~flipped].max(initial=0) <= COLOUR_BAR
    np.testing.assert_array_equal(found.visible, expected.visible)
    bar = 5e-3 if flipped.any() else bar
    for name, columns in (
        ("means", slice(0, 3)),
        ("scales", slice(3, 6)),
        ("rotations", slice(6, 10)),
        ("opacity", 10),
    ):
        assert distance(found.geometry[:, columns], expected.geometry[:, columns]) <= bar, name
    for name in ("harmonics", "mean2d", "absolute"):
        assert distance(getattr(found, name), getattr(expected, name)) <= bar, name
    for name in ARRAYS:
        assert distance(getattr(after, name), getattr(wanted, name)) <= 20 * bar, name
    np.testing.assert_array_equal(after.geometry[:, 14:], wanted.geometry[:, 14:])


@pytest.mark.parametrize("name", [name for name in SETTINGS if not SETTINGS[name].light_cut])
def test_a_step_agrees_with_every_setting(card: CardTwin, cpu: NativeTwin, name: str) -> None:
    settings, table = SETTINGS[name], random_table(300)
    assert_same_step(
        card,
        cpu,
        table,
        behind(table, 7, settings.sh_degree),
        settings,
        2e-3 if name in HARD else GRADIENT_BAR,
    )


@pytest.mark.parametrize("size", [(1, 1), (16, 16), (17, 33), (64, 16)])
def test_any_size_of_image_will_do(card: CardTwin, cpu: NativeTwin, size: tuple[int, int]) -> None:
    table, view = random_table(40), camera(*size, seed=3)
    images = []
    for engine in (card, cpu):
        engine.put(table)
        images.append(engine.forward(view, SETTINGS["mip"]))
    for found, expected in zip(*images, strict=True):
        assert np.abs(found - expected).max() <= COLOUR_BAR


def test_nothing_to_draw_is_background(card: CardTwin) -> None:
    for table in (random_table(0), special("invisible", camera(*SIZE, seed=3))):
        card.put(table)
        color, transmittance = card.forward(camera(*SIZE, seed=3), SETTINGS["white"])
        assert (color == 1).all() and (transmittance == 1).all()
        gradients = card.gradients(np.ones_like(color))
        assert not gradients.visible.any() and not gradients.geometry.any()


def test_rows_that_are_not_numbers_are_not_drawn(card: CardTwin, cpu: NativeTwin) -> None:
    table = random_table(60)
    table.geometry[::7, 0], table.geometry[3::7, 4], table.geometry[5::7, 10] = np.nan, np.inf, -1e30
    assert_same_step(card, cpu, table, None, SETTINGS["mip"])


def test_depths_beyond_three_digits_are_sorted_too(card: CardTwin, cpu: NativeTwin) -> None:
    """Three digits of nine bits reach from 0.2 to 13107."""
    table, view = random_table(90), camera(*SIZE, seed=3)
    depth = np.random.default_rng(0).permutation(np.geomspace(3, 3e5, 90))
    positions = np.random.default_rng(1).normal(size=(90, 2)) * 0.05 * depth[:, None]
    table.geometry[:, :3] = (
        np.concatenate([positions, depth[:, None]], axis=1) - view.translation
    ) @ view.rotation
    table.geometry[:, 3:6] = np.log(np.array([0.05, 0.1, 0.2]) * depth[:, None])
    launches = []
    for far in (False, True):
        shown = copied(table)
        if not far:
            shown.geometry[depth > 13000, 10] = -30
        before = card.card.launches
        assert_same_step(card, cpu, shown, None, SETTINGS["mip"], 1e-3)
        launches.append(card.card.launches - before)
    assert launches[1] == launches[0] + 2 * 5  # one digit more in both forward passes


def test_large_gaussians_are_emitted_by_the_whole_warp(card: CardTwin, cpu: NativeTwin) -> None:
    """More than 32 tiles each, in rows of more than 32 tiles: the warp's loop over columns turns twice."""
    table, view = random_table(30), camera(600, 40, seed=3)
    table.geometry[:, 3:6] = np.log(2.0)
    table.geometry[:, 10] = -2
    images = []
    for engine in (card, cpu):
        engine.put(table)
        images.append(engine.forward(view, SETTINGS["mip"]))
    assert card.card.pair_count > 32 * card.card.visible_count
    assert np.abs(images[0][0] - images[1][0]).max() <= COLOUR_BAR


def test_emit_finds_the_tiles_that_project_counted(
    card: CardTwin, cpu: NativeTwin, schedule: Standin
) -> None:
    """Half a million pairs, some of which meet a tile's border by a hair. With noise in what both kernels
    compute, these draws once made them disagree, and pairs were written over each other's."""
    table, view = random_table(1100), camera(1290, 120, seed=3)
    table.geometry[:, 3:6], table.geometry[:, 10] = np.log([1.0, 0.4, 0.4]), 2
    cpu.put(table)
    expected = cpu.forward(view, SETTINGS["mip"])[0]
    for seed in (6, 18):
        card.put(table)
        schedule.option("seed", seed)
        found = card.forward(view, SETTINGS["mip"])[0]
        assert (np.abs(found - expected).max(axis=0) > 1e-4).mean() <= 1e-3


@pytest.mark.parametrize("size", [(101, 53), (7, 5), (330, 150)])
def test_the_loss_agrees(card: CardTwin, cpu: NativeTwin, size: tuple[int, int]) -> None:
    """330 x 150 pixels are 330 blocks: the last sum takes more than one turn."""
    table, view = random_table(80), camera(*size, seed=3)
    photo = np.random.default_rng(4).integers(0, 256, (3, size[1], size[0]), np.uint8)
    results = []
    for engine in (card, cpu):
        engine.put(table)
        engine.forward(view, SETTINGS["mip"])
        results.append(engine.loss(photo, 0.2, photo.shape))
    found, expected = results
    assert abs(found[0] - expected[0]) <= 1e-6 and abs(found[1] - expected[1]) <= 1e-5
    assert distance(found[2], expected[2]) <= 1e-5
    assert card.card.loss(photo, 0.2, None) == pytest.approx(found[:2], abs=1e-8)


def test_a_step_of_statistics_moves_nothing_else(card: CardTwin, cpu: NativeTwin) -> None:
    table, view, weights = random_table(100), camera(*SIZE, seed=3), smooth_image(*SIZE, seed=5)
    owed = behind(table, 7)
    after = []
    for engine in (card, cpu):
        engine.put(table, owed)
        engine.forward(view, SETTINGS["mip"])
        engine.update(weights, 0)
        after.append(engine.get())
    np.testing.assert_array_equal(after[0].geometry[:, :12], table.geometry[:, :12])
    np.testing.assert_array_equal(after[0].geometry[:, 14:], after[1].geometry[:, 14:])
    assert distance(after[0].geometry[:, 12:14], after[1].geometry[:, 12:14]) <= GRADIENT_BAR
    for found, before in zip(arrays_of(after[0])[1:], arrays_of(table)[1:], strict=True):
        np.testing.assert_array_equal(found, before)


def test_long_lists_take_several_batches(card: CardTwin, cpu: NativeTwin) -> None:
    """More than two times 32 Gaussians in one tile, and pixels that end before the list does."""
    table = random_table(400)
    table.geometry[:, :3] *= 0.2
    table.geometry[:200, 10] = 6
    assert_same_step(card, cpu, table, None, SETTINGS["mip"])


def test_what_lies_behind_finished_pixels_counts_for_nothing(card: CardTwin, cpu: NativeTwin) -> None:
    """Sixty opaque layers over a few pixels of a tile whose other pixels stay alive: what is left of the
    light would fall below every float."""
    table, view = random_table(60), camera(*SIZE, seed=3)
    positions = np.stack([np.full(60, 0.02), np.full(60, 0.01), np.linspace(3, 4, 60)], axis=1)
    table.geometry[:, :3] = (positions - view.translation) @ view.rotation
    table.geometry[:, 3:6] = np.log([0.08, 0.06, 0.05])
    table.geometry[:, 10] = 12
    assert_same_step(card, cpu, table, None, RasterSettings(kernel_size=0.0, max_alpha=0.99), 1e-3)


def test_the_standin_is_what_runs(card: CardTwin, standin: Standin) -> None:
    before = standin.count("launches")
    card.put(random_table(10))
    card.forward(camera(*SIZE, seed=3), SETTINGS["mip"])
    assert standin.count("launches") > before
    assert "stand-in" in card.card.name and card.card.image == "PTX compute_80"
