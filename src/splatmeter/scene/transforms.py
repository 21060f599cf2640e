"""What all scene files in JSON share: objects, numbers, matrices and photos, checked one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from splatmeter.errors import InputError
from splatmeter.scene.camera_files import Pose, pose_from_nerf
from splatmeter.scene.frames import check_distinct, check_present, safe_name

_ENDINGS = (".png", "", ".jpg", ".jpeg")
"""What may have to be added to a file_path; NeRF-synthetic leaves out '.png'."""


def found_photos(source: Path, listed: Sequence[str], where: Path) -> tuple[list[str], list[Path]]:
    """Each photo's name with its ending, and its file."""
    names = [
        next((name + ending for ending in _ENDINGS if (source / (name + ending)).is_file()), name)
        for name in listed
    ]
    paths = [source / name for name in names]
    check_present(names, paths, where, source, "Check --source_path, or copy the scene again.")
    check_distinct(names, where)
    return names, paths


def frame_list(content: dict[str, Any], where: Path) -> list[tuple[str, dict[str, Any]]]:
    """Each frame with the name of its photo."""
    listed = content.get("frames")
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{where} has no list of frames. Is it of NeRF-synthetic or nerfstudio?")
    frames = []
    for number, frame in enumerate(listed):
        if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
            raise InputError(f"{where}: frame {number} has no file_path. Correct or remove it.")
        frames.append((safe_name(frame["file_path"], where), frame))
    return frames


def json_object(data: bytes, where: Path) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise InputError(
            f"{where} is not valid JSON ({str(problem)[:80]}). Copy or create it again."
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"{where} does not hold a JSON object. Check that it describes a scene.")
    return content


def number(value: Any, where: Path, what: str) -> float:
    try:
        if isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise InputError(f"{where}: {what} is missing or not a finite number. Correct it.")


def pose_of(matrix: Any, name: str, where: Path) -> Pose:
    try:
        values = np.array(matrix, np.float64)
        if values.shape not in ((4, 4), (3, 4)):
            raise ValueError("is not a 4x4 matrix")
        return pose_from_nerf(values)
    except (ValueError, TypeError, OverflowError, np.linalg.LinAlgError) as problem:
        why = str(problem) if str(problem).startswith(("is not", "has no")) else "is not a 4x4 matrix"
        raise InputError(f"{where}: the pose of {name!r} {why}. Correct or remove it.") from None
