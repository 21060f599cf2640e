"""Settings of a scene that was divided into blocks, the grid included, for a command that goes on with it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from splatmeter.blocks import plan_folder as divided
from splatmeter.errors import InputError, SplatmeterError, UsageError
from splatmeter.scene import block as block_scene
from splatmeter.train.config import from_json
from splatmeter.train.earlier import lasting


def divided_settings(folder: Path) -> dict[str, Any]:
    """The scene may have moved together with the folder: a block knows the way to it from its own place."""
    plan = divided.read(folder)
    try:
        divisions = {"blocks": plan.blocks_option, "polish": plan.polish}
        config = from_json(plan.config)
        return {**lasting(config), **divisions, "source_path": _where(folder, plan, config.source_path)}
    except (TypeError, UsageError) as problem:
        raise InputError(f"The settings in {folder / divided.PLAN} cannot be used ({problem}).") from None


def _where(folder: Path, plan: divided.Plan, told: Path) -> Path:
    for block in () if told.is_dir() else plan.blocks:
        with suppress(SplatmeterError, OSError):
            return block_scene.read(divided.run_folder(folder, block.name) / divided.SCENE).whole()
    return told
