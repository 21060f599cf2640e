"""`splatmeter export -o scene.html` on what people have: runs, bare files, broken rows, too many."""

from __future__ import annotations

import base64
import getpass
import io
import json
import platform
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_models import mixed_table
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))
sys.path.insert(0, str(Path(__file__).parents[1] / "scene"))

from tiny_scene import write_tiny_scene

from splatmeter.cli import export_page
from splatmeter.cli.main import main
from splatmeter.gaussians.ply import write_fused, write_model
from splatmeter.ops import MEANS, RasterSettings
from splatmeter.train.config import TrainConfig, to_json

SHARED = Path("/work/shared/data/models")


def scene_of(path: Path) -> dict[str, Any]:
    found = re.search(r'id="scene">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """In a folder that tells much about its owner, with photos that tell where they were taken."""
    private = tmp_path / "home" / "anna-example" / "cottage"
    write_tiny_scene(private)
    for path in private.rglob("*.png"):
        with Image.open(path) as image:
            exif = image.getexif()
            exif[0x010F] = "MAKER-OF-CAMERAS"
            exif.get_ifd(0x8825).update({1: "N", 2: (48.0, 7.0, 30.0), 3: "E", 4: (11.0, 34.0, 12.0)})
            image.save(path, exif=exif)
    folder = tmp_path / "home" / "anna-example" / "output"
    config = TrainConfig(source_path=private, model_path=folder, eval=True, white_background=True)
    write_model(folder / "point_cloud/iteration_30/point_cloud.ply", mixed_table(300), 3, ("step 30",))
    (folder / "config.json").write_text(json.dumps(to_json(config)))
    event = {"event": "evaluated", "step": 30, "split": "test", "metrics": {"psnr": 27.125}}
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    return folder


def test_a_run_becomes_a_page(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(run), "-o", str(tmp_path / "a.html")]) == 0
    told = capsys.readouterr().out
    assert re.search(r"a\.html: \d+ Gaussians, SH degree 3, page, [\d.]+ KiB\nRounding: \d\d\.\d dB", told)
    scene = scene_of(tmp_path / "a.html")
    assert scene["title"] == "cottage" and scene["facts"][1] == "27.12 dB on held-out photos"
    assert scene["look"] == {"kernel": 0.1, "compensate": True, "background": [1.0, 1.0, 1.0]}
    assert [view["heldOut"] for view in scene["views"]].count(True) == 2 and len(scene["views"]) == 8
    assert scene["views"][scene["first"]]["heldOut"], "one begins with a view that was held out"
    assert not any("photo" in view for view in scene["views"])


def test_a_page_tells_nothing_of_people_machines_and_places(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "node", lambda: "annas-laptop")
    monkeypatch.setattr(getpass, "getuser", lambda: "aexample")
    assert main(["export", str(run), "-o", str(tmp_path / "a.html"), "--with-photos"]) == 0
    text = (tmp_path / "a.html").read_text("utf-8")
    scene = scene_of(tmp_path / "a.html")
    photos = [view["photo"] for view in scene["views"]]
    assert len(photos) == 8
    for photo in photos:
        data = base64.b64decode(photo.removeprefix("data:image/jpeg;base64,"))
        assert b"Exif" not in data and b"MAKER" not in data and b"GPS" not in data
        with Image.open(io.BytesIO(data)) as image:
            assert image.size == (32, 32) and not image.getexif() and set(image.info) <= {
                "jfif", "jfif_version", "jfif_unit", "jfif_density"
            }  # fmt: skip
    plain = re.sub(r"data:image/jpeg;base64,[A-Za-z0-9+/=]*", "", text)
    plain = re.sub(r'<script type="text/plain".*?</script>', "", plain, flags=re.DOTALL)
    for name in (
        "anna",
        "example",
        "laptop",
        str(tmp_path),
        "/home",
        "/tmp",
        "r_0",
        "r_1",
        "output",
        "MAKER",
    ):
        assert name.lower() not in plain.lower(), name


def test_the_title_is_no_name_of_a_person(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "Cottage")
    assert main(["export", str(run), "-o", str(tmp_path / "a.html")]) == 0
    assert scene_of(tmp_path / "a.html")["title"] == "output"
    assert main(["export", str(run), "-o", str(tmp_path / "b.html"), "--title", ""]) == 0
    assert scene_of(tmp_path / "b.html")["title"] == ""


