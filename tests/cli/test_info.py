"""`splatmeter info` on models, checkpoints and run folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_run import model, splatmeter

from splatmeter.gaussians.ply import write_model
from splatmeter.ops import empty_table

MODELS = Path(__file__).parents[3] / "shared" / "data" / "models"


def test_a_model_is_described_for_people_and_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_model(tmp_path / "m.ply", model(), 3)
    assert splatmeter("info", tmp_path / "m.ply") == 0
    shown = capsys.readouterr().out
    assert "60 Gaussians, SH degree 3" in shown and "column filter_3D" in shown and "percentile" in shown
    assert splatmeter("info", tmp_path / "m.ply", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["kind"], record["gaussians"], record["filtered"]) == ("model", 60, True)


def test_an_empty_model_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "m.ply", empty_table(0), 0)
    assert splatmeter("info", tmp_path / "m.ply") == 0
    assert "0 Gaussians" in capsys.readouterr().out


def test_a_run_folder_lists_what_it_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in (7000, 30000):
        write_model(tmp_path / f"point_cloud/iteration_{step}/point_cloud.ply", model(), 3)
    assert splatmeter("info", tmp_path) == 0
    assert "7000, 30000" in capsys.readouterr().out
    assert splatmeter("info", tmp_path, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["models"] == [7000, 30000] and record["latest"]["gaussians"] == 60


def test_a_checkpoint_is_summarised_and_a_cut_off_one_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    container = pytest.importorskip("splatmeter.train.container")
    path = tmp_path / "chkpnt9.safetensors"
    state = {"step": 9, "sh_degree": 0, "config": {"source_path": "garden", "iterations": 30}}
    container.write(path, {"geometry": model().geometry}, state)
    assert splatmeter("info", path) == 0
    assert "step 9 of 30" in capsys.readouterr().out
    path.write_bytes(path.read_bytes()[:-5])
    assert splatmeter("info", path) == 65
    assert "cut off" in capsys.readouterr().err


@pytest.mark.skipif(not MODELS.exists(), reason="real model files are not on this machine")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("playcanvas_biker.spz", "SPZ 4, 152746 Gaussians, SH degree 0"),
        ("babylon_combined_SPZv3.ply", "PLY, 1566 Gaussians, SH degree 1"),
        ("babylon_combined_SPZv3.spz", "SPZ 3, 1566 Gaussians, SH degree 1"),
        ("babylon_combined_SPZv3.sog", "SOG 2, 1566 Gaussians, SH degree 1"),
        ("babylon_combined_SPZv3.compressed.ply", "compressed PLY, 1566 Gaussians, SH degree 1"),
    ],
)
def test_files_of_others_are_told_by_their_format(
    capsys: pytest.CaptureFixture[str], name: str, expected: str
) -> None:
    assert splatmeter("info", MODELS / name) == 0
    shown = capsys.readouterr().out
    assert expected in shown and "the file does not say" in shown and "not finite   0" in shown


def test_nothing_and_an_unrelated_folder_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert splatmeter("info", tmp_path / "nothing") == 66
    assert "nothing at" in capsys.readouterr().err
    assert splatmeter("info", tmp_path) == 66
    assert "neither a run folder nor a model" in capsys.readouterr().err
    assert splatmeter("info") == 64
