"""The runs that are joined: whether they are blocks, finished, of one division, and trained alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.blocks import grid
from splatmeter.blocks.grid import Grid
from splatmeter.blocks.plan_folder import SCENE
from splatmeter.blocks.runs import PLACELESS, Trained, differences, reached, settings_of, trained
from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.scene import block as block_scene
from splatmeter.train.config import TrainConfig, to_json

OWN = {"source_path", "max_gaussians", "densify_region", "seconds", "memory", "seed", "save_iterations"}
"""Settings in which blocks may differ besides those that change no Gaussian."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    name: str
    number: int
    """The number of its cell."""
    run: Trained
    config: TrainConfig
    described: block_scene.Block


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """All of one division, in the order of its cells."""

    grid: Grid
    division: Mapping[str, Any]
    pieces: tuple[Piece, ...]

    @property
    def step(self) -> int:
        """The fewest: blocks that were given a time do not end at the same one."""
        return min(piece.run.step for piece in self.pieces)


def gathered(folders: Sequence[Path]) -> Pieces:
    """Every block of one division exactly once; whatever is wrong is said with the folder's name."""
    if not folders:
        raise UsageError("Which blocks? Name the folders of their runs. See splatmeter merge --help")
    twice = next((folder for place, folder in enumerate(folders) if folder in folders[:place]), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice. Name every block once.")
    described = {folder: _described(folder) for folder in folders}
    first = folders[0]
    division = described[first].plan
    cells = _cells(division, first)
    for folder in folders[1:]:
        if described[folder].plan.get("id") != division["id"]:
            raise InputError(
                f"{folder} does not belong to {first}: they are blocks of two divisions. "
                "Join only blocks that were made by one train --blocks."
            )
    _require_each_once(described, cells)
    pieces = sorted(
        (_piece(folder, block, cells) for folder, block in described.items()), key=lambda piece: piece.number
    )
    _require_alike(pieces)
    return Pieces(_grid(division, first), division, tuple(pieces))


def _described(folder: Path) -> block_scene.Block:
    if not folder.is_dir():
        raise MissingFile(f"There is no folder {folder}. Name the folder of a block's run.")
    config = settings_of(folder)
    places = [folder / SCENE, *([config.source_path] if config is not None else [])]
    for place in places:
        if (place / block_scene.FILE).is_file():
            return block_scene.read(place)
    raise InputError(
        f"{folder} is not the run of a block (there is no {SCENE}/{block_scene.FILE}). "
        "Name folders as train --blocks makes them, OUT/blocks/1-1 and so on."
    )


def _grid(division: Mapping[str, Any], where: Path) -> Grid:
    try:
        return grid.from_record(division["grid"])
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(
            f"The division in {where} is damaged ({problem} is missing or wrong). Make the blocks anew."
        ) from None


def _cells(division: Mapping[str, Any], where: Path) -> list[str]:
    """Names of all blocks."""
    if "id" not in division:
        raise InputError(f"The division in {where} has no id. Make blocks anew with train --blocks.")
    return [f"{slab + 1}-{cell + 1}" for slab, cell in _grid(division, where).cells]


def _require_each_once(described: Mapping[Path, block_scene.Block], cells: Sequence[str]) -> None:
    seen: dict[str, Path] = {}
    for folder, block in described.items():
        if block.name in seen:
            raise InputError(
                f"Block {block.name} is there twice: {seen[block.name]} and {folder}. Name it once."
            )
        if block.name not in cells:
            raise InputError(f"{folder} is block {block.name}, which its own division does not have.")
        seen[block.name] = folder
    missing = [name for name in cells if name not in seen]
    if missing:
        what = f"Block {missing[0]} is" if len(missing) == 1 else f"Blocks {_listed(missing)} are"
        raise MissingFile(f"{what} missing of {len(cells)}. Train what is missing, and name all of them.")


def _piece(folder: Path, block: block_scene.Block, cells: Sequence[str]) -> Piece:
    run, config = trained(folder), settings_of(folder)
    if run is None or config is None:
        far = f"step {reached(folder)}" if reached(folder) else "no checkpoint yet"
        raise MissingFile(f"Block {block.name} in {folder} is not finished ({far}). Train it to its end.")
    return Piece(block.name, cells.index(block.name), run, config, block)


def _require_alike(pieces: Sequence[Piece]) -> None:
    first = pieces[0]
    for piece in pieces[1:]:
        changed = differences(to_json(first.config), to_json(piece.config), PLACELESS | OWN)
        if changed:
            told = (
                changed[0].replace(" was ", " is ", 1).replace(" and is now ", f" in block {first.name} and ")
            )
            raise InputError(
                f"Blocks were trained differently: {told} in block {piece.name}. Train them alike."
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}"