def test_without_its_scene_a_run_has_the_cameras_it_wrote_down(run: Path, tmp_path: Path) -> None:
    (tmp_path / "home/anna-example/cottage").rename(tmp_path / "gone")
    assert main(["export", str(run), "-o", str(tmp_path / "a.html")]) == 0
    assert scene_of(tmp_path / "a.html")["views"] == []
    entry = {"img_name": "b", "width": 64, "height": 48, "position": [0, 0, -5], "fx": 50.0, "fy": 51.0}
    entry["rotation"] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    for content, count in (([entry], 1), ([entry, {**entry, "fx": float("nan")}], 0), ({}, 0), (["x"], 0)):
        (run / "cameras.json").write_text(json.dumps(content))
        assert len(export_page.known_cameras(run)) == count
    assert main(["export", str(run), "-o", str(tmp_path / "a.html"), "--with-photos"]) != 0, (
        "they are not there"
    )


def test_bare_files_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No cameras, no settings, rows that are no numbers, fewer harmonics."""
    table = mixed_table(50, 1)
    table.geometry[7, MEANS] = np.nan
    write_fused(tmp_path / "vase.ply", table, 1)
    assert main(["export", str(tmp_path / "vase.ply"), "-o", str(tmp_path / "a.html")]) == 0
    told = capsys.readouterr()
    assert (
        "1 Gaussians of" in told.err and "taking it for plain 3DGS" in told.err and "Rounding" not in told.out
    )
    scene = scene_of(tmp_path / "a.html")
    assert scene["title"] == "vase" and scene["header"]["degree"] == 1 and scene["views"] == []
    assert scene["look"]["kernel"] == 0.3 and not scene["look"]["compensate"]
    write_fused(tmp_path / "told.ply", table, 1, settings=RasterSettings(1, 0.2, True))
    assert main(["export", str(tmp_path / "told.ply"), "-o", str(tmp_path / "b.html")]) == 0
    assert scene_of(tmp_path / "b.html")["look"]["kernel"] == 0.2


@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data is not here: no foreign files were tried")
@pytest.mark.parametrize("name", ["babylon_combined_SPZv3.ply", "inria_format_point_cloud_9080.ply"])
def test_real_files_of_others(name: str, tmp_path: Path) -> None:
    assert main(["export", str(SHARED / name), "-o", str(tmp_path / "a.html")]) == 0
    assert scene_of(tmp_path / "a.html")["header"]["count"] > 1000


def test_what_cannot_be_a_page_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fused(tmp_path / "some.ply", mixed_table(80), 3)
    write_fused(tmp_path / "none.ply", mixed_table(0), 0)
    monkeypatch.setattr(export_page, "MOST_GAUSSIANS", 60)
    for words, code, sentence in (
        (["some.ply", "-o", "a.html"], 64, "--max-gaussians 15 keeps those that cover most"),
        (["some.ply", "-o", "a.html", "--max-gaussians", "0"], 64, "--max-gaussians is 0"),
        (["some.ply", "-o", "a.html", "--max-gaussians", "9", "--with-photos"], 64, "Which scene?"),
        (["some.ply", "-o", "a.html", "--max-gaussians", "9", "-k", "-1"], 64, "--kernel-size is -1"),
        (["none.ply", "-o", "a.html"], 65, "holds no Gaussians to show"),
        (["some.ply", "-o", "a.txt"], 64, "splatmeter writes .ply, .compressed.ply, .spz, .splat, .glb"),
        (["some.ply", "-o", "a.html", "--format", "fused"], 64, "does not fit a.html"),
        (["some.ply", "-o", "a.ply", "--title", "x"], 64, "are for pages"),
    ):
        monkeypatch.chdir(tmp_path)
        assert main(["export", *words]) == code, words
        assert sentence in capsys.readouterr().err
        assert not (tmp_path / "a.html").exists()
    assert main(["export", "some.ply", "-o", "a.html", "--max-gaussians", "9"]) == 0
    assert scene_of(tmp_path / "a.html")["header"]["count"] <= 9


def test_many_gaussians_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_page, "MANY", 50)
    write_fused(tmp_path / "some.ply", mixed_table(80), 3)
    assert main(["export", str(tmp_path / "some.ply"), "-o", str(tmp_path / "a.html")]) == 0
    assert "make a large page" in capsys.readouterr().err
