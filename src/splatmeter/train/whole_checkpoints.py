"""Which checkpoint a run can go on from where its newest one is damaged."""

from __future__ import annotations

from pathlib import Path

from splatmeter.errors import CheckpointError, MissingFile
from splatmeter.shell import quoted
from splatmeter.train import checkpoint_names, container
from splatmeter.train.config import TrainConfig


def whole_instead(refused: Path, config: TrainConfig) -> str:
    """For a message; empty where the file is whole, and something else is wrong with it. Reads every byte,
    which takes a while and is better than naming one that is refused as well."""
    if _is_whole(refused):
        return ""
    others = [path for path in checkpoint_names.saved(refused.parent).values() if path != refused]
    found = next(filter(_is_whole, reversed(others)), None)
    if found is None:
        return f"No other one in {refused.parent} is whole."
    if config.seconds is not None or config.plan is not None:  # these refuse --start-checkpoint
        return f"{found} is whole: with {refused.name} out of the folder, --resume goes on from there."
    return f"{found} is whole: go on from there with --resume --start-checkpoint {quoted(str(found))}."


def _is_whole(path: Path) -> bool:
    try:
        container.read(path)
    except (CheckpointError, MissingFile):
        return False
    return True
