"""A block: a scene that is a part of another one. It names the photos that matter to it and has points of its
own; photos, cameras, masks and the split into training and test views are those of the whole scene.

The folder holds block.json and points3D.ply, and no photos: it is small enough to send anywhere from where
the whole scene can be reached too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, MissingFile
from splatmeter.scene import points_ply
from splatmeter.scene.frames import Frame, read_bytes
from splatmeter.scene.points import PointCloud

FILE = "block.json"
POINTS = "points3D.ply"
MADE_BY = "splatmeter train --blocks"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    name: str
    sources: tuple[Path, ...]
    """Folders where the whole scene may be, the first as it was when the block was made."""
    photos: tuple[str, ...]
    """Names, training and test views alike."""
    plan: dict[str, Any] = field(default_factory=dict)
    """The plan of the division it belongs to: for whoever joins the blocks again."""

    def whole(self) -> Path:
        """MissingFile where the whole scene is in none of its places."""
        for source in self.sources:
            if source.is_dir():
                return source.resolve()
        raise MissingFile(
            f"Block {self.name} is a part of the scene {self.sources[0]}, which is not there. "
            f"Bring that scene to this place, or write its folder as 'source' into {FILE} of the block."
        )


def read(folder: Path) -> Block:
    path = folder / FILE
    try:
        record = json.loads(read_bytes(path))
        if record["made_by"] != MADE_BY:
            raise ValueError("made_by")
        sources = (Path(record["source"]), folder / record["source_from_here"])
        return Block(str(record["name"]), sources, tuple(map(str, record["photos"])), dict(record["plan"]))
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise InputError(
            f"{path} does not describe a block of a scene ({problem}). Make it anew with train --blocks."
        ) from None


def content(block: Block, folder: Path) -> dict[str, Any]:
    """What block.json in this folder says. The relative path to the scene is kept too, for disks that are
    mounted elsewhere on other machines."""
    source = block.sources[0].absolute()
    from_here = os.path.relpath(source, folder.absolute())
    names = {"name": block.name, "source": str(source), "source_from_here": from_here}
    return {"made_by": MADE_BY, **names, "photos": list(block.photos), "plan": block.plan}


def read_points(folder: Path) -> PointCloud:
    return points_ply.parse_points(read_bytes(folder / POINTS), folder / POINTS)


def only(frames: Sequence[Frame], block: Block) -> list[Frame]:
    wanted = set(block.photos)
    return [frame for frame in frames if frame.name in wanted]


def require_all(frames: Sequence[Frame], block: Block) -> None:
    """Without --eval there may be more photos than the block was made with, never fewer."""
    missing = sorted(set(block.photos) - {frame.name for frame in frames})
    if missing:
        raise InputError(
            f"{len(missing)} photos of the block {block.name} are not in {block.whole()} (first: "
            f"{missing[0]}). The scene has changed: make the blocks anew with train --blocks."
        )
