"""What a folder of blocks gets back that was moved, deleted or damaged: the scene of a block from the plan,
the model of a finished block from its last checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from splatmeter.backend import Backend
from splatmeter.blocks.grid import parse
from splatmeter.blocks.plan_folder import SCENE, Plan, run_folder, write_scenes
from splatmeter.blocks.planning import planned
from splatmeter.errors import InputError, SplatmeterError
from splatmeter.scene import block as block_scene
from splatmeter.scene.scene import Scene
from splatmeter.train.assemble import assemble
from splatmeter.train.config import TrainConfig
from splatmeter.train.output_folder import OutputFolder


def mend_scenes(out: Path, plan: Plan, scene: Scene, source: Path) -> list[str]:
    """Writes anew what is gone, damaged, or looks for the whole scene elsewhere; returns names of blocks."""
    places = {block.name: run_folder(out, block.name) / SCENE for block in plan.blocks}
    names = [name for name, place in places.items() if not _is_sound(place, plan, source)]
    if not names:
        return []
    division = planned(scene, parse(plan.blocks_option))
    if division.record()["id"] != plan.division["id"]:
        raise InputError(
            f"Blocks {', '.join(names)} in {out} lack their scene, and this version divides it otherwise. "
            "Begin anew with --overwrite, or choose another -m."
        )
    write_scenes(out, plan, source, [block for block in division.blocks if block.name in names])
    return names


def _is_sound(folder: Path, plan: Plan, source: Path) -> bool:
    try:
        found = block_scene.read(folder)
        block_scene.read_points(folder)
        return found.plan.get("id") == plan.division["id"] and found.whole() == source.resolve()
    except (SplatmeterError, OSError):
        return False


def save_model_again(config: TrainConfig, backend: Backend) -> None:
    """For a run whose newest checkpoint is of its last step."""
    parts = assemble(dataclasses.replace(config, iterations=config.iterations + 1), backend)
    try:
        with OutputFolder(config) as output:
            output.describe(parts.scene)
            for _ in output.save_model(parts.state):
                pass
    finally:
        parts.photos.close()
