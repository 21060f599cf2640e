"""A scene of a few painted points, small enough to train on in a test: NeRF-synthetic layout."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from splatmeter.backend import Backend
from splatmeter.errors import SplatmeterError

SIDE = 32
ANGLE = 0.8  # horizontal field of view, radians


def write_tiny_scene(
    folder: Path, *, train: int = 6, test: int = 2, points: int = 120, seed: int = 3
) -> Path:
    generator = np.random.default_rng(seed)
    positions = generator.uniform(-0.7, 0.7, (points, 3)).astype(np.float32)  # [N, 3]
    colors = generator.integers(30, 255, (points, 3)).astype(np.uint8)  # [N, 3]
    for split, count, offset in (("train", train, 0.0), ("test", test, 0.3)):
        frames = []
        for index in range(count):
            pose = _looking_at_origin(offset + 2 * math.pi * index / count)
            path = folder / split / f"r_{index}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(_paint(pose, positions, colors)).save(path)
            frames.append({"file_path": f"./{split}/r_{index}", "transform_matrix": pose.tolist()})
        content = {"camera_angle_x": ANGLE, "frames": frames}
        (folder / f"transforms_{split}.json").write_text(json.dumps(content))
    _write_points(folder / "points3d.ply", positions, colors)
    return folder


def _looking_at_origin(turn: float) -> np.ndarray:
    """Camera to world in OpenGL axes, on a circle of radius 3 [4, 4]."""
    position = np.array([3 * math.cos(turn), 3 * math.sin(turn), 1.0])
    back = position / np.linalg.norm(position)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3] = np.stack([right, np.cross(back, right), back, position], axis=1)
    return pose


def _paint(pose: np.ndarray, positions: np.ndarray, colors: np.ndarray) -> np.ndarray:
    local = (positions - pose[:3, 3]) @ pose[:3, :3]  # [N, 3] OpenGL axes
    focal = SIDE / (2 * math.tan(ANGLE / 2))
    across = SIDE / 2 - focal * local[:, 0] / local[:, 2]
    down = SIDE / 2 + focal * local[:, 1] / local[:, 2]
    rows, columns = np.mgrid[:SIDE, :SIDE] + 0.5
    image = np.zeros((SIDE, SIDE, 3))
    for index in np.argsort(local[:, 2]):  # far ones first
        weight = np.exp(-((columns - across[index]) ** 2 + (rows - down[index]) ** 2) / 3)[..., None]
        image = image * (1 - weight) + weight * colors[index]
    return np.concatenate([image, np.full((SIDE, SIDE, 1), 255)], axis=2).astype(np.uint8)


def _write_points(path: Path, positions: np.ndarray, colors: np.ndarray) -> None:
    rows = [f"{x} {y} {z} {r} {g} {b}" for (x, y, z), (r, g, b) in zip(positions, colors, strict=True)]
    header = ["ply", "format ascii 1.0", f"element vertex {len(rows)}"]
    header += [f"property float {axis}" for axis in "xyz"]
    header += [f"property uchar {name}" for name in ("red", "green", "blue")] + ["end_header"]
    path.write_text("\n".join([*header, *rows]) + "\n")


def some_backend() -> Backend:
    """Native where it is built, else the torch twin."""
    from splatmeter.backends import registry

    try:
        return registry.backend("native", 2)
    except SplatmeterError:
        pytest.importorskip("torch", reason="neither the native engine nor torch is here: nothing can train")
        return registry.backend("reference")
