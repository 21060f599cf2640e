"""Metrics over 8-bit pictures, view by view, at several scales."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from splatmeter.errors import InputError
from splatmeter.evaluate import results
from splatmeter.evaluate.metrics import Pixels, l1, measure, psnr
from splatmeter.evaluate.protocol import Report, evaluate_views, evenly
from splatmeter.evaluate.renders import ContactSheet, RenderFolder
from splatmeter.ops import F32, Pinhole, Similarity
from splatmeter.photos.cache import PhotoCache
from splatmeter.photos.photo import Photo
from splatmeter.scene.scene import View


def noise(seed: int, height: int = 20, width: int = 28) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (3, height, width), dtype=np.uint8)


def closeness(render: F32, photo: Pixels) -> Similarity:
    """Stands in for SSIM: something that notices whether it gets the rounded render."""
    return Similarity(l1=0, ssim=float((np.abs(render * 255 - photo) < 1e-3).mean()))


def view(folder: Path, name: str, seed: int) -> View:
    pixels = noise(seed)
    Image.fromarray(pixels.transpose(1, 2, 0)).save(folder / name)
    camera = Pinhole(np.eye(3), np.zeros(3), 30, 30, 14, 10, 28, 20)
    return View(name, camera, Photo(folder / name, 28, 20, None, (0, 0, 0)))


def test_psnr_follows_its_definition() -> None:
    one, other = noise(1), noise(2)
    mse = np.mean((one / 255.0 - other / 255.0) ** 2)
    assert psnr(one, other) == pytest.approx(20 * math.log10(1 / math.sqrt(mse)))
    assert l1(one, other) == pytest.approx(np.abs(one / 255.0 - other / 255.0).mean())
    assert psnr(one, one) == math.inf and l1(one, one) == 0


def test_black_against_white_is_zero_decibels() -> None:
    black, white = np.zeros((3, 4, 4), np.uint8), np.full((3, 4, 4), 255, np.uint8)
    assert psnr(black, white) == pytest.approx(0) and l1(black, white) == 1


def test_pictures_of_different_size_are_refused() -> None:
    with pytest.raises(InputError, match="28x20"):
        measure(noise(1), noise(1, 10, 10), closeness)


def test_a_perfect_render_is_perfect_at_full_size(tmp_path: Path) -> None:
    views = [view(tmp_path, f"{index}.png", index) for index in range(3)]
    with PhotoCache(0) as photos:
        report = evaluate_views(
            views, lambda seen: photos.load(seen.photo) / np.float32(255), photos, closeness
        )
    assert report.means["ssim"] == 1 and report.means["l1"] == 0 and report.means["psnr"] == math.inf


def test_means_worst_view_and_order(tmp_path: Path) -> None:
    views = [view(tmp_path, f"{index}.png", index) for index in range(3)]
    error = {"0.png": 2, "1.png": 40, "2.png": 10}
    seen: list[tuple[int, str]] = []
    with PhotoCache(10**6) as photos:

        def render(which: View) -> F32:
            return np.clip(
                photos.load(which.photo).astype(np.float32) - error[which.name], 0, 255
            ) / np.float32(255)

        report = evaluate_views(
            iter(views), render, photos, closeness, perceptual=lambda one, other: l1(one, other),
            observe=lambda number, which, one, other: seen.append((number, which.name)),
        )  # fmt: skip
    assert report.worst == "1.png"
    assert seen == [(0, "0.png"), (1, "1.png"), (2, "2.png")]
    assert report.means["lpips"] == pytest.approx(np.mean([row["lpips"] for row in report.per_view.values()]))
    assert report.means["psnr"] == pytest.approx(np.mean([row["psnr"] for row in report.per_view.values()]))


def test_lower_scales_compare_with_averaged_photos(tmp_path: Path) -> None:
    """A renderer that averages exactly is perfect at every scale, and is asked for the smaller camera."""
    only = view(tmp_path, "a.png", 5)
    with PhotoCache(0) as photos:
        for scale in (2, 4, 8):

            def render(seen: View, scale: int = scale) -> F32:
                camera = seen.camera
                assert (camera.width, camera.height) == (28 // scale, 20 // scale)
                assert camera.fx == 30 / scale and camera.cx == 14 / scale
                pixels = photos.load(seen.photo)[:, : camera.height * scale, : camera.width * scale]
                blocks = pixels.reshape(3, camera.height, scale, camera.width, scale)
                return (blocks.mean(axis=(2, 4)) / 255).astype(np.float32)

            report = evaluate_views([only], render, photos, closeness, scale=scale)
            assert report.means["ssim"] == 1 and report.scale == scale


def test_no_views_give_no_numbers() -> None:
    with PhotoCache(0) as photos:
        report = evaluate_views([], lambda seen: np.zeros((3, 1, 1), np.float32), photos, closeness)
    assert report.means == {} and report.worst == ""


@pytest.mark.parametrize(("count", "total"), [(5, 161), (5, 5), (5, 3), (1, 10), (0, 4)])
def test_training_views_are_spread_evenly(count: int, total: int, tmp_path: Path) -> None:
    one = view(tmp_path, "a.png", 0)
    views = [View(str(index), one.camera, one.photo) for index in range(total)]
    chosen = [int(each.name) for each in evenly(views, count)]
    assert len(set(chosen)) == min(count, total)
    assert chosen == sorted(chosen)
    if 0 < count < total:
        gaps = np.diff([chosen[-1] - total, *chosen])
        assert gaps.max() - gaps.min() <= 1


def test_renders_lie_where_the_original_puts_them(tmp_path: Path) -> None:
    folder = RenderFolder(tmp_path, "test", 30000, -1)
    folder.write(7, noise(1), noise(2))
    written = tmp_path / "test/ours_30000/test_preds_-1/00007.png"
    np.testing.assert_array_equal(np.asarray(Image.open(written)).transpose(2, 0, 1), noise(1))
    assert (tmp_path / "test/ours_30000/gt_-1/00007.png").exists()


def test_a_contact_sheet_has_three_columns(tmp_path: Path) -> None:
    sheet = ContactSheet(column_width=14, rows=2)
    for seed in range(3):
        sheet.add(noise(seed), noise(seed))
    sheet.write(tmp_path / "sheet.png")
    picture = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert picture.shape == (20, 42, 3)
    np.testing.assert_array_equal(picture[:, :14], picture[:, 14:28])
    assert not picture[:, 28:].any()


REPORT = Report({"l1": 0.1, "psnr": 20.0, "ssim": 0.5}, {"b.png": {"l1": 0.1, "psnr": 20.0, "ssim": 0.5}})


def test_results_are_the_originals_and_keep_other_methods(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"theirs_7000": {"PSNR": 1}, "ours_30000": {"PSNR": 2}}')
    results.write(tmp_path, results.method_name(30000), REPORT)
    text = (tmp_path / "results.json").read_text()
    assert json.loads(text) == {"theirs_7000": {"PSNR": 1}, "ours_30000": {"SSIM": 0.5, "PSNR": 20.0}}
    assert text.startswith('{\n "theirs_7000": {\n  "PSNR"')
    per_view = json.loads((tmp_path / "per_view.json").read_text())
    assert per_view == {"ours_30000": {"SSIM": {"00000.png": 0.5}, "PSNR": {"00000.png": 20.0}}}


def test_an_infinite_psnr_stays_valid_json(tmp_path: Path) -> None:
    results.write(tmp_path, "ours_1", Report({"psnr": math.inf}, {"a": {"psnr": math.inf}}))
    assert json.loads((tmp_path / "results.json").read_text())["ours_1"]["PSNR"] is None


def test_a_damaged_results_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"ours_1": ')
    with pytest.raises(InputError, match="move it away"):
        results.write(tmp_path, "ours_2", REPORT)
    assert (tmp_path / "results.json").read_text() == '{"ours_1": '


def test_distances_are_measured_without_copying_whole_pictures() -> None:
    generator = np.random.default_rng(2)
    one, other = generator.integers(0, 256, (2, 3, 150, 200)).astype(np.uint8)
    tracemalloc.start()
    found = psnr(one, other), l1(one, other)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    difference = (one.astype(float) - other) / 255
    expected = -10 * math.log10((difference**2).mean()), np.abs(difference).mean()
    assert found == pytest.approx(expected, rel=1e-12)
    assert peak < 5 * one.nbytes  # whole pictures in 32 bits took more than twelve
