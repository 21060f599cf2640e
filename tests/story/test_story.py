"""A newcomer's afternoon: look before training, train, get interrupted, go on, look at what came out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_scene import some_backend

from splatmeter.cli import main
from splatmeter.events import Densified, Evaluated, Started, from_line
from splatmeter.gaussians import ply


def test_training_can_be_planned_done_in_two_parts_and_looked_at(
    scene_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "first"
    base = [
        "train",
        "-s",
        str(scene_folder),
        "-m",
        str(folder),
        "--eval",
        "--backend",
        some_backend().facts.name,
    ]
    settings = ["--densify_from_iter", "10", "--densification_interval", "20", "--max-gaussians", "160"]
    settings += ["--iterations", "60", "--test_iterations", "1", "30", "60", "--checkpoint_iterations", "30"]

    assert main.main([*base, *settings, "--dry-run", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["predicted_memory"]["gaussians"] == 120 and not folder.exists()

    assert main.main([*base, *settings]) == 0
    told = capsys.readouterr().err
    assert "120 Gaussians, 6 photos of 32x32, 2 for tests" in told and "Finished at step 60" in told

    assert main.main([*base, *settings]) == 73  # the folder holds a run now
    assert "already holds a run" in capsys.readouterr().err
    more = ["--resume", "--iterations", "80", "--test_iterations", "80", "--quiet"]
    assert main.main(["train", "-m", str(folder), "--backend", some_backend().facts.name, *more]) == 0

    events = [from_line(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    starts = [event.step for event in events if isinstance(event, Started)]
    assert starts == [0, 60]  # a finished run goes on from its end
    quality = [
        event.metrics["psnr"] for event in events if isinstance(event, Evaluated) and event.split == "test"
    ]
    assert quality[-1] > quality[0] + 1
    assert any(isinstance(event, Densified) and event.gaussians > 120 for event in events)
    model = ply.read_model(folder / "point_cloud" / "iteration_80" / "fused.ply")
    assert 120 < model.table.count <= 160
