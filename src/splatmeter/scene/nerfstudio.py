"""A scene as nerfstudio and instant-ngp write it: transforms.json beside its photos.

Poses are those of the file (x right, y up, z backward), and a point cloud that it names lies in the same
world: `applied_transform` only tells how that came about, so it matters for COLMAP's own points alone. Every
frame may have a lens of its own; what it does not say the file says for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from splatmeter.errors import InputError, MissingFile
from splatmeter.photos.photo import size_of
from splatmeter.scene import colmap_binary, points_ply
from splatmeter.scene.camera_files import Intrinsics, Pose, focal_of_angle, turned
from splatmeter.scene.colmap_binary import NO_PANORAMAS, PANORAMA
from splatmeter.scene.frames import Frame, read_bytes, safe_name
from splatmeter.scene.points import PointCloud, checked_cloud, random_cloud
from splatmeter.scene.transforms import found_photos, frame_list, json_object, number, pose_of

FILE = "transforms.json"
PERSPECTIVE = ("OPENCV", "PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL", "PERSPECTIVE", "FULL_OPENCV")
FISHEYE = ("OPENCV_FISHEYE", "FISHEYE")
DISTORTION = ("k1", "k2", "p1", "p2", "k3", "k4")
LARGEST_SIDE = 2**20
UNDISTORT = "Undistort the photos with: splatmeter scene undistort <this scene> <new scene>"


@dataclass(frozen=True, slots=True, eq=False)
class Lens:
    """As the file says it; what it leaves open depends on the photo's size."""

    model: str
    fx: float | None
    fy: float | None
    angle: float | None
    cx: float | None
    cy: float | None
    width: int | None
    height: int | None
    distortion: tuple[float, ...]
    """In the order of DISTORTION."""

    @property
    def distorted(self) -> bool:
        return self.model in FISHEYE or any(self.distortion)

    def at(self, size: tuple[int, int]) -> Intrinsics:
        """For a photo of this size, where the file does not tell the size it means."""
        width, height = self.width or size[0], self.height or size[1]
        fx = self.fx or focal_of_angle(self.angle or 1.0, width)
        cx = width / 2 if self.cx is None else self.cx
        cy = height / 2 if self.cy is None else self.cy
        return Intrinsics(fx, self.fy or fx, cx, cy, width, height)


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    name: str
    lens: Lens
    pose: Pose
    mask: str | None
    split: str
    """'train', 'test', or '' where the file does not divide its photos."""


def read_frames(source: Path, images: str, masks: str | None) -> tuple[list[Frame], list[str]]:
    """By name, and of each the split that the file puts it in. Masks that the file names count unless others
    are asked for."""
    where = source / FILE
    listed = parse(read_bytes(where), where)
    for posed in listed:
        if posed.lens.distorted:
            raise InputError(f"{where}: the lens of {posed.name!r} is distorted. {UNDISTORT}")
    names, paths = photos_of(listed, source, images)
    mask_paths = _masks(listed, source) if masks is None else [None] * len(listed)
    frames = [
        Frame(name, path, posed.lens.at(size_of(path)), posed.pose, mask)
        for name, path, posed, mask in zip(names, paths, listed, mask_paths, strict=True)
    ]
    order = sorted(range(len(frames)), key=lambda index: frames[index].name)
    return [frames[index] for index in order], [listed[index].split for index in order]


def parse(data: bytes, where: Path) -> list[Posed]:
    content = json_object(data, where)
    splits = _splits(content, where)
    return [
        Posed(
            name,
            _lens(frame, content, name, where),
            pose_of(frame.get("transform_matrix"), name, where),
            _mask(frame, where),
            splits.get(name, ""),
        )
        for name, frame in frame_list(content, where)
    ]


def photos_of(listed: Sequence[Posed], source: Path, images: str) -> tuple[list[str], list[Path]]:
    """Where they are; --images names another folder of the same photos, such as images_2."""
    names = [posed.name for posed in listed]
    if images != "images":
        names = [f"{images}/{name.removeprefix('images/')}" for name in names]
    return found_photos(source, names, source / FILE)


