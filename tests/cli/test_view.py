"""`splatmeter view` and `train --view`: what is shown, and that looking changes nothing."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from tiny_scene import some_backend, write_tiny_scene

from splatmeter.cli import main, preview, train
from splatmeter.events import from_line
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.ply import write_model
from splatmeter.listeners import viewer as viewer_module
from splatmeter.listeners.viewer import Viewer
from splatmeter.ops import FILTER_3D, LOG_SCALES, MEANS, OPACITY_LOGITS, ROTATIONS, Table, empty_table
from splatmeter.train import container

NO_VISER = "the viewer was not checked: viser (extra view) is not installed"


def table_of(count: int) -> Table:
    generator = np.random.default_rng(4)
    table = empty_table(count, trainable=False)
    table.geometry[:, MEANS] = generator.normal(size=(count, 3))
    table.geometry[:, LOG_SCALES] = generator.normal(-2, 0.8, (count, 3))
    table.geometry[:, ROTATIONS] = generator.normal(size=(count, 4))
    table.geometry[:, OPACITY_LOGITS] = generator.normal(0, 2, count)
    table.geometry[:, FILTER_3D] = generator.uniform(0, 0.3, count)
    table.harmonics[:] = generator.normal(0, 0.8, (count, 48))
    return table


def rotated(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """q v q*, term by term: another way to a rotation than the matrix."""
    w, axis = quaternion[0], quaternion[1:]
    return vector + 2 * np.cross(axis, np.cross(axis, vector) + w * vector)


# ---- what is shown ----------------------------------------------------------------------------------------
def test_shapes_are_the_filtered_axes_turned() -> None:
    table = table_of(40)
    shown = preview.splats(preview.sample(table, 100))
    assert shown.means.shape == (40, 3) and shown.covariances.shape == (40, 3, 3)
    for row in range(40):
        quaternion = table.geometry[row, ROTATIONS].astype(np.float64)
        quaternion /= np.linalg.norm(quaternion)
        variances = np.exp(table.geometry[row, LOG_SCALES]) ** 2 + table.geometry[row, FILTER_3D] ** 2
        axes = [rotated(quaternion, axis) for axis in np.eye(3)]
        expected = sum(v * np.outer(axis, axis) for v, axis in zip(variances, axes, strict=True))
        np.testing.assert_allclose(shown.covariances[row], expected, rtol=1e-4, atol=1e-6)


def test_colours_and_opacities_are_bytes_with_the_filter_inside() -> None:
    table = table_of(40)
    shown = preview.splats(preview.sample(table, 100))
    assert shown.colors.dtype == shown.opacities.dtype == np.uint8
    assert shown.colors.shape == (40, 3) and shown.opacities.shape == (40, 1)
    colors = np.clip(0.5 + 0.28209479177387814 * table.harmonics[:, :3], 0, 1)
    assert np.abs(shown.colors / 255 - colors).max() <= 0.5 / 255 + 1e-6
    assert np.abs(shown.opacities[:, 0] / 255 - gaussians.filtered_opacities(table)).max() <= 0.5 / 255 + 1e-6


def test_of_too_many_the_most_opaque_and_largest_are_drawn() -> None:
    table = table_of(200)
    big = [3, 50, 199]
    table.geometry[big, LOG_SCALES] = 1.0
    table.geometry[big, OPACITY_LOGITS] = 4.0
    table.geometry[7, LOG_SCALES] = np.nan
    taken = preview.sample(table, 3)
    np.testing.assert_array_equal(taken.geometry, table.geometry[big])
    assert preview.shown(taken) == "200 (3 drawn)"
    assert preview.shown(preview.sample(table, 200)) == "200"


def test_a_sample_is_a_copy() -> None:
    table = table_of(10)
    for limit in (5, 100):
        taken = preview.sample(table, limit)
        assert not np.shares_memory(taken.geometry, table.geometry)
        assert not np.shares_memory(taken.harmonics, table.harmonics)


def test_rows_that_are_no_numbers_are_left_out() -> None:
    table = table_of(10)
    table.geometry[2, 0] = np.nan
    table.harmonics[5, 1] = np.inf
    shown = preview.splats(preview.sample(table, 100))
    assert len(shown.means) == 8 and np.isfinite(shown.covariances).all()


def test_one_stands_where_the_first_camera_stood(tmp_path: Path) -> None:
    means = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    place = preview.viewpoint(None, means)
    assert place.up.tolist() == [0, -1, 0] and np.linalg.norm(place.position - place.target) > 1
    (tmp_path / "cameras.json").write_text(
        '[{"position": [0, 0, -5], "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}]'
    )
    place = preview.viewpoint(tmp_path, means)
    assert place.position.tolist() == [0, 0, -5] and place.up.tolist() == [0, -1, 0]
    assert place.target[2] == pytest.approx(float(np.median(means[:, 2])))
    (tmp_path / "cameras.json").write_text("[{")
    assert preview.viewpoint(tmp_path, means).position[2] < 0, "a garbled file is as good as none"


# ---- while training ---------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


@contextlib.contextmanager
def somebody_looking(viewer: Viewer) -> Iterator[None]:
    """A page that has connected and told where its camera is, as viser's own does."""
    import msgspec
    import viser
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    camera = {
        **{"type": "ViewerCameraMessage", "wxyz": (1.0, 0.0, 0.0, 0.0), "position": (0.0, 0.0, -3.0)},
        **{"fov": 1.0, "near": 0.1, "far": 100.0, "image_height": 100, "image_width": 100},
        **{"look_at": (0.0, 0.0, 0.0), "up_direction": (0.0, -1.0, 0.0)},
    }
    address = viewer.url.replace("http://", "ws://")
    protocol = Subprotocol(f"viser-v{viser.__version__}")
    with connect(address, subprotocols=[protocol], max_size=None, max_queue=None) as page:
        page.send(msgspec.msgpack.encode(camera))
        while not viewer.watched:
            sleep(0.01)
        yield


