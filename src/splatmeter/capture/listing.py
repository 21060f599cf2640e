"""What a person points at: a folder of photos or one video; which files count, and their new names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from splatmeter.errors import InputError, MissingFile

PHOTO_ENDINGS = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp")
VIDEO_ENDINGS = (".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm", ".mts", ".m2ts", ".3gp", ".mpg", ".mpeg")
RAW_ENDINGS = (".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".rw2", ".orf", ".srw", ".pef", ".3fr", ".x3f")
FOREIGN_ENDINGS = (".heic", ".heif", ".avif", ".jxl", ".gif", *RAW_ENDINGS)
"""Photos that we do not read; people should hear of them rather than miss them."""
FEWEST_PHOTOS = 3
MOST_PHOTOS = 5000
"""Beyond that structure from motion takes days on a desk; nobody means it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Files in the order of their names, 2 before 10."""

    video: Path | None
    photos: tuple[Path, ...]
    foreign: tuple[Path, ...] = ()
    """HEIC, raw and other files that were left out."""


def find(source: Path, masks: Path | None = None) -> Listing:
    """`masks` is a folder whose pictures are not photos, even where it lies within `source`."""
    if source.is_file():
        return _single(source)
    if not source.is_dir():
        raise MissingFile(f"{source} does not exist. Name a folder of photos, or a video.")
    if (source / "sparse").is_dir():
        raise InputError(
            f"{source} is a scene already. Train on it, or name its folder of photos: {source / 'images'}"
        )
    files = sorted(_files(source, masks), key=lambda path: natural_order(path.relative_to(source).as_posix()))
    photos = [path for path in files if path.suffix.lower() in PHOTO_ENDINGS]
    foreign = [path for path in files if path.suffix.lower() in FOREIGN_ENDINGS]
    videos = [path for path in files if path.suffix.lower() in VIDEO_ENDINGS]
    if not photos:
        raise InputError(_nothing(source, foreign, videos))
    if len(photos) < FEWEST_PHOTOS:
        raise InputError(
            f"{source} holds {_photos(len(photos))}; at least {FEWEST_PHOTOS} are needed, and 30 to 200 that "
            "overlap by two thirds make a good scene."
        )
    if len(photos) > MOST_PHOTOS:
        raise InputError(
            f"{source} holds {len(photos)} photos, more than {MOST_PHOTOS}. Choose 100 to 500 of them that "
            "show the scene from all sides."
        )
    return Listing(None, tuple(photos), tuple(foreign))


def refuse_unreadable(source: Path) -> None:
    """Before anybody looks inside; what does not exist is told elsewhere."""
    try:
        if source.is_dir():
            with os.scandir(source):
                pass
            (source / "sparse").exists()  # asks for more than listing does
    except PermissionError:
        raise InputError(f"{source} cannot be read. Check its permissions.") from None


def natural_order(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Numbers in names count as numbers: IMG_2 comes before IMG_10."""
    parts = re.findall(r"\d+|\D+", name.casefold())
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts], name


def final_names(relative: Sequence[str], endings: Sequence[str]) -> list[str]:
    """Names within the new scene: as they were, with the ending of what is written there.

    Where two would differ in their ending or in capitals only (IMG_1.jpg, IMG_1.PNG), the old ending becomes
    a part of the name: masks are found without ending, and some file systems do not tell capitals apart.
    """
    stems = [printable(str(PurePosixPath(name).with_suffix(""))) for name in relative]
    taken: set[str] = set()
    names: list[str] = []
    for stem, original, ending in zip(stems, relative, endings, strict=True):
        candidate, number = stem, 1
        if candidate.casefold() in taken:
            candidate = f"{stem}-{PurePosixPath(original).suffix[1:].lower()}"
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{stem}-{number}"
        taken.add(candidate.casefold())
        names.append(candidate + ending)
    return names


def printable(name: str) -> str:
    """Without what cannot be written as UTF-8, control characters and backslashes."""
    clean = os.fsencode(name).decode("utf-8", "replace")
    return "".join("_" if ord(c) < 32 or c in '\x7f\\:*?"<>|' else c for c in clean)


def _single(path: Path) -> Listing:
    ending = path.suffix.lower()
    if ending in VIDEO_ENDINGS:
        return Listing(path, ())
    if ending == ".gif":
        raise InputError(f"{path} is a GIF of few colours. Name the video or the photos it was made from.")
    if ending in PHOTO_ENDINGS or ending in FOREIGN_ENDINGS:
        raise InputError(f"{path} is one photo. Name the folder that holds all photos of the scene.")
    raise InputError(f"{path} is neither a folder of photos nor a video ({_listed(VIDEO_ENDINGS)}).")


def _files(source: Path, masks: Path | None) -> Iterable[Path]:
    """Without hidden files, what macOS leaves in archives, and masks."""
    left_out = masks.resolve() if masks is not None else None
    for folder, folders, names in os.walk(source):
        here = Path(folder)
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "__MACOSX")) and (here / name).resolve() != left_out
        ]
        yield from (here / name for name in names if not name.startswith(".") and (here / name).is_file())


def _nothing(source: Path, foreign: Sequence[Path], videos: Sequence[Path]) -> str:
    if foreign:
        kind = foreign[0].suffix[1:].upper()
        return f"{source} holds {kind} files only, which are not read here. Export them as JPEG first."
    if videos:
        return f"{source} holds a video but no photos. Name the video itself: {videos[0]}"
    return f"{source} holds no photos ({_listed(PHOTO_ENDINGS)}). Name the folder that does."


def _photos(count: int) -> str:
    return "one photo" if count == 1 else f"{count} photos"


def _listed(endings: Sequence[str]) -> str:
    return ", ".join(ending[1:] for ending in endings)
