"""A scene as the trainer sees it: views to learn from, views to be judged by, points to start from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splatmeter.errors import InputError, MissingFile
from splatmeter.ops import F64, Pinhole
from splatmeter.photos.photo import Photo, same_shape, size_of
from splatmeter.scene import blender, block, colmap, nerfstudio
from splatmeter.scene.camera_files import looked_at, pinhole, upward
from splatmeter.scene.frames import Frame, check_distinct
from splatmeter.scene.masks import with_masks
from splatmeter.scene.points import PointCloud, without_impossible
from splatmeter.scene.resolution import remarks_on, target_size
from splatmeter.scene.sight import pixels_per_unit
from splatmeter.scene.split import held_out

__all__ = ["PointCloud", "Scene", "SceneOptions", "View", "fingerprint", "load_scene"]

SMALLEST_SIDE = 2
"""Pixels; below that a photo has no structure to learn."""
FEWEST_POINTS = 4
"""A Gaussian's first size comes from its three nearest neighbours."""
EXTENT_MARGIN = 1.1
BLOCK = "block"


@dataclass(frozen=True, slots=True)
class View:
    """A photo and the camera that took it, both at the size they are trained at."""

    name: str
    """Path within the photo folder, ending included; unique within a scene."""
    camera: Pinhole
    """Where it was taken from, at the photo's size."""
    photo: Photo
    """Where its pixels lie; they are decoded when they are needed."""
    level: int = 0
    """In a multi-scale data set: 0 is full size, each further level half the one before."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scene:
    """Photos with their cameras, some of them held out for judging, and points to start from."""

    source: Path
    """Its folder."""
    kind: str
    """'colmap', 'blender', 'multiscale' or 'nerfstudio'."""
    train: tuple[View, ...]
    """Views to learn from, by name."""
    test: tuple[View, ...]
    """Views to be judged by; empty where none were held out."""
    points: PointCloud
    """To start from: positions [P, 3] and 8-bit colours [P, 3]."""
    extent: float
    """1.1 times the largest distance of a training camera from their mean: the unit of rates and sizes."""

    remarks: tuple[str, ...] = ()
    """About how it was read."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know, one sentence each, to be passed on as warnings."""
        return (*self.remarks, *self.points.notes)

    @property
    def pixels_per_unit(self) -> float:
        """Pixels that one unit of length takes across a training photo, where the points are."""
        return pixels_per_unit(
            self.points.positions.astype(np.float64), [view.camera for view in self.train]
        )

    @property
    def up(self) -> F64:
        """Which way is up in the world, as far as the training cameras tell: [3], of length 1."""
        return upward([view.camera for view in self.train])

    @property
    def focus(self) -> F64:
        """The point that the training cameras look at, as far as they look at one: [3], in the world."""
        return looked_at([view.camera for view in self.train])

    def __repr__(self) -> str:
        views = f"{len(self.train)} training and {len(self.test)} test views"
        return f"Scene({self.source.name}: {self.kind}, {views}, {self.points.count} points)"

    @property
    def photo_sizes(self) -> tuple[tuple[int, int], ...]:
        """Sizes of the training photos, each once, the largest first."""
        sizes = {(view.camera.width, view.camera.height) for view in self.train}
        return tuple(sorted(sizes, key=lambda size: (size[0] * size[1], size), reverse=True))


@dataclass(frozen=True, slots=True)
class SceneOptions:
    source: Path
    """Folder of the scene: COLMAP (sparse/ and photos), NeRF-synthetic, multi-scale or nerfstudio."""
    images: str = "images"
    """Folder of the photos within a COLMAP scene, for example images_4."""
    resolution: int = -1
    """Divisor 1 to 64, or a width in pixels; -1 shrinks photos wider than 1600 pixels to that width."""
    eval: bool = False
    """Keep test views out of training; without it all views are trained on."""
    test_every: int = 8
    """With eval, every n-th photo by name is a test view (COLMAP scenes)."""
    test_count: int | None = None
    """With eval, this many evenly spread test views instead (COLMAP scenes)."""
    white_background: bool = False
    """Lay transparent photos over white instead of black."""
    load_allres: bool = False
    """Train on all levels of a multi-scale scene instead of the full size only."""
    masks: str | None = None
    """Folder of masks (255 = object); by default masks/ where it exists, 'none' for no masks."""


