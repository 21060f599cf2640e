"""What is to be done, as plain values: they go to the child, and tell whether old work may be used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

STAGES = ("photos", "features", "pairs", "matching", "mapping", "undistortion", "points")
"""In this order; each leaves a marker when it is finished."""
VERSION = 1
"""Goes up whenever a stage leaves something else behind."""


@dataclass(frozen=True, slots=True)
class Settings:
    camera_model: str = "SIMPLE_RADIAL"
    matching: str = "auto"
    single_camera: bool = False
    max_size: int = 1600
    seed: int = 0
    threads: int = 1
    frames: int = 200
    every: float | None = None


@dataclass(frozen=True, slots=True)
class SourcePhoto:
    path: Path
    relative: str
    """Within the folder of photos."""
    mask: Path | None = None


@dataclass(frozen=True, slots=True)
class Job:
    settings: Settings
    photos: tuple[SourcePhoto, ...] = ()
    video: Path | None = None
    masks_wanted: bool = False
    """True where a masks folder was found: photos without one count as all object."""
    notes: tuple[str, ...] = ()
    """What the listing left out."""

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self), default=str))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Job:
        photos = tuple(
            SourcePhoto(Path(p["path"]), p["relative"], Path(p["mask"]) if p["mask"] else None)
            for p in data["photos"]
        )
        video = Path(data["video"]) if data["video"] else None
        return Job(Settings(**data["settings"]), photos, video, data["masks_wanted"], tuple(data["notes"]))

    def fingerprint(self) -> str:
        """Equal where the same command on the same files would do the same work; threads do not matter."""
        settings = {**asdict(self.settings), "threads": 0}
        files = [(p.relative, _stat(p.path), _stat(p.mask)) for p in self.photos]
        video = (self.video.name, _stat(self.video)) if self.video else None
        text = json.dumps([VERSION, settings, files, video, self.masks_wanted])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class CleanPhoto:
    """A photo in the work folder: upright, 8 bits, at its final size, called by its number."""

    number: int
    file: str
    name: str
    """What it will be called in the scene."""
    width: int
    height: int
    sharpness: float
    focal: float | None
    body: str
    mask: str | None = None
    hidden: bool = False
    """True where the mask came from transparency: what lies behind it is no picture."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A photo that could not be used, and why."""

    name: str
    reason: str
    advice: str


@dataclass(frozen=True, slots=True)
class Prepared:
    photos: tuple[CleanPhoto, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Prepared:
        photos: Sequence[Mapping[str, Any]] = data["photos"]
        left_out: Sequence[Mapping[str, Any]] = data["left_out"]
        return Prepared(
            tuple(CleanPhoto(**photo) for photo in photos),
            tuple(LeftOut(**photo) for photo in left_out),
            tuple(data["notes"]),
        )


def _stat(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    status = path.stat()
    return status.st_size, status.st_mtime_ns
