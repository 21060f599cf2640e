"""What checkpoints are called, and which of them lie in a folder."""

from __future__ import annotations

import re
from pathlib import Path

SUFFIX = ".safetensors"
SAFETY = ".safety"
_NAME = re.compile(rf"chkpnt(\d+)(?:{re.escape(SAFETY)})?{re.escape(SUFFIX)}")


def path_for(folder: Path, step: int, safety: bool = False) -> Path:
    """Checkpoints that somebody asked for stay; those for safety give way to the next one."""
    return folder / f"chkpnt{step}{SAFETY if safety else ''}{SUFFIX}"


def saved(folder: Path) -> dict[int, Path]:
    """Step -> checkpoint, whole or not, ascending."""
    found = {path: _NAME.fullmatch(path.name) for path in folder.glob("chkpnt*")}
    return dict(sorted((int(match[1]), path) for path, match in found.items() if match))


def newest(folder: Path) -> Path | None:
    """The checkpoint with the most steps in a folder, whole or not."""
    found = saved(folder)
    return found[max(found)] if found else None


def drop_older_safety(folder: Path, kept: Path) -> None:
    """Only when the newer one is whole."""
    for path in folder.glob(f"chkpnt*{SAFETY}{SUFFIX}"):
        if path != kept:
            path.unlink(missing_ok=True)