def load_scene(options: SceneOptions) -> Scene:
    """Reads everything but the pixels."""
    source = Path(options.source).expanduser().absolute()
    whole = source if detect(source) != BLOCK else block.read(source).whole()
    kind = detect(whole)
    train_frames, test_frames = _FRAMES[kind](whole, options) if whole == source else _part(source, options)
    if not train_frames:
        raise InputError(
            f"The split of {source} leaves no view to train on ({len(test_frames)} are for testing). "
            "Use a larger --test_every or a smaller --test_count."
        )
    check_distinct([frame.name for frame in [*train_frames, *test_frames]], source)
    train = tuple(_view(frame, options) for frame in train_frames)
    test = tuple(_view(frame, options) for frame in test_frames)
    cameras = [view.camera for view in train]
    extent = _extent(cameras, source)
    points, remark = _points(kind if whole == source else BLOCK, source, cameras, extent)
    if points.count < FEWEST_POINTS:
        raise InputError(
            f"{source} has {points.count} points to start from; at least {FEWEST_POINTS} are needed."
        )
    remarks = (remark, *remarks_on(options.resolution, size_of(train_frames[0].path)))
    return Scene(source, kind, train, test, points, extent, tuple(filter(None, remarks)))


def detect(source: Path) -> str:
    """The first that matches wins: block.json, sparse/, transforms_train.json, metadata.json, and
    transforms.json."""
    if not source.is_dir():
        raise MissingFile(f"{source} is not a folder. Check --source_path.")
    if (source / block.FILE).is_file():
        return BLOCK
    if (source / "sparse").is_dir():
        return "colmap"
    if (source / "transforms_train.json").is_file():
        return "blender"
    if (source / "metadata.json").is_file():
        return "multiscale"
    if (source / nerfstudio.FILE).is_file():
        return "nerfstudio"
    raise InputError(
        f"{source} is not a scene: it has no sparse/ folder (COLMAP), no transforms_train.json "
        "(NeRF-synthetic), no metadata.json (multi-scale) and no transforms.json (nerfstudio). "
        "Check --source_path."
    )


def fingerprint(scene: Scene) -> str:
    """SHA-256 over names, cameras and points: equal for runs that train on the same scene and split."""
    digest = hashlib.sha256()
    for label, views in (("train", scene.train), ("test", scene.test)):
        digest.update(f"{label} {len(views)}\n".encode())
        for view in views:
            camera = view.camera
            lens = (camera.fx, camera.fy, camera.cx, camera.cy, float(camera.width), float(camera.height))
            digest.update(view.name.encode("utf-8", "surrogatepass") + b"\0")
            for values in (lens, camera.rotation, camera.translation):
                digest.update(np.ascontiguousarray(values, "<f8").tobytes())
    digest.update(np.ascontiguousarray(scene.points.positions, "<f4").tobytes())
    digest.update(np.ascontiguousarray(scene.points.colors).tobytes())
    return digest.hexdigest()


_Split = tuple[Sequence[Frame], Sequence[Frame]]


def _colmap_frames(source: Path, options: SceneOptions) -> _Split:
    return _divided(with_masks(colmap.read_frames(source, options.images), source, options.masks), options)


def _divided(frames: Sequence[Frame], options: SceneOptions) -> _Split:
    """By their place in the order of names."""
    if not options.eval:
        return frames, []
    chosen = set(held_out(len(frames), options.test_every, options.test_count))
    train = [frame for index, frame in enumerate(frames) if index not in chosen]
    return train, [frame for index, frame in enumerate(frames) if index in chosen]


def _blender_frames(source: Path, options: SceneOptions) -> _Split:
    train = blender.read_synthetic(source, "train")
    if not options.eval and not (source / "transforms_test.json").is_file():
        return train, []
    return _rendered_split(train, blender.read_synthetic(source, "test"), source, options)


