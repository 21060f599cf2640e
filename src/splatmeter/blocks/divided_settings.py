"""Settings of a scene that was divided into blocks, the grid included, for a command that goes on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from splatmeter.blocks import plan_folder as divided
from splatmeter.errors import InputError, UsageError
from splatmeter.train.config import from_json
from splatmeter.train.earlier import lasting


def divided_settings(folder: Path) -> dict[str, Any]:
    plan = divided.read(folder)
    try:
        divisions = {"blocks": plan.blocks_option, "polish": plan.polish}
        return {**lasting(from_json(plan.config)), **divisions}
    except (TypeError, UsageError) as problem:
        raise InputError(f"The settings in {folder / divided.PLAN} cannot be used ({problem}).") from None
