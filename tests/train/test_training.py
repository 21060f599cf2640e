"""Runs of the whole loop on a scene of six 32-pixel photos."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from splatmeter.errors import CheckpointError, Diverged, MissingFile, NotEnoughMemory, OutputError, UsageError
from splatmeter.events import (
    Densified,
    Evaluated,
    Event,
    Failed,
    Finished,
    Progress,
    Saved,
    Started,
    Warned,
    from_line,
    to_line,
)
from splatmeter.gaussians import ply
from splatmeter.ops import Backend, Rates, Similarity, empty_table
from splatmeter.train import container
from splatmeter.train.config import TrainConfig, from_json, to_json
from splatmeter.train.loop import train
from splatmeter.update.optimizer import Drift
from splatmeter.update.settled import settled_copy

Make = Callable[..., TrainConfig]


@pytest.fixture
def make(scene_folder: Path, tmp_path: Path) -> Make:
    """A configuration that densifies and resets within forty steps."""

    def configuration(name: str = "run", **changes: Any) -> TrainConfig:
        settings: dict[str, Any] = {
            "source_path": scene_folder,
            "model_path": tmp_path / name,
            "eval": True,
            "iterations": 40,
            "test_iterations": (),
            "save_iterations": (),
            "densify_from_iter": 5,
            "densify_until_iter": 35,
            "densification_interval": 10,
            "opacity_reset_interval": 25,
            "max_gaussians": 200,
        }
        return TrainConfig(**(settings | changes))

    return configuration


def run(config: TrainConfig, backend: Backend, **options: Any) -> list[Event]:
    return list(train(config, backend, **options))


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def bits(path: Path, *without: str) -> dict[str, Any]:
    arrays, state = container.read(path)
    for name in ("config", "clock_seconds", *without):
        state.pop(name)
    return {name: array.tobytes() for name, array in arrays.items()} | {"state": state}


def test_a_run_tells_its_story_in_order_and_learns(make: Make, backend: Backend) -> None:
    events = run(make(iterations=60, densification="none", test_iterations=(1, 60)), backend)
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    assert [event.step for event in of(Progress, events)] == [10, 20, 30, 40, 50, 60]
    first, last = (event for event in of(Evaluated, events) if event.split == "test")
    assert last.metrics["psnr"] > first.metrics["psnr"] + 1
    clocks = [event.clock_seconds for event in of(Progress, events)]
    assert clocks == sorted(clocks)
    assert events[-1].step == 60 and events[-1].reason == "completed"
    assert {"loading", "training", "evaluation", "saving"} <= events[-1].peak_memory_bytes.keys()
    assert all(from_line(to_line(event)) is not None for event in events)


def test_the_folder_is_laid_out_as_the_originals(make: Make, backend: Backend) -> None:
    config = make(iterations=4, save_iterations=(2,))
    events = run(config, backend)
    folder = config.model_path
    assert folder is not None
    for step in (2, 4):
        model = ply.read_model(folder / "point_cloud" / f"iteration_{step}" / "point_cloud.ply")
        fused = ply.read_model(folder / "point_cloud" / f"iteration_{step}" / "fused.ply")
        assert model.table.count == fused.table.count == 120
        assert model.filtered and not fused.filtered
    assert "kernel_size=0.1" in (folder / "cfg_args").read_text()
    cameras = json.loads((folder / "cameras.json").read_text())
    assert [camera["img_name"] for camera in cameras][:3] == ["test/r_0", "test/r_1", "train/r_0"]
    assert cameras[0]["width"] == 32 and cameras[0]["fx"] == pytest.approx(16 / math.tan(0.4))
    assert (folder / "input.ply").read_bytes().startswith(b"ply\n")
    assert from_json(json.loads((folder / "config.json").read_text())) == config
    assert {Path(event.path).name for event in of(Saved, events)} == {"point_cloud.ply", "fused.ply"}


def test_saving_a_model_copies_only_a_block_of_rows(make: Make, backend: Backend) -> None:
    """A copy of the whole table would take 256 bytes a Gaussian: 51 MB here."""
    from splatmeter.train.session import Session

    table = empty_table(200_000)
    table.geometry[:, 6], table.geometry_moments[:, 0], table.geometry_moments[:, 12] = 1, 0.5, 0.25
    drift = Drift()
    drift.advance(1, 0.1)
    table.pending = drift.pending(1, Rates(0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
    state: Any = SimpleNamespace(table=table, step=1)
    with Session(make()) as session:
        tracemalloc.start()
        files = [saved.path for saved in session.save_model(state, backend)]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 30e6
    expected = settled_copy(table, backend).geometry[:, :3]
    assert expected.any() and not table.geometry[:, :3].any()
    for path in files:
        np.testing.assert_array_equal(ply.read_model(Path(path)).table.geometry[:, :3], expected)


def test_densification_is_reported_with_the_step_it_belongs_to(make: Make, backend: Backend) -> None:
    events = run(make(), backend)
    changes = of(Densified, events)
    assert [change.step for change in changes] == [10, 20, 30]
    count = 120
    for change in changes:
        count += change.cloned + change.split - change.pruned
        assert change.gaussians == count <= 200
    assert count > 120


# ---- resuming ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("criterion", ["gof", "none"])
def test_stopping_and_resuming_changes_no_bit(make: Make, backend: Backend, criterion: str) -> None:
    straight = make("straight", checkpoint_iterations=(40,), densification=criterion)
    run(straight, backend)
    run(make("halves", iterations=20, checkpoint_iterations=(20,), densification=criterion), backend)
    resumed = make("halves", resume=True, checkpoint_iterations=(40,), densification=criterion)
    events = run(resumed, backend)
    assert of(Started, events)[0].step == 20
    expected = bits(straight.model_path / "chkpnt40.safetensors")
    assert bits(resumed.model_path / "chkpnt40.safetensors") == expected


def test_evaluating_and_saving_in_between_changes_no_bit(make: Make, backend: Backend) -> None:
    plain = make("plain", checkpoint_iterations=(40,))
    run(plain, backend)
    busy = make(
        "busy",
        checkpoint_iterations=(3, 10, 17, 40),
        test_iterations=(7, 10, 33),
        save_iterations=(10, 25),
        evaluation_images=2,
    )
    run(busy, backend)
    assert bits(busy.model_path / "chkpnt40.safetensors") == bits(plain.model_path / "chkpnt40.safetensors")


def test_an_interruption_saves_a_checkpoint_that_goes_on_without_a_trace(
    make: Make, backend: Backend
) -> None:
    plain = make("plain", checkpoint_iterations=(40,))
    run(plain, backend)
    steps = iter(range(1, 100))
    events = run(make("cut"), backend, interrupted=lambda: next(steps) == 13)
    assert events[-1].reason == "interrupted" and events[-1].step == 13
    assert of(Saved, events)[-1].path.endswith("chkpnt13.safetensors")
    resumed = make("cut", resume=True, checkpoint_iterations=(40,))
    run(resumed, backend)
    assert bits(resumed.model_path / "chkpnt40.safetensors") == bits(
        plain.model_path / "chkpnt40.safetensors"
    )


def test_two_equal_runs_are_equal_and_another_seed_is_not(make: Make, backend: Backend) -> None:
    configs = [
        make(name, seed=seed, checkpoint_iterations=(40,)) for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    for config in configs:
        run(config, backend)
    first, second, other = (bits(config.model_path / "chkpnt40.safetensors") for config in configs)
    assert first == second
    assert first["geometry"] != other["geometry"]


def test_a_checkpoint_names_all_images_that_trained_it_along_its_ancestry(
    make: Make, backend: Backend, tmp_path: Path
) -> None:
    everything = make("all", eval=False, iterations=2, checkpoint_iterations=(2,))
    run(everything, backend)
    events = run(
        make(
            "split",
            iterations=4,
            checkpoint_iterations=(4,),
            start_checkpoint=tmp_path / "all/chkpnt2.safetensors",
        ),
        backend,
    )
    assert "test/r_0.png" in of(Started, events)[0].ancestor_images
    assert any("trained an ancestor" in event.message for event in of(Warned, events))
    assert any("start anew" in event.message for event in of(Warned, events))
    _, state = container.read(tmp_path / "split/chkpnt4.safetensors")
    assert "test/r_1.png" in state["trained_on"] and state["ancestry"] == "known"


def test_changed_settings_are_told_when_resuming(make: Make, backend: Backend) -> None:
    run(make(iterations=2, checkpoint_iterations=(2,)), backend)
    events = run(make(iterations=3, resume=True, kernel_size=0.3), backend)
    assert any("kernel_size 0.1 -> 0.3" in event.message for event in of(Warned, events))


def test_a_checkpoint_of_another_scene_is_refused_and_nothing_is_touched(
    make: Make, backend: Backend, tmp_path: Path
) -> None:
    from tiny_scene import write_tiny_scene

    run(make(iterations=2, checkpoint_iterations=(2,)), backend)
    other = write_tiny_scene(tmp_path / "other", train=5)
    with pytest.raises(CheckpointError, match="another scene"):
        start = tmp_path / "run/chkpnt2.safetensors"
        run(make("new", source_path=other, start_checkpoint=start), backend)
    assert not (tmp_path / "new").exists()


def test_a_checkpoint_cut_off_is_refused_and_nothing_is_overwritten(make: Make, backend: Backend) -> None:
    config = make(iterations=2, checkpoint_iterations=(2,))
    run(config, backend)
    path = config.model_path / "chkpnt2.safetensors"
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        before = {file: file.stat().st_mtime_ns for file in config.model_path.rglob("*")}
        with pytest.raises(CheckpointError, match="cut off"):
            run(make(resume=True), backend)
        assert {file: file.stat().st_mtime_ns for file in config.model_path.rglob("*")} == before


def test_resuming_needs_something_to_resume_and_steps_to_do(make: Make, backend: Backend) -> None:
    with pytest.raises(MissingFile, match="no checkpoint to resume"):
        run(make(resume=True), backend)
    run(make(iterations=2, checkpoint_iterations=(2,)), backend)
    with pytest.raises(UsageError, match="Raise --iterations"):
        run(make(iterations=2, resume=True), backend)


# ---- the folder -------------------------------------------------------------------------------------------
def test_a_folder_with_a_run_is_refused_unless_it_may_be_replaced(make: Make, backend: Backend) -> None:
    config = make(iterations=2, checkpoint_iterations=(2,))
    run(config, backend)
    (config.model_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="already holds a run"):
        run(config, backend)
    run(make(iterations=1, overwrite=True), backend)
    assert not (config.model_path / "chkpnt2.safetensors").exists()
    assert (config.model_path / "notes.txt").read_text() == "mine"


def test_two_runs_never_share_a_folder(make: Make, backend: Backend) -> None:
    config = make()
    events = train(config, backend)
    next(events)
    with pytest.raises(OutputError, match="is training into"):
        run(dataclasses.replace(config, overwrite=True), backend)
    events.close()
    assert run(make(iterations=1, overwrite=True), backend)


def test_the_lock_of_a_killed_process_does_not_count(tmp_path: Path) -> None:
    from splatmeter.train.lock import FolderLock

    script = (
        "import os, sys; from pathlib import Path; from splatmeter.train.lock import FolderLock;"
        "lock = FolderLock(Path(sys.argv[1])); print('locked', flush=True); os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert dead.stdout.strip() == "locked"
    FolderLock(tmp_path).release()


def test_a_disk_too_full_for_the_lock_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from splatmeter.train.lock import FolderLock

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("splatmeter.train.lock.os.write", full)
        with pytest.raises(OutputError, match="No space left on device"):
            FolderLock(tmp_path)
    FolderLock(tmp_path).release()


# ---- what goes wrong --------------------------------------------------------------------------------------
def broken_after(backend: Backend, step: int) -> Backend:
    calls = iter(range(1, 1000))

    def image_loss(*arguments: Any) -> tuple[Similarity, Any]:
        similarity, gradient = backend.image_loss(*arguments)
        return (Similarity(math.nan, 0.5) if next(calls) > step else similarity), gradient

    return dataclasses.replace(backend, image_loss=image_loss)


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
    def poisoned(*arguments: Any) -> None:
        backend.backward_and_update(*arguments)
        if arguments[2] is not None and arguments[2].number == 6:
            table = tables[-1]
            table.harmonics[:] = np.nan

    tables: list[Any] = []

    def forward(table: Any, *rest: Any) -> Any:
        tables.append(table)
        return backend.forward(table, *rest)

    config = make(checkpoint_iterations=(5,), densification="none")
    events: list[Event] = []
    with pytest.raises(Diverged, match="chkpnt5"):
        broken = dataclasses.replace(backend, forward=forward, backward_and_update=poisoned)
        for event in train(config, broken_after(broken, 6)):
            events.append(event)
    assert not (config.model_path / "chkpnt6.safetensors").exists()
    assert isinstance(events[-1], Failed) and events[-1].checkpoint.endswith("chkpnt5.safetensors")


def test_a_run_that_cannot_fit_does_not_start(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splatmeter.memory.available_bytes", lambda: 2**20)
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
    calls = iter(range(1, 1000))

    def forward(*arguments: Any) -> Any:
        if next(calls) > 7:
            raise MemoryError
        return backend.forward(*arguments)

    config = make()
    with pytest.raises(NotEnoughMemory, match=r"ran out in step 8.*The state so far is .*chkpnt7"):
        run(config, dataclasses.replace(backend, forward=forward))
    assert container.read(config.model_path / "chkpnt7.safetensors")[1]["step"] == 7


def test_a_rearrangement_cut_short_is_not_saved(make: Make, backend: Backend) -> None:
    def rearrange(table: Any, *_: Any) -> Any:
        table.harmonics_second = table.harmonics_second[:0]
        raise MemoryError

    config = make()
    with pytest.raises(NotEnoughMemory, match="ran out in step 11"):
        run(config, dataclasses.replace(backend, rearrange=rearrange))
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
        run(dataclasses.replace(config, overwrite=True, lpips=True), backend)
    assert before == ((config.model_path / "events.jsonl").exists(), sorted(config.model_path.rglob("*")))


def test_what_a_killed_run_left_half_written_is_swept_away(make: Make, backend: Backend) -> None:
    config = make(iterations=1)
    halves = [".chkpnt7.safetensors.123.part", "point_cloud/iteration_5/.fused.ply.123.part"]
    for name in halves:
        (config.model_path / name).parent.mkdir(parents=True, exist_ok=True)
        (config.model_path / name).write_bytes(b"half")
    run(dataclasses.replace(config, overwrite=True), backend)
    assert not [name for name in halves if (config.model_path / name).exists()]


def test_a_run_can_be_resumed_from_another_folder(
    make: Make, backend: Backend, scene_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scene_folder.parent)
    config = make(iterations=1, source_path=Path(scene_folder.name))
    run(config, backend)
    told = json.loads((config.model_path / "config.json").read_text())
    assert Path(told["source_path"]) == scene_folder.absolute()


def test_a_photo_that_vanishes_costs_no_step(make: Make, backend: Backend, tmp_path: Path) -> None:
    from tiny_scene import write_tiny_scene

    scene = write_tiny_scene(tmp_path / "scene")
    photo, away = scene / "train" / "r_3.png", tmp_path / "away.png"
    events: list[Event] = []
    with pytest.raises(MissingFile, match=r"r_3.png .* The state so far is .*chkpnt\d+.safetensors"):
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
            monkeypatch.setattr("splatmeter.memory.available_bytes", lambda: 1000)
    assert isinstance(events[-1], Failed) and events[-1].step == 10
    monkeypatch.undo()
    run(make(resume=True, checkpoint_iterations=(40,)), backend)
    run(make("plain", checkpoint_iterations=(40,)), backend)
    assert config.model_path is not None
    plain = config.model_path.parent / "plain" / "chkpnt40.safetensors"
    assert bits(config.model_path / "chkpnt40.safetensors") == bits(plain)


def test_the_training_clock_leaves_out_evaluation_saving_and_listeners() -> None:
    from splatmeter.train.stopwatch import Stopwatch

    time = iter([0.0, 5.0, 105.0, 106.0]).__next__
    clock = Stopwatch(10.0, now=time)
    clock.start()  # at 0
    with clock.paused():  # at 5; goes on at 105
        assert clock.seconds == 15.0
    assert clock.seconds == 16.0  # at 106


# ---- the configuration ------------------------------------------------------------------------------------
def test_a_configuration_survives_json() -> None:
    config = TrainConfig(
        source_path=Path("a"), start_checkpoint=Path("b.pth"), test_iterations=(1, 2), max_gaussians=5
    )
    assert from_json(json.loads(json.dumps(to_json(config)))) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ray_jitter": True}, "--ray-jitter is not supported"),
        ({"resample_gt_image": True}, "--resample-gt-image is not supported"),
        ({"iterations": 0}, "--iterations is 0, but must be above 0"),
        ({"sh_degree": 4}, "--sh-degree"),
        ({"kernel_size": math.nan}, "--kernel-size"),
        ({"lambda_dssim": 1.5}, "--lambda-dssim"),
        ({"aggressive_prune_opacity": 1.0}, "--aggressive-prune-opacity"),
    ],
)
def test_settings_without_sense_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TrainConfig(**changes)


def test_plain_3dgs_means_a_larger_kernel_no_compensation_and_no_3d_filter() -> None:
    config = TrainConfig(plain_3dgs=True)
    settings = config.raster_settings(3)
    assert (settings.kernel_size, settings.compensate, config.uses_filter_3d) == (0.3, False, False)
