"""One photo with its pose, as every kind of scene file describes it; and what names may look like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from splatmeter.errors import InputError, MissingFile
from splatmeter.scene.camera_files import Intrinsics, Pose

LONGEST_NAME = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Before the resolution is chosen; `name` is unique within a scene."""

    name: str
    path: Path
    intrinsics: Intrinsics
    pose: Pose
    mask: Path | None = None
    level: int = 0
    """In a multi-scale data set: 0 is full size, each further level half the one before."""


def read_bytes(path: Path) -> bytes:
    """The whole file; the size of a count in its header never decides how much is allocated."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingFile(f"{path} does not exist. Check --source_path.") from None
    except OSError as problem:
        raise InputError(
            f"{path} cannot be read ({problem.strerror}). Check the file and its permissions."
        ) from None


def safe_name(name: str, where: Path) -> str:
    """A relative path that stays inside its folder, without a leading './'; anything else is refused."""
    windows = PureWindowsPath(name)  # splits at both slashes, so it also sees what POSIX would
    parts = PurePosixPath(name).parts
    unsafe = (
        not parts
        or "\0" in name
        or len(name) > LONGEST_NAME
        or not _encodable(name)
        or ".." in windows.parts
        or bool(windows.drive or windows.root)
    )
    if unsafe:
        raise InputError(
            f"{where} names the photo {name[:80]!r}, which is not a path inside the scene. "
            "Use relative names without '..'."
        )
    return "/".join(parts)


def _encodable(name: str) -> bool:
    """False for lone surrogates, which JSON can spell but no report could print."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check_distinct(names: Sequence[str], where: Path) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    first = next(name for name in names if name in seen or seen.add(name))
    raise InputError(f"{where} names the photo {first!r} more than once. Remove the duplicates.")


_SMALLER = re.compile(r".+_\d+")
"""Names that folders of photos have which somebody made smaller: images_4."""


def check_present(
    names: Sequence[str], paths: Sequence[Path], where: Path, folder: Path, remedy: str | None = None
) -> None:
    """One message for all photos that are missing, with the first as an example."""
    missing = [name for name, path in zip(names, paths, strict=True) if not path.is_file()]
    if missing:
        raise MissingFile(
            f"{len(missing)} of {len(names)} photos named in {where.name} are not in {folder}/ "
            f"(first: {missing[0]}). {remedy or _way_to_all_photos(folder)}"
        )


def _way_to_all_photos(folder: Path) -> str:
    back = "Re-run the downscaling" if _SMALLER.fullmatch(folder.name) else "Put what is missing back there"
    return f"{back}, or pass --images with the name of a folder that has them all."
