"""What the built-in scenes share: folders that appear whole or not at all, stamps, and the tracer."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from splatmeter.errors import MissingFile, OutputError, UsageError
from splatmeter.files.locks import Hold
from splatmeter.ops import F64, Pinhole
from splatmeter.places import cache_folder

STAMP = "splatmeter-demo.json"
LARGEST_SEED = 2**32 - 1
ABANDONED_AFTER_SECONDS = 3600.0

Progress = Callable[[int, int], None]
"""Called with photos done and photos in all."""

_HELD: dict[Path, Hold] = {}


@dataclass(frozen=True)
class BuiltIn:
    """One built-in scene, by what its stamp says and how many photos it has."""

    called: str
    """As a message names it: this demo scene."""
    stamp: Mapping[str, object]
    photos: int

    def is_in(self, folder: Path) -> bool:
        """Whether the folder bears exactly this stamp and still has all photos."""
        try:
            stamp = json.loads((folder / STAMP).read_text("utf-8"))
            photos = sum(1 for _ in (folder / "images").iterdir())
        except (OSError, ValueError):
            return False
        return stamp == self.stamp and photos == self.photos

    def put_into(self, folder: Path, fill: Callable[[Path], None]) -> Path:
        """Fills `folder` by `fill`, or finds that it already holds exactly this scene.

        The folder appears complete or not at all: it is made under another name beside and then renamed.
        """
        folder = Path(folder)
        if self.is_in(folder):
            return folder
        self._refuse_to_overwrite(folder)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(folder)
            making = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".making", dir=folder.parent))
        except OSError as problem:
            raise OutputError(
                f"{folder} cannot be made ({problem.strerror}). Choose another folder."
            ) from problem
        try:
            fill(making)
            (making / STAMP).write_text(json.dumps(self.stamp, indent=1) + "\n", "utf-8")
            self._put_in_place(making, folder)
        except OSError as problem:
            raise OutputError(
                f"{folder} cannot be written ({problem.strerror}). Choose another folder."
            ) from problem
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return folder

    def cached(self, name: str, fill: Callable[[Path], None]) -> Path:
        """The scene from the cache of this user; made on the first call, and held until this process ends."""
        folder = cache_folder() / name
        if folder.parent not in _HELD:
            _HELD[folder.parent] = Hold(folder.parent)
        if folder.exists() and not self.is_in(folder):
            shutil.rmtree(folder, ignore_errors=True)  # ours, but damaged: someone removed photos
        return self.put_into(folder, fill)

    def _refuse_to_overwrite(self, folder: Path) -> None:
        if folder.is_dir() and not any(folder.iterdir()):
            return
        if folder.exists() or folder.is_symlink():
            raise OutputError(
                f"{folder} exists and is not {self.called}. Choose another folder or remove it."
            )

    def _put_in_place(self, making: Path, folder: Path) -> None:
        making.chmod(0o777 & ~_umask())  # mkdtemp's folders are closed to everybody else
        try:
            making.rename(folder)
        except OSError:
            if not self.is_in(folder):  # else another process was faster, with the same result
                raise


def checked_seed(seed: int) -> int:
    if not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"The seed {seed} is out of range. Choose one from 0 to {LARGEST_SEED}.")
    return seed


def looking_at(eye: F64, target: F64, up: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> F64:
    """World-to-camera rotation [3, 3]; `up` points up in the photo, by default with the horizon level."""
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, up)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])  # [3, 3] rows: x right, y down, z forward


def numbers_of(cameras: list[Pinhole]) -> F64:
    """As the tracer takes them: rotation row by row, translation, fx, fy, cx, cy. # [C, 16]"""
    return np.array(
        [
            [*camera.rotation.ravel(), *camera.translation, camera.fx, camera.fy, camera.cx, camera.cy]
            for camera in cameras
        ],
        np.float64,
    )


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ray_tracer() -> ModuleType:
    try:
        from splatmeter import _scenery  # type: ignore[attr-defined]
    except ImportError as problem:
        raise MissingFile(
            f"The ray tracer of the built-in scenes is not there ({problem}). Install it with: pip install ."
        ) from problem
    return _scenery


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _remove_abandoned(folder: Path) -> None:
    """Half-made folders of earlier attempts at this one that were killed."""
    for left in folder.parent.glob(f".{folder.name}.*.making"):
        if time.time() - _last_change(left) > ABANDONED_AFTER_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def _last_change(making: Path) -> float:
    """A large city is in the making for longer than an hour, and photos are what changes meanwhile."""
    photos = making / "images"
    return max(path.stat().st_mtime for path in (making, photos) if path.exists())
