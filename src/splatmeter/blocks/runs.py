"""The run of one block: its settings, how far it is, and how it goes on."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.blocks.plan_folder import SCENE, Plan, Planned, run_folder
from splatmeter.errors import InputError
from splatmeter.events import Event, Finished, Progress, from_line
from splatmeter.gaussians import ply
from splatmeter.train import checkpoint_names
from splatmeter.train.config import TrainConfig, from_json
from splatmeter.train.output_folder import CONFIG, EVENTS, holds_run

TAIL = 2**16
"""Bytes at the end of the events in which the last one is looked for."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A run that has come to its end."""

    folder: Path
    step: int
    model: Path


def trained(folder: Path) -> Trained | None:
    """None as long as the run has not come to its end, or where what it left is not whole."""
    step = _finished_at(folder) or _planned_end(folder)
    if step is None or not (folder / CONFIG).is_file():
        return None
    model = model_at(folder, step)
    return None if model is None else Trained(folder, step, model)


def model_at(folder: Path, step: int) -> Path | None:
    """The model of that step, if it and the fused one are whole."""
    saved = folder / "point_cloud" / f"iteration_{step}"
    whole = ply.is_whole(saved / "point_cloud.ply") and ply.is_whole(saved / "fused.ply")
    return saved / "point_cloud.ply" if whole else None


def _finished_at(folder: Path) -> int | None:
    last = next(_latest_events(folder), None)
    return last.step if isinstance(last, Finished) and last.reason == "completed" else None


def how_far(folder: Path) -> tuple[int, float] | None:
    """The step that the run was last heard of at, and its seconds of training until then."""
    found = (event for event in _latest_events(folder) if isinstance(event, Progress))
    return next(((event.step, event.clock_seconds) for event in found), None)


def _latest_events(folder: Path) -> Iterator[Event]:
    """The newest first, as far back as the end of the file tells; nothing where it cannot be read."""
    try:
        with (folder / EVENTS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines()
        for line in reversed(lines):
            yield from_line(line)
    except (OSError, ValueError):
        return


def _planned_end(folder: Path) -> int | None:
    """A process that was killed after its model was whole has told nobody of its end."""
    config = settings_of(folder)
    return None if config is None or config.seconds is not None else config.iterations


def settings_of(folder: Path) -> TrainConfig | None:
    """None where no run has begun; InputError where its settings cannot be read."""
    path = folder / CONFIG
    try:
        return from_json(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        raise InputError(f"{path} cannot be read ({problem}).") from None


def reached(folder: Path) -> int:
    """Steps of the newest checkpoint."""
    found = checkpoint_names.newest(folder)
    return 0 if found is None else int("".join(filter(str.isdecimal, found.name.split(".")[0])))


def block_config(out: Path, plan: Plan, block: Planned) -> TrainConfig:
    """An ordinary run's settings: from the newest checkpoint if there is one, else from the beginning."""
    folder, whole = run_folder(out, block.name), from_json(plan.config)
    begun = checkpoint_names.newest(folder) is not None
    return dataclasses.replace(
        settings_for(whole, plan, block),
        source_path=folder / SCENE,
        model_path=folder,
        experiment_name=f"{whole.experiment_name or out.name} {block.name}",
        resume=begun,
        overwrite=not begun and holds_run(folder),
    )


def settings_for(whole: TrainConfig, plan: Plan, block: Planned) -> TrainConfig:
    """How a block is trained, wherever. What was given to the whole scene as a time is shared out."""
    return dataclasses.replace(
        whole,
        test_iterations=(),  # a block alone shows the rest of the scene coarsely: the joined model is judged
        lpips=False,
        max_gaussians=block.max_gaussians,
        densify_region=block.region,
        seconds=None if whole.seconds is None else whole.seconds / len(plan.blocks),
        resume=False,
        overwrite=False,
    )


PLACELESS = {
    "model_path", "experiment_name", "resume", "overwrite", "photo_cache", "checkpoint_iterations",
    "checkpoint_interval", "checkpoint_minutes", "test_iterations", "lpips", "exposure_protocol",
    "progress_interval", "evaluation_images",
}  # fmt: skip
"""Settings of a run that may change between two starts: they change no Gaussian."""


def differences(before: Mapping[str, Any], now: Mapping[str, Any], but: set[str]) -> list[str]:
    """Options that are not as they were, each as a part of a sentence."""
    return [
        f"--{name.replace('_', '-')} was {told(before[name])} and is now {told(value)}"
        for name, value in now.items()
        if name not in but and name in before and before[name] != value
    ]


def told(value: object) -> str:
    if value is None:
        return "not given"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
