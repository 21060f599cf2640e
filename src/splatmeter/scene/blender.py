"""Rendered scenes: NeRF-synthetic (transforms_*.json) and its multi-scale form (metadata.json).

Both name their own test photos. Nothing is ever written into the data set: the random initial cloud, which
the original saves there, is made anew each time and is always the same.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from splatmeter.errors import InputError
from splatmeter.photos.photo import size_of
from splatmeter.scene import points_ply
from splatmeter.scene.camera import Pose, centered, focal_of_angle, pose_from_nerf
from splatmeter.scene.frames import Frame, check_distinct, check_present, read_bytes, safe_name
from splatmeter.scene.points import PointCloud, random_cloud

_ENDINGS = (".png", "", ".jpg", ".jpeg")
"""What may have to be added to a file_path; NeRF-synthetic leaves out '.png'."""
_LEVEL = re.compile(r"_d(\d{1,2})\.\w+$")


def read_synthetic(source: Path, split: str) -> list[Frame]:
    """One of transforms_train.json and transforms_test.json, in the order of the file."""
    where = source / f"transforms_{split}.json"
    angle, listed = parse_transforms(read_bytes(where), where)
    names, paths = _found(source, [name for name, _ in listed], where)
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
    names, paths = _found(source, [name for name, _, _ in listed], where)
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
    content = _json_object(data, where)
    angle = _number(content.get("camera_angle_x"), where, "camera_angle_x")
    if not 1e-4 < angle < math.pi - 1e-4:
        raise InputError(f"{where}: camera_angle_x is {angle:g}, not an angle between 0 and pi. Correct it.")
    listed = content.get("frames")
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{where} has no list of frames. Check that it is a NeRF-synthetic file.")
    frames = []
    for number, frame in enumerate(listed):
        if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
            raise InputError(f"{where}: frame {number} has no file_path. Correct or remove it.")
        name = safe_name(frame["file_path"], where)
        frames.append((name, _pose(frame.get("transform_matrix"), name, where)))
    return angle, frames


def parse_metadata(data: bytes, split: str, where: Path) -> list[tuple[str, float, Pose]]:
    """Name, focal length in pixels and pose of each photo of a split."""
    content = _json_object(data, where).get(split)
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
        name, focal = safe_name(path, where), _number(value, where, f"the focal length of {path[:80]!r}")
        if not 1e-3 < focal < 1e9:
            raise InputError(f"{where}: the focal length of {name!r} is {focal:g}. Correct it.")
        entries.append((name, focal, _pose(matrix, name, where)))
    return entries


def _found(source: Path, listed: Sequence[str], where: Path) -> tuple[list[str], list[Path]]:
    """Each photo's name with its ending, and its file."""
    names = [
        next((name + ending for ending in _ENDINGS if (source / (name + ending)).is_file()), name)
        for name in listed
    ]
    paths = [source / name for name in names]
    check_present(names, paths, where, source, "Check --source_path, or copy the scene again.")
    check_distinct(names, where)
    return names, paths


def _json_object(data: bytes, where: Path) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise InputError(
            f"{where} is not valid JSON ({str(problem)[:80]}). Copy or create it again."
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"{where} does not hold a JSON object. Check that it describes a scene.")
    return content


def _number(value: Any, where: Path, what: str) -> float:
    try:
        if isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise InputError(f"{where}: {what} is missing or not a finite number. Correct it.")


def _pose(matrix: Any, name: str, where: Path) -> Pose:
    try:
        values = np.array(matrix, np.float64)
        if values.shape not in ((4, 4), (3, 4)):
            raise ValueError("is not a 4x4 matrix")
        return pose_from_nerf(values)
    except (ValueError, TypeError, OverflowError, np.linalg.LinAlgError) as problem:
        why = str(problem) if str(problem).startswith(("is not", "has no")) else "is not a 4x4 matrix"
        raise InputError(f"{where}: the pose of {name!r} {why}. Correct or remove it.") from None
