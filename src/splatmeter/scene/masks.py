"""Masks beside the photos: 255 is the object, 0 is replaced by the background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from splatmeter.errors import MissingFile
from splatmeter.scene.frames import Frame

NO_MASKS = "none"


def with_masks(frames: Sequence[Frame], source: Path, masks: str | None) -> list[Frame]:
    """Without a name, <source>/masks is used if it holds a mask for any photo; then every photo needs one.

    The mask of images/sub/IMG_1.jpg is masks/sub/IMG_1.png (any image ending), or IMG_1.jpg.png as COLMAP
    names it. The name 'none' leaves a masks folder alone.
    """
    if masks in (NO_MASKS, ""):
        return list(frames)
    folder = source / (masks or "masks")
    if not folder.is_dir():
        if masks is None:
            return list(frames)
        raise MissingFile(f"{folder} is not a folder of masks. Pass --masks with the folder's name.")
    found = files_by_name(folder)
    paired = [mask_named(frame.name, found) for frame in frames]
    missing = [frame.name for frame, mask in zip(frames, paired, strict=True) if mask is None]
    if masks is None and len(missing) == len(frames):
        return list(frames)
    if missing:
        raise MissingFile(
            f"{len(missing)} of {len(frames)} photos have no mask in {folder}/ (first: {missing[0]}). "
            "Add the masks, or pass --masks none to train without them."
        )
    return [replace(frame, mask=mask) for frame, mask in zip(frames, paired, strict=True)]


def files_by_name(folder: Path) -> dict[str, Path]:
    """Relative name without its last ending -> file; PNG wins over others of the same name."""
    files = sorted(
        (p for p in folder.rglob("*") if p.is_file()), key=lambda p: (p.suffix.lower() == ".png", p)
    )
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in files}


def mask_named(photo: str, found: dict[str, Path]) -> Path | None:
    """The mask of the photo of this relative name, among what `files_by_name` found."""
    name = PurePosixPath(photo)
    for candidate in (name.with_suffix(""), name, PurePosixPath(name.stem), PurePosixPath(name.name)):
        if str(candidate) in found:
            return found[str(candidate)]
    return None
