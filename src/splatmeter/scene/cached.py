"""Which files of the cache are scenes that we made: what `splatmeter doctor --clean` may remove."""

from __future__ import annotations

import json
import re
from pathlib import Path

from splatmeter.scene.built_in import STAMP

_CACHED = re.compile(r"(demo|city)-\d+-[\w.-]+")
_BEING_MADE = re.compile(r"\.(demo|city)-\d+-[\w.-]+\.making")
_NAMES = re.compile(r"splatmeter (demo garden|city)")
_INSIDE = {
    "": re.escape(STAMP),
    "images": r"(garden_\d{3}|city_\d+_\w+)\.png",
    "sparse/0": r"(cameras|images|points3D)\.bin",
}


def cached_files(folder: Path) -> list[Path] | None:
    """What we put into a folder of the cache, of any version, folders behind their files; None where the
    folder is none of ours. Nothing is reached through a symbolic link, and what others put there is left out.
    """
    if folder.is_symlink() or not folder.is_dir():
        return None
    if not _BEING_MADE.fullmatch(folder.name) and not (_CACHED.fullmatch(folder.name) and _stamped(folder)):
        return None
    found: list[Path] = []
    for place, names in _INSIDE.items():
        where = folder / place
        if any(step.is_symlink() for step in (where, where.parent) if step.is_relative_to(folder)):
            continue
        for path in where.iterdir() if where.is_dir() else ():
            if re.fullmatch(names, path.name) and path.is_file() and not path.is_symlink():
                found.append(path)
    own = [folder / name for name in ("images", "sparse/0", "sparse")]
    return [*sorted(found), *(path for path in own if path.is_dir() and not path.is_symlink())]


def _stamped(folder: Path) -> bool:
    stamp = folder / STAMP
    try:
        told = None if stamp.is_symlink() else json.loads(stamp.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and _NAMES.fullmatch(str(told.get("scene"))) is not None
