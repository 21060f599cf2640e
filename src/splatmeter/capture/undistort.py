"""A scene with distorted cameras as a new one with pinholes: photos and masks are warped along."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from splatmeter.capture.child import ChildDied, Hear, run_child
from splatmeter.capture.engine import Model
from splatmeter.capture.from_photos import require_extras
from splatmeter.capture.job import CleanPhoto, Settings
from splatmeter.capture.listing import final_names
from splatmeter.capture.place import put_in_place, refuse_place, refuse_to_overwrite, writing
from splatmeter.capture.prepare import Unusable, blank_mask, prepare
from splatmeter.capture.transforms_model import TransformsModel, read_transforms
from splatmeter.capture.work import Work, alone, work_folder, write_whole
from splatmeter.errors import InputError, MissingFile
from splatmeter.photos.photo import opened, size_of
from splatmeter.scene import colmap_binary, colmap_text, nerfstudio
from splatmeter.scene.colmap import photo_paths, sparse_folder
from splatmeter.scene.colmap_binary import NO_PANORAMAS, PANORAMA, ColmapCamera, ColmapImage
from splatmeter.scene.frames import check_distinct, check_present, read_bytes, safe_name
from splatmeter.scene.masks import files_by_name, mask_named

AS_LARGE_AS_IT_IS = 2**20
GIVEN = "given"
"""Folder of the old scene's model, where that had to be written down in COLMAP's way first."""


def undistort(
    source: Path,
    out: Path,
    *,
    images: str = "images",
    masks: Path | None = None,
    threads: int = 1,
    hear: Hear = lambda message: None,
) -> int:
    """Gives the number of photos of the new scene, which appears complete or not at all."""
    source, out = source.expanduser().absolute(), out.expanduser().absolute()
    given = read_transforms(source, images) if _has_transforms(source) else None
    if given is None:
        task = _task(source, images, masks, threads)
    else:
        task = _transforms_task(given, source, masks, threads)
    refuse_place(out, source)
    refuse_to_overwrite(out)
    require_extras()
    work = Work(work_folder(out))
    with writing(out), alone(out):
        work.remove()
        for folder in (work.photos, work.masks, work.sparse / "0"):
            folder.mkdir(parents=True)
        try:
            if given is not None:
                given.write(work.root / GIVEN)
                task["sparse"] = str(work.root / GIVEN)
            write_whole(work.job, json.dumps(task))
            run_child("undistort", work, hear)
            ply = sparse_folder(source) / "points3D.ply"
            if given is None and ply.is_file():
                shutil.copyfile(ply, work.scene / "sparse" / "0" / ply.name)
            put_in_place(work.scene, out)
        except ChildDied:
            raise  # its log is worth keeping
        except BaseException:
            work.remove()
            raise
        work.remove()
    return len(task["photos"])


def undistort_in_child(work: Work, say: Any) -> None:
    import pycolmap

    from splatmeter.capture.colmap_engine import ColmapEngine

    task = json.loads(work.job.read_text("utf-8"))
    clean: list[CleanPhoto] = []
    names = final_names([p["name"] for p in task["photos"]], [_ending(p["path"]) for p in task["photos"]])
    for number, (photo, name) in enumerate(zip(task["photos"], names, strict=True), start=1):
        clean.append(_cleaned(photo, name, number, work))
        say({"stage": "photos", "done": number, "total": len(names)})
    if any(photo.mask for photo in clean):  # the trainer wants masks of all photos or of none
        clean = [_with_mask(photo, work) for photo in clean]
    piece = pycolmap.Reconstruction(task["sparse"])
    files = {photo["number"]: c.file for photo, c in zip(task["photos"], clean, strict=True)}
    for number, image in piece.images.items():  # by number: the library cuts names in text files at spaces
        image.name = files[number]
    piece.write(work.sparse / "0")
    engine = ColmapEngine(work, Settings(threads=task["threads"]))

    def tell(done: int, total: int) -> None:
        say({"stage": "undistortion", "done": done, "total": total})

    engine.undistort(Model("0", tuple(c.number for c in clean), 0, 0.0), clean, tell)


def _cleaned(photo: dict[str, Any], name: str, number: int, work: Work) -> CleanPhoto:
    mask = Path(photo["mask"]) if photo["mask"] else None
    try:
        made = prepare(Path(photo["path"]), mask, work.root, number, AS_LARGE_AS_IT_IS, turn=False)
    except Unusable as problem:
        raise InputError(f"{photo['name']}: {problem.reason}. {problem.advice}.") from None
    mask_file = f"{number:06d}.png" if made.mask else None
    size = (made.width, made.height)
    return CleanPhoto(
        number, made.file, name, *size, made.sharpness, None, made.lens.body, mask_file, made.hidden
    )


def _with_mask(photo: CleanPhoto, work: Work) -> CleanPhoto:
    if photo.mask is not None:
        return photo
    blank_mask(work.root, photo.number, (photo.width, photo.height))
    return replace(photo, mask=f"{photo.number:06d}.png")


def _ending(path: str) -> str:
    """As `prepare` will write it."""
    with opened(Path(path)) as image:
        return ".jpg" if image.format in ("JPEG", "MPO") else ".png"


def _task(source: Path, images: str, masks: Path | None, threads: int) -> dict[str, Any]:
    """Everything that can be wrong with the old scene is found here, before anything is written."""
    cameras, posed, sparse = _read(source)
    folder = source / images
    if not folder.is_dir():
        raise MissingFile(f"{folder} is not a folder of photos. Pass --images with the folder's name.")
    names = [safe_name(image.name, sparse) for image in posed]
    check_distinct(names, sparse)
    paths = photo_paths(names, folder)
    check_present(names, paths, sparse / "images", folder)
    _check_sizes(posed, paths, cameras)
    found = _masks(source, masks)
    photos = [
        {"path": str(path), "name": name, "number": image.number, "mask": _text(mask_named(name, found))}
        for path, name, image in zip(paths, names, posed, strict=True)
    ]
    return {"photos": photos, "sparse": str(sparse), "threads": threads}


def _has_transforms(source: Path) -> bool:
    return not (source / "sparse").is_dir() and (source / nerfstudio.FILE).is_file()


def _transforms_task(
    given: TransformsModel, source: Path, masks: Path | None, threads: int
) -> dict[str, Any]:
    if not given.distorted:
        raise _not_distorted(source)
    _check_sizes(given.images, given.paths, given.cameras)
    found = None if masks is None else _masks(source, masks)
    photos = []
    for image, path, own in zip(given.images, given.paths, given.masks, strict=True):
        mask = own if found is None else mask_named(image.name, found)
        name = image.name.removeprefix("images/")
        photos.append({"path": str(path), "name": name, "number": image.number, "mask": _text(mask)})
    return {"photos": photos, "threads": threads}


def _not_distorted(source: Path) -> InputError:
    return InputError(f"{source} is not distorted. Train on it as it is: splatmeter train -s {source}")


def _read(source: Path) -> tuple[dict[int, ColmapCamera], list[ColmapImage], Path]:
    sparse = sparse_folder(source)
    binary = (sparse / "images.bin").is_file()
    ending, parser = (".bin", colmap_binary) if binary else (".txt", colmap_text)
    camera_file, image_file = sparse / f"cameras{ending}", sparse / f"images{ending}"
    missing = [f for f in (camera_file, image_file, sparse / f"points3D{ending}") if not f.is_file()]
    if missing:
        raise MissingFile(
            f"{missing[0]} does not exist. Name a folder that COLMAP made: sparse/0 beside its photos."
        )
    cameras = {c.number: c for c in parser.parse_cameras(read_bytes(camera_file), camera_file)}
    posed = parser.parse_images(read_bytes(image_file), image_file)
    parser.parse_points(read_bytes(sparse / f"points3D{ending}"), sparse / f"points3D{ending}")
    used = {image.camera for image in posed}
    if not posed or not used <= set(cameras):
        raise InputError(f"{image_file} names no photos, or cameras that are not there. Re-run colmap.")
    models = {cameras[number].model for number in used}
    if PANORAMA in models:
        raise InputError(f"{camera_file} describes panoramas ({PANORAMA}). {NO_PANORAMAS}")
    if models <= {"PINHOLE", "SIMPLE_PINHOLE"}:
        raise _not_distorted(source)
    return cameras, posed, sparse


def _check_sizes(posed: list[ColmapImage], paths: list[Path], cameras: dict[int, ColmapCamera]) -> None:
    for image, path in zip(posed, paths, strict=True):
        size, lens = size_of(path), cameras[image.camera]
        if size != (lens.width, lens.height):
            raise InputError(
                f"{path} is {size[0]}x{size[1]} but its camera {lens.width}x{lens.height}. Use the photos "
                "that the reconstruction was made from, at their full size (--images names their folder)."
            )


def _masks(source: Path, asked: Path | None) -> dict[str, Path]:
    folder = asked if asked is not None else source / "masks"
    if asked is not None and not asked.is_dir():
        raise MissingFile(f"{asked} is not a folder of masks. Pass --masks with the folder's name.")
    return files_by_name(folder) if folder.is_dir() else {}


def _text(path: Path | None) -> str | None:
    return str(path) if path is not None else None