def _part(source: Path, options: SceneOptions) -> _Split:
    """The whole scene's own split, and of both sides what the block names."""
    described = block.read(source)
    whole = described.whole()
    kind = detect(whole)
    if kind == BLOCK:
        raise InputError(f"{source} is a block of a block. Divide the whole scene instead.")
    train, test = _FRAMES[kind](whole, options)
    block.require_all([*train, *test], described)
    return block.only(train, described), block.only(test, described)


def _multiscale_frames(source: Path, options: SceneOptions) -> _Split:
    train = blender.read_multiscale(source, "train", options.load_allres)
    return _rendered_split(train, blender.read_multiscale(source, "test", True), source, options)


def _rendered_split(train: list[Frame], test: list[Frame], source: Path, options: SceneOptions) -> _Split:
    """Rendered photos bring their own alpha, so a masks folder counts only when it is asked for."""
    if options.masks is not None:
        train, test = (with_masks(frames, source, options.masks) for frames in (train, test))
    return (train, test) if options.eval else ([*train, *test], [])


def _nerfstudio_frames(source: Path, options: SceneOptions) -> _Split:
    frames, splits = nerfstudio.read_frames(source, options.images, options.masks)
    frames = with_masks(frames, source, options.masks) if options.masks is not None else frames
    if "test" not in splits:
        return _divided(frames, options)
    pairs = list(zip(frames, splits, strict=True))
    test = [frame for frame, split in pairs if split == "test"]
    train = [frame for frame, split in pairs if split != "test"]
    return (train, test) if options.eval else (frames, [])


_FRAMES = {
    "colmap": _colmap_frames,
    "blender": _blender_frames,
    "multiscale": _multiscale_frames,
    "nerfstudio": _nerfstudio_frames,
}


def _points(kind: str, source: Path, cameras: Sequence[Pinhole], extent: float) -> tuple[PointCloud, str]:
    """To start from, and a remark on where they are from."""
    if kind == BLOCK:
        points, remark = block.read_points(source), ""
    elif kind == "colmap":
        points, remark = colmap.read_points(source), colmap.remark(source)
    elif kind == "nerfstudio":
        points, remark = nerfstudio.read_points(source, looked_at(cameras), extent)
    else:
        points, remark = blender.read_points(source), ""
    middle = np.mean([camera.position for camera in cameras], axis=0)  # [3]
    return without_impossible(points, middle, extent), remark


def _view(frame: Frame, options: SceneOptions) -> View:
    size = size_of(frame.path)
    lens = frame.intrinsics
    if not same_shape(size, (lens.width, lens.height)):
        raise InputError(
            f"{frame.path} is {size[0]}x{size[1]} but its camera {lens.width}x{lens.height}, another shape. "
            "Use the photos the reconstruction was made from, only evenly resized: not rotated, not cropped."
        )
    width, height = target_size(*size, options.resolution)
    if min(width, height) < SMALLEST_SIDE:
        raise InputError(
            f"{frame.path} would be trained at {width}x{height} pixels; at least "
            f"{SMALLEST_SIDE}x{SMALLEST_SIDE} are needed. Use a smaller divisor, or larger photos."
        )
    background = (255, 255, 255) if options.white_background else (0, 0, 0)
    photo = Photo(frame.path, width, height, frame.mask, background)
    return View(frame.name, pinhole(lens, frame.pose, width, height), photo, frame.level)


def _extent(cameras: Sequence[Pinhole], source: Path) -> float:
    centers = np.stack([camera.position for camera in cameras])  # [N, 3] world
    extent = EXTENT_MARGIN * float(np.linalg.norm(centers - centers.mean(axis=0), axis=1).max())
    if not 1e-12 < extent < float("inf"):
        raise InputError(
            f"All {len(cameras)} training cameras of {source} stand at one place, so the scene has no size. "
            "Train on photos from at least two positions (with fewer test views, if they were held out)."
        )
    return extent
