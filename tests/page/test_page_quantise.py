"""What rounding does to a model: never more than half a step of anything, and nothing that could be seen."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from page_models import SETTINGS, mixed_table, ring

from splatmeter.evaluate.metrics import psnr
from splatmeter.gaussians import gaussians
from splatmeter.ops import LOG_SCALES, MEANS, OPACITY_LOGITS, ROTATIONS, empty_table
from splatmeter.page import html_file, quantise
from splatmeter.render.pictures import to_8bit

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from tiny_scene import some_backend


def kept_rows(table, packed):  # type: ignore[no-untyped-def]
    """The rows of `table` in the order of the packed ones, found by their places."""
    restored = quantise.restored(packed)
    far = ((table.geometry[None, :, MEANS] - restored.geometry[:, None, MEANS]) ** 2).sum(axis=2)
    return far.argmin(axis=1), restored


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_no_value_moves_by_more_than_half_a_step(degree: int) -> None:
    table = mixed_table(700, degree)
    packed = quantise.quantised(table, degree)
    rows, restored = kept_rows(table, packed)
    assert len(set(rows)) == packed.count, "each is there once"
    log_scales, logits = gaussians.fused(table)
    half = 0.5 * 1.001
    np.testing.assert_allclose(
        restored.geometry[:, LOG_SCALES], log_scales[rows], atol=half * quantise.LOG_SCALE_STEP
    )
    opacity = gaussians.sigmoid(restored.geometry[:, OPACITY_LOGITS])
    np.testing.assert_allclose(opacity, gaussians.sigmoid(logits[rows]), atol=half / quantise.OPACITY_LEVELS)
    thinnest = np.exp(log_scales.min(axis=1))
    moved = np.abs(restored.geometry[:, MEANS] - table.geometry[rows, MEANS]).max(axis=1)
    assert moved.max() < quantise.POSITION_SHARE * np.quantile(thinnest, 0.5)
    before, after = gaussians.rotations(table)[rows], restored.geometry[:, ROTATIONS]
    assert np.abs((before * after).sum(axis=1)).min() > 1 - 1e-5, "the same turn, whichever sign"
    moved = quantise.to_differences((restored.harmonics - table.harmonics[rows]).reshape(-1, 16, 3))
    assert np.abs(moved[:, 0]).max() <= half * quantise.COLOR_STEP
    assert np.abs(moved[:, 1:]).max() <= half * quantise.HARMONIC_STEP


def test_what_is_never_drawn_is_left_out_and_everything_else_stays() -> None:
    table = mixed_table(500)
    drawn = gaussians.filtered_opacities(table) > 1 / 255
    assert 0 < quantise.quantised(table, 3).count == drawn.sum() < 500


def test_the_picture_hardly_changes() -> None:
    table, camera = mixed_table(3000), ring()[0]
    backend = some_backend()
    packed = quantise.quantised(table, 3)
    pictures = [
        to_8bit(backend.upload(model).render(camera, SETTINGS).color)
        for model in (table, quantise.restored(packed))
    ]
    assert psnr(*pictures) > 45
    coarse = quantise.restored(quantise.quantised(table, 3, 5.0))
    assert psnr(pictures[0], to_8bit(backend.upload(coarse).render(camera, SETTINGS).color)) < psnr(*pictures)


def test_nothing_and_next_to_nothing_can_be_packed() -> None:
    for count in (0, 1, 3):
        table = mixed_table(count)
        table.geometry[:, OPACITY_LOGITS] = 3
        assert quantise.restored(quantise.quantised(table, 3)).count == count
    alike = empty_table(300, trainable=False)
    alike.geometry[:, OPACITY_LOGITS] = 1  # all at one place, with no rotation at all
    restored = quantise.restored(quantise.quantised(alike, 0))
    assert np.abs(restored.geometry[:, MEANS]).max() == 0
    np.testing.assert_allclose(restored.geometry[:, ROTATIONS], [[1, 0, 0, 0]] * 300, atol=3e-3)


def test_extreme_values_stay_numbers() -> None:
    table = mixed_table(100)
    table.geometry[:, LOG_SCALES] = np.random.default_rng(0).choice([-90, -3, 40], (100, 3))
    table.geometry[:, MEANS] *= np.logspace(-3, 6, 100)[:, None]
    table.geometry[:, OPACITY_LOGITS] = 60
    table.harmonics[:] *= 1e4
    restored = quantise.restored(quantise.quantised(table, 3))
    assert gaussians.finite_rows(restored).all()


def test_a_place_on_earth_does_not_get_into_the_page() -> None:
    """A reconstruction in metres east and north tells where it was made; the page's own origin does not."""
    table = mixed_table(300)
    table.geometry[:, MEANS] += [431_000, 5_410_000, 300]
    packed = quantise.quantised(table, 3)
    corners = np.frombuffer(packed.data[: 24 * 2], "<f4")
    assert np.abs(corners).max() < 100 and "origin" not in packed.header
    assert np.abs(packed.origin - [431_000, 5_410_000, 300]).max() < 1


def test_half_a_million_need_at_most_twenty_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is the worst there is: nothing in it repeats. Coarser steps are taken until it fits."""
    table = mixed_table(4000)
    table.harmonics[:, 3:] *= 5
    assert html_file.packed_text(table, 3).coarseness == 1, "a small page is no page to save on"
    monkeypatch.setattr(html_file, "SMALL", 0)
    taken = html_file.packed_text(table, 3)
    assert len(taken.text) <= 40 * taken.packed.count and taken.coarseness > 1
    gentle = dataclasses.replace(table, harmonics=table.harmonics * np.float32(0.02))
    assert html_file.packed_text(gentle, 3).coarseness == 1
