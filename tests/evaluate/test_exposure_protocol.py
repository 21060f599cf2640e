"""The rule of exposure: what is fitted is never judged, and a report says which rule it follows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from splatmeter.evaluate import exposure_fit
from splatmeter.evaluate.protocol import evaluate_views
from splatmeter.evaluate.results import method_name
from splatmeter.ops import Similarity

WARM = np.array([[1.2, 0.1, 0.0, 0.02], [0.0, 0.9, 0.05, -0.01], [0.1, 0.0, 0.7, 0.03]])


def render(width: int = 20, height: int = 12) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 0.7, (3, height, width)).astype(np.float32)


def photographed(picture: np.ndarray) -> np.ndarray:
    shown = np.tensordot(WARM[:, :3], picture, 1) + WARM[:, 3, None, None]
    return np.rint(255 * shown).clip(0, 255).astype(np.uint8)


def test_a_fit_finds_the_transform_that_made_the_photo() -> None:
    picture = render()
    np.testing.assert_allclose(exposure_fit.fit(picture, photographed(picture)), WARM, atol=0.005)


def test_only_the_left_half_is_fitted() -> None:
    picture = render()
    photo = photographed(picture)
    other = photo.copy()
    other[:, :, 10:] = 255 - other[:, :, 10:]
    np.testing.assert_array_equal(exposure_fit.fitted(picture, photo), exposure_fit.fitted(picture, other))
    other[:, :, 9] = 0
    assert (exposure_fit.fitted(picture, photo) != exposure_fit.fitted(picture, other)).any()


def test_clipped_pixels_tell_nothing() -> None:
    picture = render(60, 40) + 0.25
    bright = 1.5 * picture
    photo = np.rint(255 * bright).clip(0, 255).astype(np.uint8)
    assert 0.2 < (photo == 255).any(axis=0).mean() < 0.9
    gains = exposure_fit.fit(picture, photo)
    np.testing.assert_allclose(gains[:, :3], 1.5 * np.eye(3), atol=0.03)
    np.testing.assert_array_equal(exposure_fit.fit(picture, np.full_like(photo, 255)), np.eye(3, 4))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_what_says_nothing_changes_nothing(width: int) -> None:
    """A picture too narrow for halves, and one that is black all over."""
    black = np.zeros((3, 4, width), np.float32)
    assert np.isfinite(exposure_fit.fitted(black, np.full((3, 4, width), 90, np.uint8))).all()
    picture = render(1, 4)
    dark = np.zeros((3, 4, 1), np.uint8)
    np.testing.assert_allclose(exposure_fit.fitted(picture, dark), picture, atol=1e-6)


class _Photos:
    def __init__(self, photo: np.ndarray) -> None:
        self.photo = photo

    def load(self, _: Any) -> np.ndarray:
        return self.photo

    def prefetch(self, _: Any) -> None: ...


def report(picture: np.ndarray, photo: np.ndarray, rule: str) -> Any:
    sizes: list[tuple[int, ...]] = []

    def similarity(seen: np.ndarray, _: np.ndarray) -> Similarity:
        sizes.append(seen.shape)
        return Similarity(0.0, 1.0)

    views: Any = [SimpleNamespace(name="a", photo=None)]
    photos: Any = _Photos(photo)
    return evaluate_views(views, lambda _: picture, photos, similarity, exposure=rule), sizes


def test_a_report_follows_its_rule_and_says_so() -> None:
    picture = render()
    photo = photographed(picture)
    plain, whole = report(picture, photo, "none")
    fitted, half = report(picture, photo, "left-half")
    assert (plain.exposure, fitted.exposure) == ("none", "left-half")
    assert whole == [(3, 12, 20)] and half == [(3, 12, 10)]
    assert plain.means["psnr"] < 22 and fitted.means["psnr"] > 45
    photo[:, :, 10:] = 0  # where it is judged
    assert report(picture, photo, "left-half")[0].means["psnr"] < 12


def test_results_of_another_rule_have_an_entry_of_their_own(tmp_path: Path) -> None:
    assert method_name(30) == "ours_30"
    assert method_name(30, 2, "left-half") == "ours_30_scale_2_left_half"