def trained(scene: Path, folder: Path, *, viewer: Viewer | None) -> list[str]:
    """Trains with densification and returns what the panel told, picture by picture."""
    words = ["-s", str(scene), "-m", str(folder), "--iterations", "60", "--progress-interval", "2"]
    words += ["--densify-from-iter", "10", "--densification-interval", "10", "--checkpoint-iterations", "60"]
    config = train.parse(words).config()
    backend = some_backend()
    if viewer is None:
        assert train.follow(config, backend, []) == 0
        return []
    watch = preview.Watch()
    told: list[str] = []
    show = viewer.show

    def noted(splats: Any, facts: Any) -> None:
        told.append(facts["Step"])
        show(splats, facts)

    viewer.show = noted  # type: ignore[method-assign]
    assert train.follow(config, watch.over(backend), [preview.LiveView(viewer, watch, folder, limit=50)]) == 0
    return told


def test_who_looks_changes_not_one_bit(scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("viser", reason=NO_VISER)
    monkeypatch.setattr(viewer_module, "SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr(viewer_module, "LARGEST_SHARE", 1e9)
    trained(scene, tmp_path / "alone", viewer=None)
    viewer = Viewer(port=0)
    try:
        with somebody_looking(viewer):
            told = trained(scene, tmp_path / "seen", viewer=viewer)
    finally:
        viewer.close()
    assert len(told) > 1 and told[-1].endswith("of 60"), "nothing was shown: the test would prove nothing"
    for name in ("point_cloud.ply", "fused.ply"):
        alone, seen = (
            (tmp_path / run / "point_cloud/iteration_60" / name).read_bytes() for run in ("alone", "seen")
        )
        assert alone == seen
    first, _ = container.read(tmp_path / "alone" / "chkpnt60.safetensors")
    second, _ = container.read(tmp_path / "seen" / "chkpnt60.safetensors")
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_without_a_page_open_nothing_is_copied(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("viser", reason=NO_VISER)

    def never(*_: object) -> None:
        raise AssertionError("nobody looked")

    monkeypatch.setattr(preview, "sample", never)
    words = ["-s", str(scene), "-m", str(tmp_path / "o"), "--iterations", "12", "--events-stdout", "--quiet"]
    assert train.run([*words, "--backend", some_backend().facts.name, "--view", "--view-port", "0"]) == 0
    told = capsys.readouterr()
    assert all(from_line(line) for line in told.out.splitlines()), "viser must not write between the events"
    assert re.search(r"Viewer: http://127\.0\.0\.1:\d+\n", told.err)
    assert f"splatmeter view {tmp_path / 'o'}" in told.err


# ---- the command ------------------------------------------------------------------------------------------
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to a child like this")
def test_a_model_is_served_until_ctrl_c(tmp_path: Path) -> None:
    write_model(tmp_path / "point_cloud.ply", table_of(30), 3, ("iteration 7000",))
    words = [sys.executable, "-m", "splatmeter", "view", str(tmp_path / "point_cloud.ply"), "--port", "0"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    first = child.stdout.readline()
    assert first.startswith("Viewer: http://127.0.0.1:"), first
    with urllib.request.urlopen(first.split()[1], timeout=60) as answer:
        assert answer.status == 200 and b'id="gaussians"' in answer.read()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(first.split()[1] + "/point_cloud.ply", timeout=60)
    assert child.stdout.readline() == "Ctrl-C ends it.\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60) == ("", "") and child.returncode == 0


def test_what_cannot_be_shown_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLATMETER_LIBCUDA", str(tmp_path / "libcuda.so.1"))
    write_model(tmp_path / "empty.ply", table_of(0), 0)
    write_model(tmp_path / "some.ply", table_of(3), 0)
    for words, code, sentence in (
        ([str(tmp_path / "nothing.ply")], 66, "There is no model at"),
        ([str(tmp_path / "empty.ply")], 65, "holds no Gaussians to show"),
        ([str(tmp_path / "some.ply"), "--limit", "0"], 64, "--limit is 0"),
        ([str(tmp_path / "some.ply"), "--device", "gpu"], 64, "--device gpu makes no sense"),
        ([str(tmp_path / "some.ply"), "--device", "cuda"], 69, "No NVIDIA driver was found"),
    ):
        assert main.main(["view", *words]) == code
        assert sentence in capsys.readouterr().err
