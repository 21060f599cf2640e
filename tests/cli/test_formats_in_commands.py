"""Model files of every format in the commands: judged, drawn and cropped as the run itself is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_run import TinyRun, camera, engine, make, model, splatmeter

from splatmeter import api
from splatmeter.cli import export_page
from splatmeter.evaluate.metrics import psnr
from splatmeter.formats.registry import read_model
from splatmeter.models.opening import open_model
from splatmeter.ops import MEANS, RasterSettings
from splatmeter.render.pictures import to_8bit

EXACT = 45.0
"""Decibels that rounding may cost at most, far above what a wrong filter or a wrong axis would give."""

FORMS = {"out.spz": 30.0, "out.compressed.ply": 28.0, "out.glb": EXACT, "out.gltf": EXACT, "out.ply": EXACT}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    return make(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("name", FORMS)
def test_an_exported_file_is_judged_as_the_run_is(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert splatmeter("export", tiny.folder, "-o", tmp_path / name) == 0
    capsys.readouterr()
    words = ("--device", "cpu", "--lpips", "none", "--json")
    assert splatmeter("eval", "-m", tmp_path / name, "-s", tiny.scene, *words) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert "does not say" not in captured.err
    assert (record["kernel_size"], record["compensate"]) == (0.1, True)
    found = record["splits"]["test"]["1"]["means"]["psnr"]
    assert found is None or found > FORMS[name]  # None: equal to the last bit


def test_a_file_without_a_mark_is_drawn_as_plain_3dgs_and_says_so(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert splatmeter("export", tiny.folder, "-o", tmp_path / "out.splat") == 0
    assert "-k 0.1" in capsys.readouterr().err
    opened = open_model(tmp_path / "out.splat", -1, engine)
    assert export_page.made(opened, export_page.PageWishes()).settings == RasterSettings(0, 0.3, False)
    assert "taking it for plain 3DGS" in capsys.readouterr().err
    assert export_page.made(opened, export_page.PageWishes(kernel_size=0.1)).settings == RasterSettings(
        0, 0.1
    )
    with pytest.warns(UserWarning, match="taking it for plain 3DGS"):
        assert api.load_model(tmp_path / "out.splat", device="cpu").settings.kernel_size == 0.3


def test_a_picture_is_rendered_of_a_file(tiny: TinyRun, tmp_path: Path) -> None:
    assert splatmeter("export", tiny.folder, "-o", tmp_path / "out.spz", "--format", "spz3") == 0
    loaded = api.load_model(tmp_path / "out.spz", device="cpu")
    expected = to_8bit(engine().upload(model()).render(camera(0.7), RasterSettings()).color)
    assert psnr(loaded.render(camera(0.7)).pixels, np.ascontiguousarray(expected.transpose(1, 2, 0))) > 30


def test_one_format_becomes_another_with_its_mark(tiny: TinyRun, tmp_path: Path) -> None:
    for before, after in (("out.glb", "a.spz"), ("a.spz", "b.compressed.ply"), ("b.compressed.ply", "c.ply")):
        source = tmp_path / before if (tmp_path / before).exists() else tiny.folder
        assert splatmeter("export", source, "-o", tmp_path / after) == 0
    found = read_model(tmp_path / "c.ply")
    assert found.settings() == RasterSettings() and "SplatRenderMode: mip" in found.comments
    assert splatmeter("export", tmp_path / "c.ply", "-o", tmp_path / "d.spz", "--sh-degree", 1) == 0
    assert read_model(tmp_path / "d.spz").sh_degree == 1


@pytest.mark.parametrize(
    "words", [("--crop", "-0.3,-2,-2,0.3,2,2"), ("--crop", "-0.3", "-2", "-2", "0.3", "2", "2")]
)
def test_a_box_leaves_what_lies_in_it(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    kept = int((np.abs(model().geometry[:, MEANS]) <= [0.3, 2, 2]).all(axis=1).sum())
    for name in ("out.ply", "out.spz", "out.npz", "out.html"):
        assert splatmeter("export", tiny.folder, "-o", tmp_path / name, *words) == 0
        captured = capsys.readouterr()
        assert f"{kept} of 60 Gaussians" in captured.err and f"{kept} Gaussians" in captured.out
    assert read_model(tmp_path / "out.spz").table.count == kept < 60
