"""Colour, alpha and depth: against sums by hand, against the torch twin, and what is no camera."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gaussians_to_build import built, camera

from splatmeter import api
from splatmeter.ops import F64, NEAR
from splatmeter.render.pictures import to_8bit


def front(width: int = 9) -> api.Camera:
    """At the origin, looking along z, with the middle of a pixel on the axis."""
    return api.Camera.from_camera_to_world(np.eye(4), width=width, height=9, fx=20)


def row(depths: list[float], opacities: list[float], size: float = 0.3) -> api.Model:
    """One behind the other on the optical axis."""
    count = len(depths)
    return api.Model(
        means=[[0, 0, depth] for depth in depths],
        scales=np.full((count, 3), size),
        rotations=[[1, 0, 0, 0]] * count,
        opacities=opacities,
        harmonics=api.harmonics_from_colors(np.linspace(0.2, 0.9, 3 * count).reshape(-1, 3)),
        compensate=False,
        device="cpu",
    )


def weights(opacities: list[float]) -> F64:
    left, found = 1.0, []
    for opacity in opacities:
        found.append(left * opacity)
        left *= 1 - opacity
    return np.array(found)


def test_depth_and_alpha_are_the_sums_that_the_docstring_says() -> None:
    depths, opacities = [2.0, 3.5, 7.0], [0.5, 0.6, 0.9]
    picture = row(depths, opacities).render(front())
    by_hand = weights(opacities)
    assert picture.alpha[4, 4] == pytest.approx(by_hand.sum(), rel=1e-5)
    assert picture.depth[4, 4] == pytest.approx((by_hand @ depths) / by_hand.sum(), rel=1e-5)
    colors = np.linspace(0.2, 0.9, 9).reshape(-1, 3)
    np.testing.assert_allclose(picture.color[4, 4], by_hand @ colors, rtol=1e-5)


def test_depth_is_along_the_axis_and_not_the_distance() -> None:
    aside = api.Model([[1.0, 0, 2.0]], [[0.05] * 3], [[1, 0, 0, 0]], [0.9], [[[0, 0, 0]]], device="cpu")
    picture = aside.render(front(width=41))
    seen = np.isfinite(picture.depth)
    assert seen.any()
    np.testing.assert_allclose(picture.depth[seen], 2.0, rtol=1e-5)


def test_depth_is_nan_where_nothing_is_and_untouched_by_what_is_not_drawn() -> None:
    nearby = row([NEAR / 2, 4.0], [0.9, 0.5], size=0.02)
    picture = nearby.render(front(width=201))
    covered = picture.alpha > 0
    assert covered.any() and not covered.all()
    assert np.isnan(picture.depth[~covered]).all()
    np.testing.assert_allclose(picture.depth[covered], 4.0, rtol=1e-5)
    behind = row([-3.0], [0.9]).render(front())
    assert np.isnan(behind.depth).all() and not behind.alpha.any()
    assert not behind.depth_pixels.any()


def test_depth_agrees_with_the_torch_twin_blending_depths_instead_of_colours() -> None:
    torch = pytest.importorskip("torch", reason="depth was not compared with the reference: no torch")
    from splatmeter.backends.reference.blending import Sorted, blend, offsets, pixel_chunks
    from splatmeter.backends.reference.projection import project
    from splatmeter.gaussians.active import table_of
    from splatmeter.ops import RasterSettings

    model, at = built(), camera()
    table, degree = table_of(model.means, model.scales, model.rotations, model.opacities, model.harmonics)
    settings = RasterSettings(degree)
    seen = project(
        torch.tensor(table.geometry, dtype=torch.float64), torch.tensor(table.harmonics, dtype=torch.float64),
        at, settings,
    )  # fmt: skip
    order = seen.keep.nonzero()[:, 0]
    order = order[torch.argsort(seen.depth[order].float(), stable=True)]
    depths = torch.stack([seen.depth, torch.ones_like(seen.depth), torch.zeros_like(seen.depth)], 1)
    ellipses = Sorted(seen.center[order], seen.conic[order], seen.alpha[order], depths[order])
    parts = [
        blend(offsets(pixels, ellipses), ellipses, settings)[0]
        for _, pixels in pixel_chunks(at.width, at.height, ellipses)
    ]
    summed = torch.cat(parts).numpy().reshape(at.height, at.width, 3)
    picture = model.render(at)
    both = (summed[..., 1] > 0) & (picture.alpha > 0)
    assert both.mean() > 0.5
    assert ((summed[..., 1] > 0) != (picture.alpha > 0)).mean() < 0.01, "only at the very edge of an ellipse"
    sure = both & (picture.alpha > 0.05)
    expected = summed[sure, 0] / summed[sure, 1]
    np.testing.assert_allclose(picture.depth[sure], expected, rtol=2e-3)
    assert np.median(np.abs(picture.depth[sure] / expected - 1)) < 1e-5


def test_alpha_is_what_the_background_does_not_get() -> None:
    model, at = built(), camera()
    black, white = model.render(at), model.render(at, background=(1, 0.5, 0.25))
    other = black.color + (1 - black.alpha)[..., None] * np.array([1, 0.5, 0.25], np.float32)
    np.testing.assert_allclose(white.color, other, atol=1e-6)
    np.testing.assert_array_equal(black.alpha, white.alpha)
    np.testing.assert_array_equal(black.depth, white.depth)
    again = model.with_settings(background=(1, 0.5, 0.25)).render(at)
    np.testing.assert_array_equal(again.color, white.color)


def test_pixels_are_the_colours_in_eight_bits() -> None:
    picture = built().render(camera())
    assert picture.pixels.shape == (40, 48, 3) and picture.pixels.flags.c_contiguous
    np.testing.assert_array_equal(picture.pixels, to_8bit(picture.color))


def test_pictures_stay_as_they_are_when_others_follow() -> None:
    """The engine hands image memory out again as soon as nobody holds it."""
    model, at = built(), camera()
    first = model.render(at)
    seen = first.pixels.copy()
    for step in range(6):
        model.render(api.Camera.look_at((step, -3, 1), (0, 0, 0), (0, 0, 1), **at.intrinsics)).depth.sum()
    again = model.render(at)
    np.testing.assert_array_equal(first.color, again.color)
    np.testing.assert_array_equal(first.alpha, again.alpha)
    np.testing.assert_array_equal(first.depth, again.depth)
    np.testing.assert_array_equal(first.pixels, seen)


def test_a_camera_from_a_matrix_sees_what_the_scenes_own_sees(garden: Any, run: Any) -> None:
    model, view = api.load_model(run, device="cpu"), api.load_scene(garden, eval=True).test[0]
    own = model.render(view.camera)
    for build, pose in (
        (api.Camera.from_world_to_camera, view.camera.world_to_camera),
        (api.Camera.from_camera_to_world, view.camera.camera_to_world),
    ):
        picture = model.render(build(pose, **view.camera.intrinsics))
        np.testing.assert_allclose(picture.color, own.color, atol=1e-4)
    assert np.nanmedian(own.depth) == pytest.approx(np.linalg.norm(view.camera.position), rel=0.6)


@pytest.mark.parametrize("wrong", [np.eye(4), np.eye(4).tolist(), None, "front"], ids=lambda _: "wrong")
def test_what_is_no_camera_gets_a_sentence(wrong: Any) -> None:
    with pytest.raises(api.SplatmeterError, match=r"A Camera is needed.*Camera\.from_camera_to_world"):
        built().render(wrong)


def test_a_view_is_told_its_camera(garden: Any) -> None:
    view: Any = api.load_scene(garden).train[0]
    with pytest.raises(api.SplatmeterError, match=r"Pass its \.camera"):
        built().render(view)


def test_a_picture_is_shown_and_saved(tmp_path: Any) -> None:
    picture = built().render(camera())
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert picture.save(tmp_path / "new" / "a.png").stat().st_size > 100
    assert picture.save(str(tmp_path / "a.jpg")).stat().st_size > 100
    with pytest.raises(api.SplatmeterError, match=r"end it in \.png"):
        picture.save(tmp_path / "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(api.SplatmeterError, match="Cannot write"):
        picture.save(tmp_path / "file" / "a.png")
