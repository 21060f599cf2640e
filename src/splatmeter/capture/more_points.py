"""More points for a scene whose photos have places already: by comparing pixels instead of features.

Features are found at corners and spots, and in few photos they leave most of a scene without points; but
Gaussians begin at points. Places stay as they are. What is found for a photo lies in a file of its own, so
that a stopped run goes on.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from splatmeter.capture.beside import beside_each
from splatmeter.capture.engine import Tell
from splatmeter.capture.fusion import Fusion
from splatmeter.capture.sweep import PLANES, Grey, Near, refine, sweep
from splatmeter.ops import F64, Pinhole
from splatmeter.scene.camera_files import pinhole
from splatmeter.scene.colmap import read_frames
from splatmeter.scene.colmap_binary import with_more_points
from splatmeter.scene.frames import Frame, read_bytes
from splatmeter.scene.masks import files_by_name, mask_named
from splatmeter.scene.points import PointCloud
from splatmeter.scene.tracks import Tracks, by_photo, read_tracks

ENOUGH = 30_000
"""Points by features with which a scene is left as it is."""
MOST_PHOTOS = 100
"""Looked at, evenly among more: neighbours of many show almost the same, and time is bounded."""
MOST_POINTS = 150_000
"""Added at most; of more, some are drawn by lot."""
COARSE, FINE = 128, 256
"""Pixels of the longer side: where distances are sought, and where they are refined."""
FEWEST_SEEN = 20
"""Points by features without which nobody knows how far a photo's things may be away."""


@dataclass(frozen=True, slots=True, eq=False)
class _Looked:
    """The photos that are looked at, with what features say about them."""

    frames: Sequence[Frame]
    beside: Sequence[Sequence[int]]
    positions: Sequence[F64]
    """Where the points lie that each photo sees."""
    maps: Path


def add_points(scene: Path, work: Path, threads: int, seed: int, tell: Tell) -> int:
    """Writes them into the scene's points3D.bin, and gives their number; goes on with what is in `work`."""
    target, before = scene / "sparse" / "0" / "points3D.bin", work / "points3D.bin"
    work.mkdir(exist_ok=True)
    if not before.is_file():  # points must not be added to those of a run that was killed just here
        shutil.copyfile(target, before.with_suffix(".new"))
        before.with_suffix(".new").replace(before)
    shutil.copyfile(before, target)
    found = read_tracks(scene)
    if found is None or len(found[0].positions) >= ENOUGH:
        return 0
    looked = _looked_at(scene, *found, work)
    _search(looked, threads, tell)
    points = _thinned(_fused(looked, scene / "masks"), seed)
    if points.count:
        data = with_more_points(read_bytes(before), before, points)
        beside = target.with_suffix(".new")
        beside.write_bytes(data)
        beside.replace(target)
    return points.count


def _looked_at(scene: Path, tracks: Tracks, named: dict[int, str], work: Path) -> _Looked:
    frames = read_frames(scene, "images")
    step = -(-len(frames) // MOST_PHOTOS)
    frames = frames[::step]
    seen = by_photo(tracks, named, [frame.name for frame in frames])
    beside = beside_each([_camera(frame, FINE) for frame in frames], tracks.positions, seen)
    return _Looked(frames, beside, [tracks.positions[rows] for rows in seen], work)


def _search(looked: _Looked, threads: int, tell: Tell) -> None:
    """A map for every photo that has none yet."""
    total = len(looked.frames)
    left = [place for place in range(total) if not _map_file(looked.maps, place).is_file()]
    tell(total - len(left), total)
    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(_save_map, looked, place) for place in left]
        try:
            for done, future in enumerate(as_completed(running), start=total - len(left) + 1):
                future.result()
                tell(done, total)
        finally:
            pool.shutdown(cancel_futures=True)


def _save_map(looked: _Looked, place: int) -> None:
    near, path = _map(looked, place), _map_file(looked.maps, place)
    with path.with_suffix(".new").open("wb") as file:
        np.savez(file, inverse=near.inverse, score=near.score)
    path.with_suffix(".new").replace(path)


def _map_file(folder: Path, place: int) -> Path:
    return folder / f"{place}.npz"


def _map(looked: _Looked, place: int) -> Near:
    frame, others = looked.frames[place], [looked.frames[other] for other in looked.beside[place]]
    ahead = looked.positions[place] @ frame.pose.rotation[2] + frame.pose.translation[2]
    ahead = ahead[ahead > 0]
    photo = _grey(frame, FINE)
    if not others or len(ahead) < FEWEST_SEEN:
        return Near(np.zeros_like(photo.pixels), np.full_like(photo.pixels, -1))
    nearest, farthest = 1.2 / np.percentile(ahead, 1), 0.5 / np.percentile(ahead, 99)
    coarse = sweep(_grey(frame, COARSE), [_grey(other, COARSE) for other in others], nearest, farthest)
    height, width = photo.pixels.shape
    finer = Image.fromarray(coarse.inverse).resize((width, height), Image.Resampling.NEAREST)
    step = (nearest - farthest) / (PLANES - 1)
    return refine(photo, [_grey(other, FINE) for other in others], np.asarray(finer), step)


def _fused(looked: _Looked, masks: Path) -> PointCloud:
    @lru_cache(maxsize=64)
    def near(place: int) -> Near:
        with np.load(_map_file(looked.maps, place)) as file:
            return Near(file["inverse"], file["score"])

    found = files_by_name(masks) if masks.is_dir() else {}
    fusion = Fusion([_camera(frame, FINE) for frame in looked.frames], looked.beside, near)
    positions, colors = [np.empty((0, 3), np.float32)], [np.empty((0, 3), np.uint8)]
    for place, frame in enumerate(looked.frames):
        world, pixels = fusion.points(place, _shown(mask_named(frame.name, found), frame))
        positions.append(world)
        colors.append(_small(frame.path, "RGB", _camera(frame, FINE))[pixels[:, 0], pixels[:, 1]])
    return PointCloud(np.concatenate(positions), np.concatenate(colors))


def _thinned(points: PointCloud, seed: int) -> PointCloud:
    if points.count <= MOST_POINTS:
        return points
    chosen = np.sort(np.random.default_rng(seed).choice(points.count, MOST_POINTS, replace=False))
    return PointCloud(points.positions[chosen], points.colors[chosen])


def _shown(mask: Path | None, frame: Frame) -> NDArray[np.bool_]:
    """Where the photo shows the object [h, w]: everywhere, if it has no mask."""
    camera = _camera(frame, FINE)
    if mask is None:
        return np.ones((camera.height, camera.width), np.bool_)
    return _small(mask, "L", camera) > 250


def _grey(frame: Frame, longer: int) -> Grey:
    camera = _camera(frame, longer)
    return Grey(camera, _small(frame.path, "L", camera).astype(np.float32))


def _small(path: Path, mode: str, camera: Pinhole) -> NDArray[np.uint8]:
    with Image.open(path) as image:
        shrunk = image.convert(mode).resize((camera.width, camera.height), Image.Resampling.BOX)
        return np.asarray(shrunk, np.uint8)


def _camera(frame: Frame, longer: int) -> Pinhole:
    lens = frame.intrinsics
    share = longer / max(lens.width, lens.height)
    size = max(1, round(lens.width * share)), max(1, round(lens.height * share))
    return pinhole(lens, frame.pose, *size)
