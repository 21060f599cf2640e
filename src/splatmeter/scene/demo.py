"""The built-in scene: a small garden, photographed by our own ray tracer, as an ordinary COLMAP folder.

It exists so that everything works offline and within seconds. It is hard where anti-aliasing matters (brick
joints, tiles, stripes, pickets, thin rods) and easy where splatting is weak (hardly any reflections).
The same seed gives the same bytes on the same machine, with any number of threads.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import MissingFile, OutputError, UsageError
from splatmeter.ops import F64, Pinhole
from splatmeter.places import Hold, cache_folder
from splatmeter.scene.camera import centered, focal_of_angle
from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.points import PointCloud

VERSION = 2
"""Goes up whenever the pictures change, so that older copies in the cache are not mistaken for this one."""
STAMP = "splatmeter-demo.json"
SCENE_NAME = "splatmeter demo garden"
LARGEST_SEED = 2**32 - 1

FIELD_OF_VIEW = math.radians(55)
AZIMUTH_STEP = math.radians(18.75)
"""Eight steps are 150 degrees: the test views (every eighth photo) end up all around the garden."""
TARGET = np.array([0.0, 0.0, 0.66])  # the table top, roughly
NEAREST, FARTHEST = 3.3, 4.55  # from the axis of the garden; inside the fence
LOWEST, HIGHEST = 1.15, 2.9
POSITION_NOISE = 0.003
"""Standard deviation of a point's error, as a share of its distance from the middle plus one."""
ABANDONED_AFTER_SECONDS = 3600.0

Progress = Callable[[int, int], None]
"""Called with photos done and photos in all."""


@dataclass(frozen=True, slots=True)
class DemoSize:
    """How much is made; part of the stamp."""

    photos: int
    width: int
    height: int
    samples: int  # per pixel, a square number
    points: int


FULL = DemoSize(photos=48, width=320, height=240, samples=16, points=4000)
QUICK = DemoSize(photos=20, width=128, height=96, samples=16, points=1500)


def make_demo_scene(
    folder: Path,
    seed: int = 0,
    quick: bool = False,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Fills `folder` with photos and cameras, or finds that it already holds exactly this scene.

    The folder appears complete or not at all: it is made under another name beside and then renamed.
    """
    folder = Path(folder)
    size = QUICK if quick else FULL
    if not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"The seed {seed} is out of range. Choose one from 0 to {LARGEST_SEED}.")
    if is_demo_scene(folder, seed, size):
        return folder
    _refuse_to_overwrite(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        making = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".making", dir=folder.parent))
    except OSError as problem:
        raise OutputError(
            f"{folder} cannot be made ({problem.strerror}). Choose another folder."
        ) from problem
    try:
        _fill(making, seed, size, threads or _usable_cores(), progress)
        _put_in_place(making, folder, seed, size)
    except OSError as problem:
        raise OutputError(
            f"{folder} cannot be written ({problem.strerror}). Choose another folder."
        ) from problem
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return folder


def cached_demo_scene(
    seed: int = 0, quick: bool = False, *, threads: int | None = None, progress: Progress | None = None
) -> Path:
    """The scene from the cache of this user; made on the first call, and held until this process ends."""
    name = f"demo-{VERSION}-seed-{seed}{'-quick' if quick else ''}"
    folder = cache_folder() / name
    if folder.parent not in _HELD:
        _HELD[folder.parent] = Hold(folder.parent)
    if folder.exists() and not is_demo_scene(folder, seed, QUICK if quick else FULL):
        shutil.rmtree(folder, ignore_errors=True)  # ours, but damaged: someone removed photos
    return make_demo_scene(folder, seed, quick, threads=threads, progress=progress)


def is_demo_scene(folder: Path, seed: int, size: DemoSize) -> bool:
    """Whether the folder bears this version's stamp and still has all photos."""
    try:
        stamp = json.loads((folder / STAMP).read_text("utf-8"))
        photos = sum(1 for _ in (folder / "images").iterdir())
    except (OSError, ValueError):
        return False
    return stamp == _stamp(seed, size) and photos == size.photos


_HELD: dict[Path, Hold] = {}
_CACHED = re.compile(r"demo-\d+-seed-\d+(-quick)?")
_INSIDE = {
    "": re.escape(STAMP),
    "images": r"garden_\d{3}\.png",
    "sparse/0": r"(cameras|images|points3D)\.bin",
}
_BEING_MADE = re.compile(r"\.demo-\d+-seed-\d+(-quick)?\.\w+\.making")


def cached_files(folder: Path) -> list[Path] | None:
    """What we put into a folder of the cache, of any version, folders behind their files; None where the
    folder is none of ours. Nothing is reached through a symbolic link, and what others put there is left out.
    """
    if folder.is_symlink() or not folder.is_dir():
        return None
    if not _BEING_MADE.fullmatch(folder.name) and not (_CACHED.fullmatch(folder.name) and _stamped(folder)):
        return None
    found: list[Path] = []
    for place, names in _INSIDE.items():
        where = folder / place
        if any(step.is_symlink() for step in (where, where.parent) if step.is_relative_to(folder)):
            continue
        for path in where.iterdir() if where.is_dir() else ():
            if re.fullmatch(names, path.name) and path.is_file() and not path.is_symlink():
                found.append(path)
    own = [folder / name for name in ("images", "sparse/0", "sparse")]
    return [*sorted(found), *(path for path in own if path.is_dir() and not path.is_symlink())]


def _stamped(folder: Path) -> bool:
    stamp = folder / STAMP
    try:
        told = None if stamp.is_symlink() else json.loads(stamp.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and told.get("scene") == SCENE_NAME


def demo_cameras(seed: int, size: DemoSize) -> list[Pinhole]:
    """On an orbit round the table, each at its own distance and height."""
    lens = centered(focal_of_angle(FIELD_OF_VIEW, size.width), size.width, size.height)
    generator = np.random.default_rng(seed)
    cameras: list[Pinhole] = []
    for number in range(size.photos):
        # Fractions of irrational multiples fill both ranges evenly for any number of photos.
        distance = NEAREST + (FARTHEST - NEAREST) * ((0.5 + number * 0.7548777) % 1)
        height = LOWEST + (HIGHEST - LOWEST) * ((0.5 + number * 0.5698403) % 1)
        azimuth = AZIMUTH_STEP * number + generator.normal(0, 0.03)
        eye = np.array([distance * math.cos(azimuth), distance * math.sin(azimuth), height])
        rotation = looking_at(eye, TARGET + generator.normal(0, 0.06, 3))
        cameras.append(
            Pinhole(rotation, -rotation @ eye, lens.fx, lens.fy, lens.cx, lens.cy, size.width, size.height)
        )
    return cameras


def looking_at(eye: F64, target: F64) -> F64:
    """World-to-camera rotation [3, 3] with the horizon level; the world's z is up."""
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])  # [3, 3] rows: x right, y down, z forward


