"""Small scenes written on the spot: cameras on a circle that look at the origin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from splatmeter.ops import F64, Pinhole
from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.points import PointCloud


def looking_inward(angle: float, distance: float = 4.0) -> tuple[F64, F64]:
    """World-to-camera rotation and translation of a camera on a circle around the origin."""
    forward = -np.array([np.cos(angle), 0.0, np.sin(angle)])
    down = np.array([0.0, 1.0, 0.0])
    rotation = np.stack([np.cross(down, forward), down, forward])  # [3, 3]
    return rotation, -rotation @ (-forward * distance)


def ring(count: int, width: int = 40, height: int = 30) -> list[Pinhole]:
    cameras = []
    for index in range(count):
        rotation, translation = looking_inward(2 * np.pi * index / max(count, 1))
        cameras.append(
            Pinhole(rotation, translation, 50.0, 51.0, width / 2 + 1, height / 2 - 1, width, height)
        )
    return cameras


def cube_points(count: int = 60, seed: int = 0) -> PointCloud:
    generator = np.random.default_rng(seed)
    positions = generator.uniform(-0.5, 0.5, (count, 3)).astype(np.float32)
    return PointCloud(positions, generator.integers(0, 256, (count, 3), np.uint8))


def write_photo(path: Path, width: int = 40, height: int = 30, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    ramp = np.arange(width * height * 4, dtype=np.uint32).reshape(height, width, 4).astype(np.uint8)
    Image.fromarray(ramp).convert(mode).save(path)


def write_colmap_scene(folder: Path, names: Sequence[str], cameras: Sequence[Pinhole] | None = None) -> Path:
    """A scene with photos of the cameras' sizes; returns its sparse/0."""
    cameras = ring(len(names)) if cameras is None else cameras
    for name, camera in zip(names, cameras, strict=True):
        write_photo(folder / "images" / name, camera.width, camera.height)
    return write_colmap(folder, cameras, names, cube_points())


def nerf_matrix(angle: float) -> list[list[float]]:
    rotation, translation = looking_inward(angle)
    pose = np.eye(4)
    pose[:3, :3] = rotation.T
    pose[:3, 3] = -rotation.T @ translation
    pose[:3, 1:3] *= -1
    return pose.tolist()


def transforms(names: Sequence[str]) -> dict[str, object]:
    frames = [{"file_path": name, "transform_matrix": nerf_matrix(0.3 * i)} for i, name in enumerate(names)]
    return {"camera_angle_x": 0.7, "frames": frames}


def write_synthetic_scene(folder: Path, train: int = 3, test: int = 2) -> None:
    for split, count in (("train", train), ("test", test)):
        names = [f"./{split}/r_{index}" for index in range(count)]
        for name in names:
            write_photo(folder / f"{name}.png", 20, 16, "RGBA")
        (folder / f"transforms_{split}.json").write_text(json.dumps(transforms(names)))


def multiscale_metadata(photos: int, levels: int = 4) -> dict[str, dict[str, list[object]]]:
    splits: dict[str, dict[str, list[object]]] = {}
    for split in ("train", "val", "test"):
        entries = [(i, j) for i in range(photos) for j in range(levels)]
        splits[split] = {
            "file_path": [f"images_{split}/{i:03d}_d{j}.png" for i, j in entries],
            "cam2world": [nerf_matrix(0.4 * i) for i, _ in entries],
            "focal": [60.0 / 2**j for _, j in entries],
            "width": [32 // 2**j for _, j in entries],
            "height": [32 // 2**j for _, j in entries],
            "label": [j for _, j in entries],
        }
    return splits


def write_multiscale_scene(folder: Path, photos: int = 3) -> None:
    metadata = multiscale_metadata(photos)
    for split in metadata.values():
        for name, width in zip(split["file_path"], split["width"], strict=True):
            assert isinstance(width, int)
            write_photo(folder / str(name), width, width, "RGBA")
    (folder / "metadata.json").write_text(json.dumps(metadata))
