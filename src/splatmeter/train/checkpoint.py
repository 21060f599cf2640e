"""Checkpoints: the whole training state, bit for bit, so that a resumed run is the run that never stopped."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from splatmeter.backend import Backend, Facts, Model, Momentum, OptimizerState
from splatmeter.errors import CheckpointError
from splatmeter.ops import WIDTHS, Table
from splatmeter.scene.sampler import ViewSampler
from splatmeter.scene.scene import Scene
from splatmeter.train import checkpoint_content, container, photo_exposures
from splatmeter.train.config import TrainConfig, to_json
from splatmeter.train.losses import Losses
from splatmeter.train.state import Ancestry, TrainingState, poses_fingerprint, view_sampler


@dataclass(frozen=True, slots=True, eq=False)
class Resumed:
    state: TrainingState
    clock_seconds: float
    config: Mapping[str, Any]
    """Settings of the run that wrote the checkpoint; empty where the file does not say."""
    warnings: tuple[str, ...] = ()
    timing: Mapping[str, Any] | None = None
    """Seconds used and the plan, of a run that has one."""


# ---- writing ----------------------------------------------------------------------------------------------
def save(
    path: Path,
    state: TrainingState,
    scene: Scene,
    config: TrainConfig,
    engine: Facts,
    clock_seconds: float,
    timing: Mapping[str, Any] | None = None,
) -> str:
    """Rows are stored as they are, with what they are owed beside them: saving changes no later bit."""
    model, optimizer = state.model, state.model.optimizer()
    arrays: dict[str, Any] = {
        name: container.Rows(model.count, width, partial(model.stored, name))
        for name, width in WIDTHS.items()
    }
    record = _record(state, scene, config, clock_seconds) | {
        "engine": {"name": engine.name, "arithmetic": engine.arithmetic},
        "optimizer_steps": optimizer.steps,
        "rates": None if optimizer.rates is None else dataclasses.asdict(optimizer.rates),
    }
    if timing is not None:
        record["timing"] = timing
    exposures = photo_exposures.arrays_of(model.exposures())
    return container.write(path, arrays | dict(optimizer.owed) | exposures, record)


def _record(state: TrainingState, scene: Scene, config: TrainConfig, clock_seconds: float) -> dict[str, Any]:
    names = tuple(view.name for view in scene.train)
    lineage = state.ancestry.joined(names)
    return {
        "config": to_json(config),
        "scene": poses_fingerprint(scene),
        "poses": "portable",
        "step": state.step,
        "grown": state.grown,
        "sh_degree": state.sh_degree,
        "clock_seconds": clock_seconds,
        "loss_average": state.losses.average,
        "recent_losses": list(state.losses.recent),
        "moments": "normalized",
        "train_views": list(names),
        "sampler": state.sampler.state(),
        "draws": "by name",
        "trained_on": list(lineage.images),
        "ancestry": "known" if lineage.known else "unknown",
    }


# ---- reading ----------------------------------------------------------------------------------------------
def load(path: Path, scene: Scene, config: TrainConfig, backend: Backend) -> Resumed:
    """CheckpointError unless the file is whole, of this version and of this scene."""
    found = checkpoint_content.read(path)
    record = found.record
    with found.understood():
        remarks = _same_scene(record, scene, path)
        optimizer = found.optimizer()
        model = backend.upload(found.table(), optimizer)
        if optimizer.momentum != config.optimizer_momentum:
            model = _going_on_with(config.optimizer_momentum, model, backend)
        sampler, warnings = _order_of_views(record, scene, config)
        names = [view.name for view in scene.train]
        exposures = photo_exposures.restored(found.arrays, record["train_views"], names)
        if exposures is not None and config.exposure != "none":
            model.expose(exposures)
        state = TrainingState(
            model=model,
            losses=Losses(config.lambda_dssim, float(record["loss_average"]), record["recent_losses"]),
            sampler=sampler,
            step=int(record["step"]),
            grown=int(record["grown"]),
            sh_degree=int(record["sh_degree"]),
            ancestry=Ancestry(tuple(record["trained_on"]), record["ancestry"] == "known"),
        )
        said = (*remarks, *warnings, *_other_arithmetic(record, backend.facts), *_other_draws(record, config))
        return Resumed(state, float(record["clock_seconds"]), record["config"], said, record.get("timing"))


def _going_on_with(momentum: Momentum, model: Model, backend: Backend) -> Model:
    """What rows owe by their momentum so far is done first: accounts know one momentum."""
    model.settle()
    optimizer = model.optimizer()
    table = Table(*(model.stored(name, slice(None)).copy() for name in WIDTHS))
    return backend.upload(table, OptimizerState(optimizer.steps, optimizer.rates, momentum=momentum))


def _same_scene(record: Mapping[str, Any], scene: Scene, path: Path) -> list[str]:
    """Earlier versions' poses had other bits on other processors: there, names must do."""
    if record["scene"] == poses_fingerprint(scene):
        return []
    names = {view.name for view in (*scene.train, *scene.test)}
    if record.get("poses") != "portable" and set(record["train_views"]) <= names:
        return [
            f"The checkpoint {path} is of an earlier version, whose poses not every machine can compare. "
            f"Its photos have names of {scene.source}; whether they have its poses was not checked."
        ]
    raise CheckpointError(
        f"The checkpoint {path} belongs to another scene "
        f"({record['config'].get('source_path', '?')}), not to {scene.source}. "
        "Pass the scene it was trained on."
    )


def _other_arithmetic(record: Mapping[str, Any], engine: Facts) -> list[str]:
    """Checkpoints of before engines were named tell nothing."""
    before = record.get("engine", {}).get("arithmetic", engine.arithmetic)
    if before == engine.arithmetic:
        return []
    return [
        f"The checkpoint was written by another engine ({before}), this run goes on with "
        f"{engine.arithmetic}: equal within rounding, not to the last bit."
    ]


def _other_draws(record: Mapping[str, Any], config: TrainConfig) -> list[str]:
    """Checkpoints of before random numbers had names carry a generator instead."""
    over = config.densification == "none" or int(record["step"]) >= config.densify_until_iter
    if "generator" not in record or over:
        return []
    return [
        "The checkpoint is of an older splatmeter, whose random numbers came in another way: from here on "
        "split and relocated Gaussians are placed as well, but not in the same places."
    ]


def _order_of_views(
    record: Mapping[str, Any], scene: Scene, config: TrainConfig
) -> tuple[ViewSampler, tuple[str, ...]]:
    """Continued for the same split and seed, else begun anew."""
    sampler = view_sampler(scene, config)
    same_views = record["train_views"] == [view.name for view in scene.train]
    if same_views and record["config"].get("seed") == config.seed:
        sampler.restore(record["sampler"])
        return sampler, ()
    what = "seed is" if same_views else "training views are"
    return sampler, (f"The {what} not the checkpoint's: order of views and random numbers start anew.",)


_HARMLESS = {
    "model_path", "experiment_name", "photo_cache", "iterations", "test_iterations", "save_iterations",
    "checkpoint_iterations", "checkpoint_interval", "checkpoint_minutes", "start_checkpoint", "resume",
    "overwrite", "lpips", "progress_interval", "evaluation_images", "source_path", "seed",
    "exposure_protocol", "plan",
}  # fmt: skip


def changed_settings(before: Mapping[str, Any], config: TrainConfig) -> list[str]:
    """Settings that make the resumed run another one than the run that never stopped."""
    now = to_json(config)
    return [
        f"{name} {before[name]} -> {now[name]}"
        for name in now
        if name in before and name not in _HARMLESS and before[name] != now[name]
    ]
