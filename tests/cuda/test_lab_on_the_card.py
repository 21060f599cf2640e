"""A whole comparison by the lab on the stand-in: four blocks, a process for each run, and a verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "story"))

from standin import Standin
from tiny_scene import write_tiny_scene

from splatmeter.cli import main


@pytest.mark.slow
def test_four_blocks_end_in_a_verdict(
    standin: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPLATMETER_CACHE", str(tmp_path / "cache"))
    scene, lab = write_tiny_scene(tmp_path / "scene"), ["lab", "--lab", str(tmp_path / "lab")]
    plan = ["--resolution", "1", "--start", "4", "--iterations", "60", "--evaluate-at", "30", "--blocks", "4"]
    assert main.main([*lab, "init", "--scene", str(scene), *plan]) == 0
    assert main.main([*lab, "prepare"]) == 0
    assert main.main([*lab, "phase", "add", "white", "--", "--white_background"]) == 0
    assert main.main([*lab, "run", "white", "--no-priming"]) == 0
    capsys.readouterr()
    assert main.main([*lab, "verdict", "white"]) == 0
    said = capsys.readouterr().out
    assert "Quality lost" in said and "over 4 blocks" in said
    files = list((tmp_path / "lab" / "sessions").rglob("blocks/*/*/events.jsonl"))
    lines = [json.loads(line)["line"] for path in files for line in path.read_text().splitlines()]
    told = [line["environment"]["backend_device"] for line in lines if "environment" in line]
    assert told == ["cuda:0"] * 8
