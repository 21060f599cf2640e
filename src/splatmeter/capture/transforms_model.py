"""A scene with a transforms.json as COLMAP's text files say it, for the library that undistorts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splatmeter.errors import InputError
from splatmeter.photos.photo import size_of
from splatmeter.scene import nerfstudio
from splatmeter.scene.camera_files import Intrinsics, looked_at, pinhole, quaternion_of_rotation
from splatmeter.scene.colmap_binary import ColmapCamera, ColmapImage
from splatmeter.scene.frames import read_bytes
from splatmeter.scene.nerfstudio import FISHEYE, Lens
from splatmeter.scene.points import PointCloud


@dataclass(frozen=True, slots=True)
class TransformsModel:
    cameras: dict[int, ColmapCamera]
    images: list[ColmapImage]
    paths: list[Path]
    masks: list[Path | None]
    points: PointCloud

    @property
    def distorted(self) -> bool:
        return any(
            any(camera.parameters[4:]) or "FISHEYE" in camera.model for camera in self.cameras.values()
        )

    def write(self, folder: Path) -> None:
        """cameras.txt, images.txt and points3D.txt; photos go by their numbers."""
        folder.mkdir(parents=True)
        lenses = [
            f"{c.number} {c.model} {c.width} {c.height} {' '.join(map(repr, c.parameters))}"
            for c in self.cameras.values()
        ]
        poses = [f"{i.number} {' '.join(map(repr, i.pose))} {i.camera} {i.number}\n" for i in self.images]
        pairs = zip(self.points.positions.tolist(), self.points.colors.tolist(), strict=True)
        points = [f"{n} {x!r} {y!r} {z!r} {r} {g} {b} 0" for n, ((x, y, z), (r, g, b)) in enumerate(pairs, 1)]
        for name, rows in (("cameras", lenses), ("images", poses), ("points3D", points)):
            (folder / f"{name}.txt").write_text("\n".join(rows) + "\n", "utf-8")


def read_transforms(source: Path, images: str) -> TransformsModel:
    where = source / nerfstudio.FILE
    listed = nerfstudio.parse(read_bytes(where), where)
    names, paths = nerfstudio.photos_of(listed, source, images)
    lenses: dict[tuple[object, ...], ColmapCamera] = {}
    posed: list[ColmapImage] = []
    views = []
    for number, (entry, name, path) in enumerate(zip(listed, names, paths, strict=True), start=1):
        lens = entry.lens.at(size_of(path))
        model, parameters = _model(entry.lens, lens, name, where)
        key = (model, parameters, lens.width, lens.height)
        camera = lenses.setdefault(
            key, ColmapCamera(len(lenses) + 1, model, lens.width, lens.height, parameters)
        )
        turned = quaternion_of_rotation(entry.pose.rotation).tolist()
        pose = (*turned, *entry.pose.translation.tolist())
        posed.append(ColmapImage(name, camera.number, pose, number))
        views.append(pinhole(lens, entry.pose, lens.width, lens.height))
    centers = np.stack([view.position for view in views])  # [N, 3]
    extent = float(np.linalg.norm(centers - centers.mean(axis=0), axis=1).max())
    points, _ = nerfstudio.read_points(source, looked_at(views), max(extent, 1e-6))
    masks = [None if entry.mask is None else source / entry.mask for entry in listed]
    return TransformsModel({c.number: c for c in lenses.values()}, posed, paths, masks, points)


def _model(said: Lens, lens: Intrinsics, name: str, where: Path) -> tuple[str, tuple[float, ...]]:
    """COLMAP's name and parameters of the same lens."""
    k1, k2, p1, p2, k3, k4 = said.distortion
    pinhole_part = (lens.fx, lens.fy, lens.cx, lens.cy)
    if said.model in FISHEYE:
        return "OPENCV_FISHEYE", (*pinhole_part, k1, k2, k3, k4)
    if k4:
        raise InputError(
            f"{where}: the lens of {name!r} has a k4, which cannot be undistorted here. "
            "Undistort the photos with the program that made the file."
        )
    if k3:
        return "FULL_OPENCV", (*pinhole_part, k1, k2, p1, p2, k3, 0.0, 0.0, 0.0)
    return "OPENCV", (*pinhole_part, k1, k2, p1, p2)
