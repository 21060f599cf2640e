"""What an earlier run was told, as defaults of a command that goes on with it or repeats it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, UsageError
from splatmeter.train.config import TrainConfig, from_json

ONCE = {"model_path", "start_checkpoint", "resume", "overwrite"}
"""Settings that are about one start, and not about the run."""


def earlier_settings(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = from_json(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no run to resume (no config.json). Pass its scene with -s."
        ) from None
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(f"{path} cannot be read ({problem}). Pass all settings again.") from None
    return _lasting(config)


def planned_settings(path: Path) -> dict[str, Any]:
    """What the run had that made the plan."""
    from splatmeter.train import plan

    settings = plan.read(path).settings
    try:
        config = from_json(settings)
    except TypeError as problem:
        raise InputError(
            f"The settings in {path} cannot be used ({problem}). Take the plan.json of a run."
        ) from None
    return {name: getattr(config, name) for name in settings if hasattr(config, name)}


def divided_settings(folder: Path) -> dict[str, Any]:
    """Of a scene in blocks, the grid included."""
    from splatmeter.blocks import folder as divided

    plan = divided.read(folder)
    try:
        divisions = {"blocks": plan.blocks_option, "polish": plan.polish}
        return {**_lasting(from_json(plan.config)), **divisions}
    except (TypeError, UsageError) as problem:
        raise InputError(f"The settings in {folder / divided.PLAN} cannot be used ({problem}).") from None


def _lasting(config: TrainConfig) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(TrainConfig)]
    return {name: getattr(config, name) for name in names if name not in ONCE}
