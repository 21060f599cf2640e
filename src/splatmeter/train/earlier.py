"""The settings of an earlier run that is resumed, or repeated from its plan."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, UsageError
from splatmeter.train import plan
from splatmeter.train.config import TrainConfig, from_json

ONCE = {"model_path", "start_checkpoint", "resume", "overwrite"}
"""Settings that are about one start, and not about the run."""


def earlier_settings(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = from_json(json.loads(path.read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(
            f"{folder} holds no run to resume (no config.json). Pass its scene with -s."
        ) from None
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(
            f"{path} cannot be read ({problem}). Remove it, and pass the scene and all settings again."
        ) from None
    return lasting(config)


def planned_settings(path: Path) -> dict[str, Any]:
    """What the run had that made the plan."""
    return plan.typed_settings(plan.read(path))


def lasting(config: TrainConfig) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(TrainConfig)]
    return {name: getattr(config, name) for name in names if name not in ONCE}
