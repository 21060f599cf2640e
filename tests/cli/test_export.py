"""`splatmeter export`: every form shows the same picture, or says why not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_run import TinyRun, camera, engine, make, model, splatmeter

from splatmeter.gaussians.ply import read_model
from splatmeter.ops import F32, RasterSettings, Table


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    return make(tmp_path_factory.mktemp("tiny"))


def picture(table: Table) -> F32:
    return engine().upload(table).render(camera(0.7), RasterSettings()).color


@pytest.mark.parametrize(("words", "properties"), [((), 62), (("--format", "unfused"), 63)])
def test_the_exported_model_looks_the_same(
    tiny: TinyRun, tmp_path: Path, words: tuple[str, ...], properties: int
) -> None:
    assert splatmeter("export", "-m", tiny.folder, "-o", tmp_path / "out.ply", *words) == 0
    header = (tmp_path / "out.ply").read_bytes().split(b"end_header")[0]
    assert header.count(b"property float") == properties
    exported = read_model(tmp_path / "out.ply")
    np.testing.assert_allclose(picture(exported.table), picture(model()), atol=2e-5)
    assert exported.settings() == RasterSettings() and "step 30" in exported.comments


def test_plain_leaves_the_filter_out_and_says_so(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert splatmeter("export", "-m", tiny.folder, "-o", tmp_path / "out.ply", "--format", "plain") == 0
    assert "changes how the model looks" in capsys.readouterr().err
    exported = read_model(tmp_path / "out.ply").table
    np.testing.assert_array_equal(exported.geometry[:, :11], model().geometry[:, :11])


def test_arrays_for_numpy_hold_the_stored_forms(tiny: TinyRun, tmp_path: Path) -> None:
    assert splatmeter("export", "-m", tiny.ply, "-o", tmp_path / "out.npz", "--sh-degree", 1) == 0
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["harmonics"].shape == (60, 4, 3)
        np.testing.assert_array_equal(arrays["harmonics"][:, 1, 2], model().harmonics[:, 5])
        np.testing.assert_array_equal(arrays["means"], model().geometry[:, :3])
        assert float(arrays["kernel_size"]) == pytest.approx(0.1) and int(arrays["sh_degree"]) == 1


def test_a_checkpoint_is_brought_up_to_date(tiny: TinyRun, tmp_path: Path) -> None:
    """Rows whose Adam steps are still owed: the export must hold what dense Adam would have."""
    container = pytest.importorskip("splatmeter.train.container")
    from splatmeter.backends.lazy_adam import PENDING_AGES
    from splatmeter.ops import LAST_UPDATE, WIDTHS, empty_table
    from splatmeter.train.config import TrainConfig, to_json

    table = empty_table(60)
    table.geometry[:], table.harmonics[:] = model().geometry, model().harmonics
    table.geometry_moments[:, 0], table.geometry_moments[:, 12] = 1e-3, 1e-6
    table.geometry[:, LAST_UPDATE] = 3
    drift, mean_drift = np.zeros(PENDING_AGES), np.full(PENDING_AGES, 0.5)
    mean_drift[0] = 0
    rates = dict.fromkeys(("mean", "harmonics_dc", "harmonics_rest", "opacity", "scale", "rotation"), 0.01)
    arrays = {name: getattr(table, name) for name in WIDTHS} | {"drift": drift, "mean_drift": mean_drift}
    record = {"config": to_json(TrainConfig()), "step": 5, "optimizer_steps": 5, "rates": rates}
    container.write(tmp_path / "chkpnt5.safetensors", arrays, record)
    out = tmp_path / "out.ply"
    assert splatmeter("export", "-m", tmp_path / "chkpnt5.safetensors", "-o", out, "--format", "unfused") == 0
    moved = table.geometry[:, 0] - read_model(out).table.geometry[:, 0]
    np.testing.assert_allclose(moved, 0.5, rtol=1e-3)  # m / sqrt(v) = 1, drift 0.5


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-o", "out.obj"), "writes .ply, .compressed.ply, .spz"),
        (("-o", "out.sog"), "SOG it only reads"),
        (("-o", "out.spz", "--format", "compressed"), "does not fit"),
        (("-o", "out.ply", "--format", "spz"), "does not fit"),
        (("-o", "out.ply", "--crop", "1,2,3"), "--crop"),
        (("-o", "out.ply", "--crop", "1,1,1,-1,-1,-1"), "must be a box"),
        (("-o", "out.ply", "--crop", "a,b,c,d,e,f"), "--crop"),
        (("-o", "out.ply", "--crop", "90,90,90,91,91,91"), "leaves nothing"),
        (("-o", "out.npz", "--format", "fused"), "does not fit"),
        (("-o", "out.ply", "--sh-degree", "4"), "--sh-degree"),
        ((), "--output"),
    ],
)
def test_mistakes_get_one_sentence(
    tiny: TinyRun, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    assert splatmeter("export", "-m", tiny.folder, *words) == 64
    complaint = capsys.readouterr().err
    assert expected in complaint and complaint.count("\n") == 1


def test_a_place_that_cannot_be_written_is_reported(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert splatmeter("export", "-m", tiny.folder, "-o", tmp_path / "file" / "out.ply") == 73
    assert "Cannot write" in capsys.readouterr().err


def test_the_folder_of_an_iteration_is_enough(tiny: TinyRun, tmp_path: Path) -> None:
    assert splatmeter("export", "-m", tiny.ply.parent, "-o", tmp_path / "out.ply") == 0
    assert json.loads((tiny.folder / "config.json").read_text())["kernel_size"] == 0.1