def photograph(camera: Pinhole, *, samples: int, seed: int, threads: int = 1) -> NDArray[np.uint8]:
    """The garden as this camera sees it, box-filtered. # [H, W, 3]"""
    return _native().demo_photo(_numbers([camera]), camera.width, camera.height, samples, seed, threads)


def surface_points(cameras: list[Pinhole], size: DemoSize, seed: int, threads: int = 1) -> PointCloud:
    """What structure from motion would leave: points where cameras look, a little off, with 8-bit colours."""
    positions, colors = _native().demo_points(
        _numbers(cameras), size.width, size.height, 16, seed, threads, size.points
    )  # [N, 3] exact, [N, 3]
    distance = np.linalg.norm(positions, axis=1, keepdims=True)  # [N, 1]
    noise = np.random.default_rng([seed, 1]).normal(0, POSITION_NOISE, positions.shape)  # [N, 3]
    return PointCloud((positions + noise * (1 + distance)).astype(np.float32), colors)


def _fill(folder: Path, seed: int, size: DemoSize, threads: int, progress: Progress | None) -> None:
    from PIL import Image

    cameras = demo_cameras(seed, size)
    names = [f"garden_{number:03d}.png" for number in range(1, size.photos + 1)]
    (folder / "images").mkdir()
    for done, (camera, name) in enumerate(zip(cameras, names, strict=True), start=1):
        pixels = photograph(camera, samples=size.samples, seed=seed, threads=threads)  # [H, W, 3]
        Image.fromarray(pixels).save(folder / "images" / name)
        if progress is not None:
            progress(done, size.photos)
    write_colmap(folder, cameras, names, surface_points(cameras, size, seed, threads))
    (folder / STAMP).write_text(json.dumps(_stamp(seed, size), indent=1) + "\n", "utf-8")


def _stamp(seed: int, size: DemoSize) -> dict[str, object]:
    return {"scene": SCENE_NAME, "version": VERSION, "seed": seed, **asdict(size)}


def _refuse_to_overwrite(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        raise OutputError(f"{folder} exists and is not this demo scene. Choose another folder or remove it.")


def _put_in_place(making: Path, folder: Path, seed: int, size: DemoSize) -> None:
    making.chmod(0o777 & ~_umask())  # mkdtemp's folders are closed to everybody else
    try:
        making.rename(folder)
    except OSError:
        if not is_demo_scene(folder, seed, size):  # else another process was faster, with the same result
            raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _remove_abandoned(folder: Path) -> None:
    """Half-made folders of earlier attempts at this one that were killed."""
    for left in folder.parent.glob(f".{folder.name}.*.making"):
        if time.time() - left.stat().st_mtime > ABANDONED_AFTER_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def _numbers(cameras: list[Pinhole]) -> F64:
    """As the tracer takes them: rotation row by row, translation, fx, fy, cx, cy. # [C, 16]"""
    return np.array(
        [
            [*camera.rotation.ravel(), *camera.translation, camera.fx, camera.fy, camera.cx, camera.cy]
            for camera in cameras
        ],
        np.float64,
    )


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _native() -> ModuleType:
    try:
        from splatmeter import _native  # type: ignore[attr-defined]
    except ImportError as problem:
        raise MissingFile(
            f"The native part of splatmeter is not there ({problem}). Install it with: pip install ."
        ) from problem
    return _native
