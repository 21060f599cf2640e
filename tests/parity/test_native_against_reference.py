"""Picture and its gradients: the native engine against the torch reference, branch by branch."""

from __future__ import annotations

import numpy as np
import pytest
from parity_scenes import SETTINGS, SPECIAL, camera, random_table, special

from splatmeter.backends.kernels import Kernels
from splatmeter.ops import FILTER_3D, LOG_SCALES, OPACITY_LOGITS, Pinhole, RasterSettings

pytest.importorskip("torch", reason="torch is not installed: the native engine was not compared with it")
from agreement import assert_agrees

SIZES = [(1, 1), (7, 5), (33, 17), (100, 64)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_random_scenes_agree_at_all_sizes(native: Kernels, size: tuple[int, int]) -> None:
    exact = assert_agrees(native, random_table(), camera(*size), SETTINGS["mip"])
    assert exact.gradients.visible.any()


@pytest.mark.parametrize("name", SETTINGS)
def test_random_scenes_agree_in_all_settings(native: Kernels, name: str) -> None:
    exact = assert_agrees(native, random_table(seed=5), camera(33, 17, seed=1), SETTINGS[name])
    degree = SETTINGS[name].sh_degree
    active = 3 * (degree + 1) ** 2
    assert exact.gradients.harmonics[:, :active].any(axis=0).all()
    assert not exact.gradients.harmonics[:, active:].any()


def test_random_scenes_agree_without_the_3d_filter(native: Kernels) -> None:
    table = random_table(seed=6)
    table.geometry[:, FILTER_3D] = 0
    assert_agrees(native, table, camera(33, 17, seed=2), SETTINGS["mip"])


@pytest.mark.parametrize("shift", [(0.2, -0.1), (-0.6, 0.7)])
def test_an_off_centre_principal_point_agrees(native: Kernels, shift: tuple[float, float]) -> None:
    assert_agrees(native, random_table(seed=7), camera(33, 17, seed=3, shift=shift), SETTINGS["mip"])


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("settings", ["mip", "plain 3dgs"])
def test_unusual_gaussians_agree(native: Kernels, name: str, settings: str) -> None:
    view = camera(70, 45, seed=4)
    width = 1e-3 if name in ("needles", "huge", "off_screen") else 1e-4  # their exponents cancel
    exact = assert_agrees(native, special(name, view), view, SETTINGS[settings], width)
    assert exact.gradients.visible.any() == (name != "invisible")


def test_gaussians_thinner_than_a_pixel_agree_without_the_2d_filter(native: Kernels) -> None:
    """Without the filter the exponential's row recurrence meets its steepest slopes."""
    view = camera(70, 45, seed=4)
    assert_agrees(native, special("steep", view, count=300), view, SETTINGS["no 2d filter"])


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_nothing_shows_the_background(native: Kernels, size: tuple[int, int]) -> None:
    settings = RasterSettings(background=(0.25, 0.5, 1.0), absolute_gradients=True)
    assert_agrees(native, random_table(0), camera(*size), settings)
    rendering, _ = native.forward(random_table(0), camera(*size), settings)
    np.testing.assert_array_equal(rendering.color[:, 0, 0], [0.25, 0.5, 1.0])
    np.testing.assert_array_equal(rendering.transmittance, 1)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 31, 32, 33])
def test_counts_around_the_width_of_a_vector_agree(native: Kernels, count: int) -> None:
    assert_agrees(native, random_table(count, seed=8), camera(33, 17, seed=5), SETTINGS["mip"])


def test_a_light_cut_ends_pixels_where_the_reference_does(native: Kernels) -> None:
    view = camera(70, 45, seed=4)
    table = special("opaque", view)
    for cut in (0.004, 0.1):
        settings = RasterSettings(light_cut=cut, background=(0.25, 0.5, 1.0), absolute_gradients=True)
        assert_agrees(native, table, view, settings)
        rendering, _ = native.forward(table, view, settings)
        whole, _ = native.forward(table, view, RasterSettings(background=(0.25, 0.5, 1.0)))
        changed = np.abs(rendering.transmittance - whole.transmittance) > 1e-6
        assert changed.any() and (rendering.transmittance[changed] <= cut).all()
        assert (whole.transmittance[rendering.transmittance > cut] > cut).all()


def test_a_light_cut_loses_no_light_that_something_opaque_catches(native: Kernels) -> None:
    """The original's rule leaves out whatever would end a pixel; a cut blends it."""
    table = random_table(2, seed=11)
    table.geometry[:, :3] = [[0, 0, 0], [0, 0, 0.5]]
    table.geometry[:, LOG_SCALES], table.geometry[:, OPACITY_LOGITS] = 3.0, 12
    table.geometry[:, FILTER_3D] = 0
    view = Pinhole(np.eye(3), np.array([0, 0, 4.0]), 30, 30, 4, 4, 8, 8)
    middle = (4, 4)
    whole, _ = native.forward(table, view, RasterSettings(max_alpha=0.995))
    cut, _ = native.forward(table, view, RasterSettings(max_alpha=0.995, light_cut=0.01))
    both, _ = native.forward(table, view, RasterSettings(max_alpha=0.995, light_cut=0.001))
    assert whole.transmittance[middle] == pytest.approx(0.005, rel=1e-3)  # the second would leave 2.5e-5
    assert cut.transmittance[middle] == pytest.approx(0.005, rel=1e-3)
    assert both.transmittance[middle] == pytest.approx(0.005**2, rel=1e-3)


def test_tile_borders_do_not_show(native: Kernels) -> None:
    """Several tiles each way, odd sizes, a principal point that puts large Gaussians across the borders."""
    table = random_table(100, seed=9)
    assert_agrees(native, table, camera(131, 97, seed=6, shift=(0.05, 0.05)), SETTINGS["mip"])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
def test_rows_that_are_not_finite_are_not_drawn(native: Kernels, value: float) -> None:
    table = random_table(40, seed=10)
    view = camera(33, 17, seed=7)
    bad = np.arange(0, 36, 3)
    table.geometry[bad, np.arange(12)] = value  # each column once
    exact = assert_agrees(native, table, view, SETTINGS["mip"])
    assert not exact.gradients.visible[bad].any()
    assert exact.gradients.visible.any()


def test_forward_does_not_write_to_the_table(native: Kernels) -> None:
    table = random_table()
    geometry, harmonics = table.geometry.copy(), table.harmonics.copy()
    native.forward(table, camera(33, 17), SETTINGS["mip"])
    np.testing.assert_array_equal(table.geometry, geometry)
    np.testing.assert_array_equal(table.harmonics, harmonics)


def test_a_huge_image_of_one_gaussian_agrees(native: Kernels) -> None:
    """The row recurrence of the exponential runs longest here."""
    view = camera(260, 200, seed=8)
    table = special("huge", view, count=3)
    assert_agrees(native, table, view, SETTINGS["mip"], width=1e-3)


def test_a_camera_inside_the_scene_agrees(native: Kernels) -> None:
    far = camera(33, 17, seed=9)
    inside = Pinhole(far.rotation, np.zeros(3), far.fx, far.fy, far.cx, far.cy, far.width, far.height)
    assert_agrees(native, random_table(seed=11), inside, SETTINGS["mip"], width=1e-3)
