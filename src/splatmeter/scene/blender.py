"""Rendered scenes: NeRF-synthetic (transforms_*.json) and its multi-scale form (metadata.json).

Both name their own test photos. Nothing is ever written into the data set: the random initial cloud, which
the original saves there, is made anew each time and is always the same.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError
from splatmeter.photos.photo import size_of
from splatmeter.scene import points_ply
from splatmeter.scene.camera_files import Pose, centered, focal_of_angle
from splatmeter.scene.frames import Frame, read_bytes, safe_name
from splatmeter.scene.points import PointCloud, random_cloud
from splatmeter.scene.transforms import found_photos, frame_list, json_object, number, pose_of

_LEVEL = re.compile(r"_d(\d{1,2})\.\w+$")


def read_synthetic(source: Path, split: str) -> list[Frame]:
    """One of transforms_train.json and transforms_test.json, in the order of the file."""
    where = source / f"transforms_{split}.json"
    angle, listed = parse_transforms(read_bytes(where), where)
    names, paths = found_photos(source, [name for name, _ in listed], where)
    frames = []
    for name, path, (_, pose) in zip(names, paths, listed, strict=True):
        width, height = size_of(path)
        frames.append(Frame(name, path, centered(focal_of_angle(angle, width), width, height), pose))
    return frames


def read_multiscale(source: Path, split: str, all_levels: bool) -> list[Frame]:
    """Train frames of the full size only, unless all levels are wanted; test frames always of all."""
    where = source / "metadata.json"
    listed = parse_metadata(read_bytes(where), split, where)
    if split == "train" and not all_levels:
        listed = [entry for entry in listed if entry[0].endswith("d0.png")]
        if not listed:
            raise InputError(f"{where} lists no full-size photos (*_d0.png) to train on. Pass --load_allres.")
    names, paths = found_photos(source, [name for name, _, _ in listed], where)
    frames = []
    for name, path, (_, focal, pose) in zip(names, paths, listed, strict=True):
        level = _LEVEL.search(name)
        intrinsics = centered(focal, *size_of(path))
        frames.append(Frame(name, path, intrinsics, pose, level=int(level[1]) if level else 0))
    return frames


def read_points(source: Path) -> PointCloud:
    """points3d.ply (with a small d) where somebody put one; else the random cloud."""
    path = source / "points3d.ply"
    return points_ply.parse_points(read_bytes(path), path) if path.is_file() else random_cloud()


def parse_transforms(data: bytes, where: Path) -> tuple[float, list[tuple[str, Pose]]]:
    """The horizontal field of view (radians) and each frame's name and pose."""
    content = json_object(data, where)
    angle = number(content.get("camera_angle_x"), where, "camera_angle_x")
    if not 1e-4 < angle < math.pi - 1e-4:
        raise InputError(f"{where}: camera_angle_x is {angle:g}, not an angle between 0 and pi. Correct it.")
    listed = frame_list(content, where)
    return angle, [(name, pose_of(frame.get("transform_matrix"), name, where)) for name, frame in listed]


def parse_metadata(data: bytes, split: str, where: Path) -> list[tuple[str, float, Pose]]:
    """Name, focal length in pixels and pose of each photo of a split."""
    content = json_object(data, where).get(split)
    if not isinstance(content, dict):
        raise InputError(f"{where} has no split {split!r}. Create the scene again.")
    columns: list[Any] = [content.get(key) for key in ("file_path", "focal", "cam2world")]
    if not all(isinstance(column, list) and column for column in columns):
        raise InputError(
            f"{where}: the split {split!r} lacks file_path, focal or cam2world. Create it again."
        )
    paths, focals, matrices = columns
    if not len(paths) == len(focals) == len(matrices):
        raise InputError(
            f"{where}: the lists of the split {split!r} differ in length. Create the scene again."
        )
    entries = []
    for path, value, matrix in zip(paths, focals, matrices, strict=True):
        if not isinstance(path, str):
            raise InputError(
                f"{where}: the split {split!r} has a file_path that is no text. Create it again."
            )
        name, focal = safe_name(path, where), number(value, where, f"the focal length of {path[:80]!r}")
        if not 1e-3 < focal < 1e9:
            raise InputError(f"{where}: the focal length of {name!r} is {focal:g}. Correct it.")
        entries.append((name, focal, pose_of(matrix, name, where)))
    return entries
