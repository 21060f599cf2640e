"""Failures cost no step and are one sentence."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import Around, Make, bits, run, with_models

from splatmeter.backend import Backend, Ticket, TrainStep
from splatmeter.errors import CardUnavailable, Diverged, InputError, MissingFile, NotEnoughMemory
from splatmeter.events import (
    Densified,
    Event,
    Failed,
    Progress,
    Started,
    Warned,
)
from splatmeter.train import container
from splatmeter.train.loop import train
from splatmeter.train.memory_prediction import Prediction

BLACK_HOLE = (math.nan, math.nan, math.nan)


def broken_after(backend: Backend, step: int) -> Backend:
    """From then on the background is no number, and so is every picture."""

    class Broken(Around):
        calls = 0

        def train_step(self, order: TrainStep) -> Ticket:
            self.calls += 1
            if self.calls > step:
                order = replace(order, settings=replace(order.settings, background=BLACK_HOLE))
            return self.model.train_step(order)

    return with_models(backend, Broken)


def test_a_loss_that_is_no_number_stops_at_once_and_keeps_the_last_good_state(
    make: Make, backend: Backend
) -> None:
    config = make()
    events: list[Event] = []
    with pytest.raises(Diverged, match=r"step 8: the loss of view train/r_\d.png is nan"):
        for event in train(config, broken_after(backend, 7)):
            events.append(event)
    failure = events[-1]
    assert isinstance(failure, Failed) and failure.step == 7
    arrays, state = container.read(Path(failure.checkpoint))
    assert state["step"] == 7 and np.isfinite(arrays["geometry"]).all()


def test_a_broken_state_is_not_saved_over_a_good_one(make: Make, backend: Backend) -> None:
    class Poisoned(Around):
        calls = 0

        def train_step(self, order: TrainStep) -> Ticket:
            self.calls += 1
            ticket = self.model.train_step(order)
            if self.calls == 6:
                self.model.stored("harmonics", slice(None))[:] = np.nan
            return ticket

    config = make(checkpoint_iterations=(5,), densification="none")
    events: list[Event] = []
    with pytest.raises(Diverged, match="chkpnt5"):
        for event in train(config, broken_after(with_models(backend, Poisoned), 6)):
            events.append(event)
    assert not (config.model_path / "chkpnt6.safetensors").exists()
    assert isinstance(events[-1], Failed) and events[-1].checkpoint.endswith("chkpnt5.safetensors")


def test_a_run_that_cannot_fit_does_not_start(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splatmeter.process_memory.available_bytes", lambda: 2**20)
    config = make()
    with pytest.raises(NotEnoughMemory, match=r"needs about .* but only 1.0 MiB"):
        run(config, backend)
    assert not config.model_path.exists()


def test_a_budget_that_cannot_fit_is_refused_before_the_start(make: Make, backend: Backend) -> None:
    config = make(max_gaussians=10**11)
    with pytest.raises(NotEnoughMemory, match=r"--max-gaussians 1\d+ needs about .* Ask for at most \d+"):
        run(config, backend)
    assert not config.model_path.exists()


def test_a_budget_below_the_number_of_points_is_kept_from_the_start(make: Make, backend: Backend) -> None:
    events = run(make(max_gaussians=50, iterations=12), backend)
    assert all(event.gaussians <= 50 for event in events if isinstance(event, (Started, Progress, Densified)))
    assert any(isinstance(event, Warned) and "70 of 120 points" in event.message for event in events)


def test_memory_that_runs_out_costs_no_step_and_is_one_sentence(make: Make, backend: Backend) -> None:
    class Hungry(Around):
        calls = 0

        def train_step(self, order: TrainStep) -> Ticket:
            self.calls += 1
            if self.calls > 7:
                raise MemoryError
            return self.model.train_step(order)

    config = make()
    with pytest.raises(NotEnoughMemory, match=r"ran out in step 8.*The state so far is .*chkpnt7"):
        run(config, with_models(backend, Hungry))
    assert container.read(config.model_path / "chkpnt7.safetensors")[1]["step"] == 7


def test_a_rearrangement_cut_short_is_not_saved(make: Make, backend: Backend) -> None:
    def rearrange(table: Any, *_: Any) -> Any:
        table.harmonics_second = table.harmonics_second[:0]
        raise MemoryError

    def clumsy(model: Any) -> Any:
        model._kernels = replace(model._kernels, rearrange=rearrange)
        return model

    config = make()
    with pytest.raises(NotEnoughMemory, match="ran out in step 11"):
        run(config, with_models(backend, clumsy))
    assert not list(config.model_path.glob("chkpnt*"))


def test_missing_lpips_weights_leave_an_old_run_alone(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> None:
        raise MissingFile("no weights")

    config = make(iterations=1)
    run(config, backend)
    before = (config.model_path / "events.jsonl").exists(), sorted(config.model_path.rglob("*"))
    monkeypatch.setattr("splatmeter.evaluate.lpips.find", missing)
    with pytest.raises(MissingFile, match="no weights"):
        run(replace(config, overwrite=True, lpips=True), backend)
    assert before == ((config.model_path / "events.jsonl").exists(), sorted(config.model_path.rglob("*")))


def test_what_a_killed_run_left_half_written_is_swept_away(make: Make, backend: Backend) -> None:
    config = make(iterations=1)
    halves = [".chkpnt7.safetensors.123.part", "point_cloud/iteration_5/.fused.ply.123.part"]
    for name in halves:
        (config.model_path / name).parent.mkdir(parents=True, exist_ok=True)
        (config.model_path / name).write_bytes(b"half")
    run(replace(config, overwrite=True), backend)
    assert not [name for name in halves if (config.model_path / name).exists()]


def test_a_run_can_be_resumed_from_another_folder(
    make: Make, backend: Backend, scene_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scene_folder.parent)
    config = make(iterations=1, source_path=Path(scene_folder.name))
    run(config, backend)
    told = json.loads((config.model_path / "config.json").read_text())
    assert Path(told["source_path"]) == scene_folder.absolute()


def test_a_cut_off_photo_is_found_before_the_first_step(make: Make, backend: Backend, tmp_path: Path) -> None:
    from tiny_scene import write_tiny_scene

    scene = write_tiny_scene(tmp_path / "scene")
    photo = scene / "train" / "r_3.png"
    photo.write_bytes(photo.read_bytes()[:200])
    with pytest.raises(InputError, match=r"r_3.png is cut off. .* run the same command again"):
        run(make(source_path=scene), backend)
    assert not (tmp_path / "run").exists()


def test_a_photo_that_vanishes_costs_no_step(make: Make, backend: Backend, tmp_path: Path) -> None:
    from tiny_scene import write_tiny_scene

    scene = write_tiny_scene(tmp_path / "scene")
    photo, away = scene / "train" / "r_3.png", tmp_path / "away.png"
    events: list[Event] = []
    told = (
        r"r_3.png .* state so far is .*chkpnt\d+.safetensors\. Go on with: splatmeter train -m \S+ --resume"
    )
    with pytest.raises(MissingFile, match=told):
        for event in train(make(source_path=scene, photo_cache="0"), backend):
            events.append(event)
            if isinstance(event, Progress) and photo.exists():
                photo.rename(away)
    assert isinstance(events[-1], Failed) and events[-1].checkpoint
    away.rename(photo)
    run(make(source_path=scene, resume=True, checkpoint_iterations=(40,)), backend)
    run(make("plain", source_path=scene, checkpoint_iterations=(40,)), backend)
    resumed, plain = (tmp_path / name / "chkpnt40.safetensors" for name in ("run", "plain"))
    assert bits(resumed) == bits(plain)


def test_growth_that_does_not_fit_ends_with_a_checkpoint_to_go_on_from(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make()
    events: list[Event] = []
    with pytest.raises(NotEnoughMemory, match=r"Densification wants .* --max-gaussians 120"):
        for event in train(config, backend):
            events.append(event)
            monkeypatch.setattr("splatmeter.process_memory.available_bytes", lambda: 1000)
    assert isinstance(events[-1], Failed) and events[-1].step == 10
    monkeypatch.undo()
    run(make(resume=True, checkpoint_iterations=(40,)), backend)
    run(make("plain", checkpoint_iterations=(40,)), backend)
    assert config.model_path is not None
    plain = config.model_path.parent / "plain" / "chkpnt40.safetensors"
    assert bits(config.model_path / "chkpnt40.safetensors") == bits(plain)


@pytest.mark.parametrize(
    ("of_the_host", "kind", "advice"),
    [(True, NotEnoughMemory, "a smaller --photo-cache"), (False, CardUnavailable, "--device cpu")],
)
def test_too_little_memory_comes_with_advice_that_helps(
    of_the_host: bool, kind: type[Exception], advice: str
) -> None:
    """On a card photos give way by themselves."""
    short = Prediction(100, 2000, 100, 2000, 500, 1000, 10, of_the_host)
    with pytest.raises(kind) as problem:
        short.require()
    assert advice in str(problem.value)
    assert ("--photo-cache" in str(problem.value)) == of_the_host
