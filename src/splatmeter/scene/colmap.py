"""A scene reconstructed by COLMAP: <source>/sparse/0 (or <source>/sparse) beside a folder of photos.

Differs from the original: the principal point counts, sub-folders and dots in names are kept, SIMPLE_PINHOLE
is read from text files too, and a broken binary file is reported, not silently replaced by its text twin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from types import ModuleType

import numpy as np

from splatmeter.errors import InputError, MissingFile
from splatmeter.scene import colmap_binary, colmap_text, points_ply
from splatmeter.scene.camera_files import Intrinsics, Pose, pose_from_quaternion
from splatmeter.scene.colmap_binary import (
    NO_PANORAMAS,
    PANORAMA,
    UNDISTORT,
    ColmapCamera,
    ColmapImage,
)
from splatmeter.scene.frames import Frame, check_distinct, check_present, read_bytes, safe_name
from splatmeter.scene.points import PointCloud

LARGEST_SIDE = 2**20
"""No camera has a million pixels in a row; a larger number means a broken file."""


def sparse_folder(source: Path) -> Path:
    """sparse/0 where it exists, as COLMAP's mapper writes it; else sparse, as image_undistorter does; else
    the largest of sparse/1, sparse/2, ..., which are left where somebody removed a model that was too small.
    """
    sparse = source / "sparse"
    if (sparse / "0").is_dir() or _poses_bytes(sparse):
        return sparse / "0" if (sparse / "0").is_dir() else sparse
    others = [folder for folder in _numbered(sparse) if _poses_bytes(folder)]
    return max(others, key=_poses_bytes, default=sparse)


def remark(source: Path) -> str:
    """Which of several models is read, where that is not the first."""
    chosen = sparse_folder(source).name
    usual = chosen in ("0", "sparse")
    return "" if usual else f"Cameras and points are those of sparse/{chosen}: there is no sparse/0."


def _numbered(sparse: Path) -> list[Path]:
    found = [path for path in sparse.glob("*") if path.name.isdecimal() and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name))


def _poses_bytes(folder: Path) -> int:
    """More photos make a larger file; 0 where there is none."""
    files = [folder / f"images{ending}" for ending in (".bin", ".txt")]
    return max((path.stat().st_size for path in files if path.is_file()), default=0)


def read_frames(source: Path, images: str) -> list[Frame]:
    """All posed photos, in the order the test split counts in."""
    sparse = sparse_folder(source)
    binary = (sparse / "images.bin").is_file() and (sparse / "cameras.bin").is_file()
    ending, parser = (".bin", colmap_binary) if binary else (".txt", colmap_text)
    camera_file, image_file = sparse / f"cameras{ending}", sparse / f"images{ending}"
    if not binary and not (camera_file.is_file() and image_file.is_file()):
        raise MissingFile(
            f"{sparse} holds neither cameras.bin and images.bin nor cameras.txt and images.txt. "
            "Run colmap mapper first, or check --source_path."
        )
    model = parse_model(parser, camera_file, read_bytes(camera_file), image_file, read_bytes(image_file))
    folder = source / images
    if not folder.is_dir():
        raise MissingFile(f"{folder} is not a folder of photos. Pass --images with the folder's name.")
    names = [name for name, _, _ in model]
    paths = photo_paths(names, folder)
    check_present(names, paths, image_file, folder)
    return [Frame(name, path, lens, pose) for (name, lens, pose), path in zip(model, paths, strict=True)]


def parse_model(
    parser: ModuleType, camera_file: Path, cameras: bytes, image_file: Path, images: bytes
) -> list[tuple[str, Intrinsics, Pose]]:
    """Names, lenses and poses from the bytes of both files, checked and sorted; the paths are for messages.

    The order is the original's: by name up to the first dot of its last part, as plain text.
    """
    lenses = {
        camera.number: _lens(camera, camera_file) for camera in parser.parse_cameras(cameras, camera_file)
    }
    posed: list[ColmapImage] = parser.parse_images(images, image_file)
    if not posed:
        raise InputError(f"{image_file} names no photos. Re-run colmap mapper.")
    model = [
        (safe_name(image.name, image_file), _lens_of(image, lenses, image_file), _pose_of(image, image_file))
        for image in posed
    ]
    check_distinct([name for name, _, _ in model], image_file)
    return sorted(model, key=lambda entry: _order(entry[0]))


def read_points(source: Path) -> PointCloud:
    """points3D.ply first, so that people can put their own cloud there; then .bin, then .txt."""
    sparse = sparse_folder(source)
    for ending, parser in ((".ply", points_ply), (".bin", colmap_binary), (".txt", colmap_text)):
        path = sparse / f"points3D{ending}"
        if path.is_file():
            return parser.parse_points(read_bytes(path), path)
    raise MissingFile(
        f"{sparse} holds no points3D.ply, .bin or .txt. Run colmap mapper, or add a points3D.ply."
    )


def _order(name: str) -> tuple[str, str]:
    path = PurePosixPath(name)
    stem = path.name.partition(".")[0]
    return str(path.with_name(stem)) if stem else name, name


def photo_paths(names: Sequence[str], folder: Path) -> list[Path]:
    """Where the photos are; one without its sub-folder is found too, as the original flattens them."""
    last_parts = [PurePosixPath(name).name for name in names]
    if len(set(last_parts)) < len(names):
        return [folder / name for name in names]
    pairs = [(folder / name, folder / last) for name, last in zip(names, last_parts, strict=True)]
    return [flat if not full.is_file() and flat.is_file() else full for full, flat in pairs]


def _lens(camera: ColmapCamera, where: Path) -> Intrinsics:
    if camera.model == PANORAMA:
        raise InputError(f"{where}: camera {camera.number} is a panorama ({PANORAMA}). {NO_PANORAMAS}")
    if camera.model not in ("PINHOLE", "SIMPLE_PINHOLE"):
        raise InputError(f"{where}: camera {camera.number} is of the model {camera.model}. {UNDISTORT}")
    if camera.model == "PINHOLE":
        fx, fy, cx, cy = camera.parameters
    else:
        fx, cx, cy = camera.parameters
        fy = fx
    numbers = (fx, fy, cx, cy)
    sizes_fit = all(1 <= side <= LARGEST_SIDE for side in (camera.width, camera.height))
    if not sizes_fit or not all(math.isfinite(v) and abs(v) < 1e9 for v in numbers) or min(fx, fy) < 1e-3:
        raise InputError(
            f"{where}: camera {camera.number} is impossible ({camera.width}x{camera.height} pixels, "
            f"fx {fx:g}, fy {fy:g}, cx {cx:g}, cy {cy:g}). Re-run colmap, or correct the file."
        )
    return Intrinsics(fx, fy, cx, cy, camera.width, camera.height)


def _lens_of(image: ColmapImage, cameras: dict[int, Intrinsics], where: Path) -> Intrinsics:
    if image.camera not in cameras:
        raise InputError(
            f"{where}: the photo {image.name!r} was taken with camera {image.camera}, which cameras"
            f"{where.suffix} does not list. Both files must come from the same reconstruction."
        )
    return cameras[image.camera]


def _pose_of(image: ColmapImage, where: Path) -> Pose:
    values = np.array(image.pose, np.float64)  # [7]
    try:
        return pose_from_quaternion(values[:4], values[4:])
    except ValueError as problem:
        raise InputError(
            f"{where}: the pose of {image.name!r} {problem}. "
            "Remove the photo from the model, or re-run colmap."
        ) from None
