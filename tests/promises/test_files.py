"""Checkpoints, model files, event lines and plans of 0.1.0 say today what they said then."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splatmeter.cli.main import main
from splatmeter.events import from_line, to_line
from splatmeter.formats import registry
from splatmeter.train import container, plan
from splatmeter.train.config import TrainConfig

CHECKPOINT = "run/chkpnt60.safetensors"


def test_a_checkpoint_gives_the_same_arrays(kept: Path, figures: Any) -> None:
    arrays, state = container.read(kept / CHECKPOINT)
    found = {name: hashlib.sha256(np.ascontiguousarray(array).tobytes()) for name, array in arrays.items()}
    assert {name: digest.hexdigest() for name, digest in found.items()} == figures["checkpoint"]
    assert set(state) >= set(figures["state"]) and state["step"] == 60


def test_training_goes_on_from_a_checkpoint(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kept)
    usual = ["train", "-s", "scene", "--eval", "--device", "cpu", "--threads", "1", "--quiet"]
    rest = ["--exposure", "affine", "--iterations", "64", "--max-gaussians", "36"]
    assert main([*usual, *rest, "-m", "later", "--start-checkpoint", CHECKPOINT]) == 0
    events = [from_line(line) for line in (kept / "later" / "events.jsonl").read_text("utf-8").splitlines()]
    assert events[0].kind == "started" and events[0].step == 60 and events[0].gaussians == 36
    assert events[-1].kind == "finished" and events[-1].step == 64 and events[-1].reason == "completed"


def test_a_run_folder_resumes(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kept)
    words = ["-s", "scene", "-m", "run", "--eval", "--exposure", "affine", "--max-gaussians", "36"]
    assert main(["train", *words, "--resume", "--iterations", "62", "--device", "cpu", "--quiet"]) == 0
    assert (kept / "run" / "point_cloud" / "iteration_62" / "point_cloud.ply").exists()


@pytest.mark.parametrize("name", ["run", CHECKPOINT])
def test_it_is_told_and_judged(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(kept)
    assert main(["info", name, "--json"]) == 0 and "36" in capsys.readouterr().out
    words = ["-s", "scene", "--lpips", "none", "--device", "cpu", "--json"]
    assert main(["eval", "-m", name, *words]) == 0
    test = json.loads(capsys.readouterr().out)["splits"]["test"]["1"]
    lines = map(json.loads, (kept / "run" / "events.jsonl").read_text("utf-8").splitlines())
    told = [line for line in lines if line["event"] == "evaluated" and line["split"] == "test"][-1]
    assert test["means"]["psnr"] == pytest.approx(told["metrics"]["psnr"], abs=0.02)


def test_every_model_file_has_the_same_gaussians(kept: Path, figures: Any) -> None:
    assert len(figures["models"]) == 7
    for name, told in figures["models"].items():
        if name == "four.spz":
            continue
        _same_gaussians(kept / "models" / name, told)


def test_spz_4_has_the_same_gaussians(kept: Path, figures: Any) -> None:
    try:
        import compression.zstd  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        pytest.importorskip("zstandard", reason="SPZ 4 was not read: zstd is missing")
    _same_gaussians(kept / "models" / "four.spz", figures["models"]["four.spz"])


def _same_gaussians(path: Path, told: Mapping[str, Any]) -> None:
    means = registry.read_model(path).table.geometry[:, :3].astype(np.float64)
    assert len(means) == told["count"] == 36, path.name
    assert [math.fsum(column) for column in means.T] == pytest.approx(told["sum"], abs=1e-6), path.name


def test_every_event_line_is_read_with_all_its_fields(kept: Path, figures: Any) -> None:
    files = (kept / "run" / "events.jsonl", kept / "timed" / "planned.jsonl")
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    assert [from_line(line).kind for line in lines] == figures["events"]
    for line in lines:
        written = json.loads(line)
        again = json.loads(to_line(from_line(line)))
        assert {name: again.get(name, "gone") for name in written} == written
    assert {"started", "progress", "planned", "densified", "evaluated", "saved", "warned", "finished"} == {
        *figures["events"]
    }


def test_a_plan_is_followed(kept: Path, figures: Any) -> None:
    read = plan.read(kept / "timed" / "plan.json")
    told = {"end": read.end, "entries": len(read.entries), "halfway": read.step_at(0.5)}
    assert told == figures["plan"]
    stretched = plan.stretched(TrainConfig(Path("scene")), read)
    assert stretched.iterations == read.end
    assert stretched.max_gaussians == min(200, read.entries[-1].budget)


def test_a_plan_steers_a_run(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept one has thousands of steps; cut off after its first entry it is as valid, and short."""
    read = plan.read(kept / "timed" / "plan.json")
    short = dataclasses.replace(read.entries[0], end=12)
    plan.write(kept / "short.json", dataclasses.replace(read, entries=(short,)))
    monkeypatch.chdir(kept)
    words = ["train", "-s", "scene", "-m", "planned", "--plan", "short.json", "--device", "cpu", "--quiet"]
    assert main(words) == 0
    last = (kept / "planned" / "events.jsonl").read_text("utf-8").splitlines()[-1]
    assert json.loads(last)["step"] == 12
