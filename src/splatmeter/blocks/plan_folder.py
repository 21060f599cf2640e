"""The output folder of a scene in blocks: the plan that a stopped run goes on with, and a folder for each.

OUT/blocks.json             the plan, written first
OUT/blocks/1-2/scene        what block 1-2 is trained on
OUT/blocks/1-2              its run, an ordinary one
OUT                         the joined model, an ordinary model folder, with joined.json
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from splatmeter import __version__
from splatmeter.blocks.planning import Block, Division
from splatmeter.densify import region
from splatmeter.errors import InputError, MissingFile, OutputError
from splatmeter.files.atomic import replacing, write_text
from splatmeter.scene import block as block_scene
from splatmeter.scene.points_ply import points_bytes
from splatmeter.train.output_folder import clear_run, holds_run

PLAN = "blocks.json"
BLOCKS = "blocks"
SCENE = "scene"
JOINED = "joined.json"


@dataclass(frozen=True, slots=True)
class Planned:
    """One block, as blocks.json tells it."""

    name: str
    photos: int
    points: int
    stand_ins: int
    region: str | None
    max_gaussians: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    blocks_option: str
    """As it was given: 2x2."""
    config: Mapping[str, Any]
    """Settings of the whole scene's run."""
    division: Mapping[str, Any]
    blocks: tuple[Planned, ...]
    polish: int = 0
    """Steps with the joined model."""

    def named(self, name: str) -> Planned:
        found = next((block for block in self.blocks if block.name == name), None)
        if found is None:
            there = ", ".join(block.name for block in self.blocks)
            raise MissingFile(f"There is no block {name}; the plan has {there}.")
        return found


def run_folder(out: Path, name: str) -> Path:
    return out / BLOCKS / name


def has_plan(out: Path) -> bool:
    return (out / PLAN).is_file()


def read(out: Path) -> Plan:
    path = out / PLAN
    try:
        record = json.loads(path.read_text("utf-8"))
        blocks = tuple(Planned(**row) for row in record["blocks"])
        option, polish = str(record["blocks_option"]), int(record.get("polish", 0))
        return Plan(option, dict(record["config"]), dict(record["division"]), blocks, polish)
    except FileNotFoundError:
        raise MissingFile(f"{out} holds no scene in blocks (no {PLAN}).") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise InputError(
            f"{path} cannot be read ({problem}). Begin anew with --overwrite, or choose another -m."
        ) from None


def write(out: Path, plan: Plan, source: Path, blocks: tuple[Block, ...]) -> None:
    """Scenes first: where the plan lies, everything that it names is there."""
    write_scenes(out, plan, source, blocks)
    write_plan(out, plan)


def write_scenes(out: Path, plan: Plan, source: Path, blocks: Sequence[Block]) -> None:
    for block in blocks:
        scene = run_folder(out, block.name) / SCENE
        photos = (*block.train, *block.test)
        described = block_scene.Block(block.name, (source,), photos, dict(plan.division))
        with replacing(scene / block_scene.POINTS) as file:
            file.write(points_bytes(block.points))
        write_text(scene / block_scene.FILE, json.dumps(block_scene.content(described, scene), indent=1))


def write_plan(out: Path, plan: Plan) -> None:
    record = {"splatmeter": __version__, **asdict(plan)}
    write_text(out / PLAN, json.dumps(record, indent=1))


def refuse_foreign(out: Path) -> None:
    """An ordinary run is never mixed with one in blocks."""
    if not has_plan(out) and holds_run(out):
        raise OutputError(
            f"{out} already holds a run that is not in blocks. Choose another -m, or remove that one."
        )


def clear(out: Path) -> None:
    """Only what a plan names, and the model that was joined by it; the plan goes last."""
    for name in [block.name for block in read(out).blocks]:
        shutil.rmtree(run_folder(out, name), ignore_errors=True)
    (out / JOINED).unlink(missing_ok=True)
    clear_run(out)
    (out / PLAN).unlink(missing_ok=True)


def plan_of(
    blocks_option: str, config: Mapping[str, Any], division: Division, max_gaussians: int | None
) -> Plan:
    """A budget for the whole scene is shared out."""
    rows = tuple(
        Planned(
            name=block.name,
            photos=len(block.train),
            points=block.inside,
            stand_ins=block.stand_ins,
            region=region.text_of(block.region),
            max_gaussians=None if max_gaussians is None else block.share_of(max_gaussians),
        )
        for block in division.blocks
    )
    return Plan(blocks_option, config, division.record(), rows)
