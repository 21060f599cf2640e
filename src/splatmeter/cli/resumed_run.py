"""The settings of the run that `splatmeter train --resume` goes on with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splatmeter.train.earlier import earlier_settings
from splatmeter.train.presets import PRESETS

if TYPE_CHECKING:
    from splatmeter.cli.train import TrainArguments


def resumed_settings(chosen: TrainArguments) -> dict[str, Any] | None:
    """The run's own, for all that the command line does not say; with -s too, which tells where the scene is
    now. Otherwise a run would go on at another size, and with the photos it had held out.

    None where there is nothing to go on with, or where only the command line can tell how."""
    folder = _folder(chosen) if chosen.resume else None
    if folder is None:
        return None
    scene_given = chosen.source_path != Path()
    if (folder / "blocks.json").is_file():
        from splatmeter.blocks.divided_settings import divided_settings

        return None if scene_given and chosen.overwrite else divided_settings(folder)
    if scene_given and not (folder / "config.json").is_file():
        return None
    settings = earlier_settings(folder)
    _say_that_presets_are_for_beginnings(chosen.preset, settings)
    return settings


def _folder(chosen: TrainArguments) -> Path | None:
    """None where it would be a new one."""
    if chosen.model_path is None and not chosen.experiment_name:
        return None
    from splatmeter.train.output_folder import with_output_folder

    return with_output_folder(chosen.config()).model_path


def _say_that_presets_are_for_beginnings(preset: str, settings: dict[str, Any]) -> None:
    if any(settings.get(name) != value for name, value in PRESETS.get(preset, {}).items()):
        print(
            f"Warning: --preset {preset} is for the beginning of a run; this one goes on with its own "
            "settings.",
            file=sys.stderr,
        )
