"""Several scenes of one protocol: what differs from scene to scene, as [[scene]] tables."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from splatmeter.errors import InputError, UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")


@dataclass(frozen=True, slots=True)
class SceneEntry:
    """Where a field is empty or 0, the protocol's own counts."""

    name: str
    path: str
    images: str = ""
    resolution: int = 0
    checkpoint: str = ""
    """Its own start; empty: start/NAME/chkpnt….safetensors, made by `lab prepare`."""
    sha256: str = ""
    target_psnr: float = 0.0


KEYS = tuple(field.name for field in dataclasses.fields(SceneEntry))


def scene_entries(path: Path, tables: Any) -> tuple[SceneEntry, ...]:
    """[[scene]] as TOML holds it; a scene without a name is called like its folder."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{path}: scenes are written as [[scene]] tables, each with a path.")
    return tuple(_entry(path, table) for table in tables)


def _entry(path: Path, table: dict[str, Any]) -> SceneEntry:
    wrong = [key for key in table if key not in KEYS]
    if wrong:
        raise InputError(f"{path}: a [[scene]] has no {wrong[0]!r}; it has {', '.join(KEYS)}.")
    where = table.get("path")
    if not isinstance(where, str) or not where:
        raise InputError(f"{path}: a [[scene]] needs a path; add one.")
    found = {"name": PurePath(where).name, **table}
    for field in dataclasses.fields(SceneEntry):
        wanted = {"int": int, "float": (int, float)}.get(str(field.type), str)
        value = found.get(field.name, "" if wanted is str else 0)
        if isinstance(value, bool) or not isinstance(value, wanted):
            raise InputError(f"{path}: {field.name} of a [[scene]] cannot be {value!r}.")
    found["target_psnr"] = float(found.get("target_psnr", 0.0))
    return SceneEntry(**found)


def named(paths: Sequence[str]) -> tuple[SceneEntry, ...]:
    """From folders alone, as the command line gives them."""
    return tuple(SceneEntry(PurePath(path).name, path) for path in paths)


def checked_scenes(scenes: Sequence[SceneEntry], single: str) -> None:
    if not scenes:
        return
    if single:
        raise UsageError("A protocol has either `scene` in [benchmark] or [[scene]] tables, not both.")
    names = [entry.name for entry in scenes]
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name a scene; use letters, digits, '.', '_', '+', '-'.")
        if names.count(name) > 1:
            raise UsageError(f"Two scenes are called {name}; give one of them another name in its [[scene]].")