def read_points(source: Path, center: Any, extent: float) -> tuple[PointCloud, str]:
    """The cloud the file names, else COLMAP's beside it, else random points where the cameras look; and a
    remark on them."""
    where = source / FILE
    content = json_object(read_bytes(where), where)
    named = content.get("ply_file_path")
    if isinstance(named, str):
        path = source / safe_name(named, where)
        if not path.is_file():
            raise MissingFile(f"{where} names the points {named}, which are not there. Restore the file.")
        return points_ply.parse_points(read_bytes(path), path), ""
    colmap = source / "colmap" / "sparse" / "0" / "points3D.bin"
    if colmap.is_file() and "applied_transform" in content:
        cloud = colmap_binary.parse_points(read_bytes(colmap), colmap)
        moved = _applied(cloud.positions, content["applied_transform"], where)  # [N, 3]
        return checked_cloud(moved, cloud.colors, colmap), ""
    cloud = random_cloud(half_side=extent)
    moved = (cloud.positions + center).astype(np.float32)  # [N, 3]
    return PointCloud(
        moved, cloud.colors
    ), f"{where} names no points: {cloud.count} random ones are the start."


def _applied(positions: Any, matrix: Any, where: Path) -> Any:
    try:
        values = np.array(matrix, np.float64)
        if values.shape not in ((3, 4), (4, 4)) or not np.isfinite(values).all():
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{where}: applied_transform is not a 3x4 matrix. Correct or remove it.") from None
    return turned(positions, values[:3, :3]) + values[:3, 3]


def _splits(content: Mapping[str, Any], where: Path) -> dict[str, str]:
    """Lists of names, where there are any; photos for validation are for tests here."""
    found: dict[str, str] = {}
    for key, split in (("train_filenames", "train"), ("val_filenames", "test"), ("test_filenames", "test")):
        names = content.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{where}: {key} is not a list of names. Correct or remove it.")
        found |= {safe_name(name, where): split for name in names}
    return found


def _lens(frame: Mapping[str, Any], content: Mapping[str, Any], name: str, where: Path) -> Lens:
    def said(key: str) -> float | None:
        value = frame.get(key, content.get(key))
        return None if value is None else number(value, where, f"{key} of {name!r}")

    model = frame.get("camera_model", content.get("camera_model", "OPENCV"))
    if model == PANORAMA:
        raise InputError(f"{where}: {name!r} is a panorama ({PANORAMA}). {NO_PANORAMAS}")
    if model not in (*PERSPECTIVE, *FISHEYE):
        known = ", ".join((*PERSPECTIVE, *FISHEYE))
        raise InputError(f"{where}: camera_model is {str(model)[:40]!r}, not one of {known}. Correct it.")
    sides = [said("w"), said("h")]
    width, height = (None if side is None else round(side) for side in sides)
    distortion = tuple(said(key) or 0.0 for key in DISTORTION)
    lens = Lens(
        model=model,
        fx=said("fl_x"),
        fy=said("fl_y"),
        angle=said("camera_angle_x"),
        cx=said("cx"),
        cy=said("cy"),
        width=width,
        height=height,
        distortion=distortion,
    )
    _check(lens, name, where)
    return lens


def _check(lens: Lens, name: str, where: Path) -> None:
    if lens.fx is None and lens.angle is None:
        raise InputError(f"{where} tells neither fl_x nor camera_angle_x of {name!r}. Correct it.")
    lengths = [value for value in (lens.fx, lens.fy) if value is not None]
    sides = [side for side in (lens.width, lens.height) if side is not None]
    angle_fits = lens.fx is not None or 1e-4 < (lens.angle or 0) < np.pi - 1e-4
    small = all(abs(value) < 1e9 for value in (*lengths, lens.cx or 0.0, lens.cy or 0.0))
    if not (
        angle_fits and small and min(lengths, default=1) > 1e-3 and all(1 <= s <= LARGEST_SIDE for s in sides)
    ):
        raise InputError(f"{where}: the lens of {name!r} is impossible. Correct fl_x, fl_y, cx, cy, w and h.")


def _mask(frame: Mapping[str, Any], where: Path) -> str | None:
    named = frame.get("mask_path")
    return safe_name(named, where) if isinstance(named, str) else None


def _masks(listed: Sequence[Posed], source: Path) -> list[Path | None]:
    """All or none."""
    found = [None if posed.mask is None else source / posed.mask for posed in listed]
    missing = [
        posed.name for posed, path in zip(listed, found, strict=True) if not path or not path.is_file()
    ]
    if all(path is None for path in found):
        return found
    if missing:
        raise MissingFile(
            f"{len(missing)} of {len(listed)} photos of {source / FILE} have no mask (first: {missing[0]}). "
            "Add the masks, or pass --masks none to train without them."
        )
    return found
