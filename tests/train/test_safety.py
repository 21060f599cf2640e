"""A long run is never lost: a checkpoint every few minutes and at the end, and one only."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from splatmeter.backend import Backend
from splatmeter.errors import OutputError
from splatmeter.events import Finished, Saved, Warned
from splatmeter.train import checkpoint_names
from splatmeter.train.loop import train
from splatmeter.train.output_folder import OutputFolder
from splatmeter.train.state import TrainingState

ALWAYS = 1e-9


def checkpoints(folder: Path | None) -> list[str]:
    assert folder is not None
    return sorted(path.name for path in folder.glob("chkpnt*"))


def test_only_the_newest_is_kept_and_those_asked_for_stay(make, backend: Backend) -> None:
    config = make(iterations=5, checkpoint_iterations=(2,), checkpoint_minutes=ALWAYS)
    saved = [event for event in train(config, backend) if isinstance(event, Saved)]
    names = [Path(event.path).name for event in saved if event.content == "checkpoint"]
    assert names[:3] == ["chkpnt1.safety.safetensors", "chkpnt2.safetensors", "chkpnt3.safety.safetensors"]
    assert checkpoints(config.model_path) == ["chkpnt2.safetensors", "chkpnt5.safety.safetensors"]


def test_a_finished_run_goes_on_to_the_last_bit(make, backend: Backend) -> None:
    whole = make("whole", iterations=8)
    half = make("half", iterations=4)
    list(train(whole, backend))
    list(train(half, backend))
    list(train(dataclasses.replace(half, iterations=8, resume=True), backend))
    files = [
        (config.model_path / "point_cloud" / "iteration_8" / "point_cloud.ply").read_bytes()
        for config in (whole, half)
    ]
    assert files[0] == files[1]


def test_whoever_pulls_the_plug_loses_only_what_came_after_the_last_one(make, backend: Backend) -> None:
    config = make(iterations=50, checkpoint_minutes=ALWAYS)
    events = train(config, backend)
    for event in events:
        if isinstance(event, Saved) and event.content == "checkpoint" and "chkpnt7" in event.path:
            break
    events.close()
    newest = checkpoint_names.newest(config.model_path)
    assert newest is not None and newest.name == "chkpnt7.safety.safetensors"


def test_a_full_disk_costs_the_safety_and_not_the_run(
    make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OutputError("There is no space left on the disk.")

    monkeypatch.setattr(OutputFolder, "save_checkpoint", full)
    events = list(train(make(iterations=3, checkpoint_minutes=ALWAYS), backend))
    assert isinstance(events[-1], Finished)
    warned = [event for event in events if isinstance(event, Warned)]
    assert len(warned) == 3 and "no space left" in warned[0].message


def test_a_full_disk_costs_models_and_checkpoints_on_the_way_and_not_the_run(
    make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make(iterations=6, save_iterations=(2, 6), checkpoint_iterations=(3,), checkpoint_minutes=0.0)
    real, full = OutputFolder.save_model, [True]

    def no_room(*_: object) -> None:
        raise OutputError("There is no space left on the disk.")

    def save_model(self: OutputFolder, state: TrainingState) -> Iterator[Saved]:
        if full:
            no_room()
        return real(self, state)

    monkeypatch.setattr(OutputFolder, "save_model", save_model)
    monkeypatch.setattr(OutputFolder, "save_checkpoint", no_room)
    events = []
    for event in train(config, backend):
        events.append(event)
        if isinstance(event, Warned) and "checkpoint of step 3" in event.message:
            full.clear()
    warned = [event.message for event in events if isinstance(event, Warned)]
    assert isinstance(events[-1], Finished)
    assert len(warned) == 2 and "No model of step 2 could be written" in warned[0]


def test_without_room_for_the_last_model_the_newest_checkpoint_and_the_way_on_are_named(
    make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OutputError("There is no space left on the disk.")

    monkeypatch.setattr(OutputFolder, "save_model", no_room)
    config = make(iterations=5, save_iterations=(5,), checkpoint_iterations=(3,), checkpoint_minutes=0.0)
    with pytest.raises(OutputError, match=r"no space left.*chkpnt3.*--resume"):
        list(train(config, backend))


def test_nobody_is_made_to_keep_one(make, backend: Backend) -> None:
    config = make(iterations=3, checkpoint_minutes=0.0)
    list(train(config, backend))
    assert checkpoints(config.model_path) == []
