"""What splatmeter keeps outside of the folders that people name: where, how much, and how it goes away."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from splatmeter.files.locks import IN_USE, alone_with
from splatmeter.places import cache_folder

ABANDONED_AFTER_SECONDS = 3600.0
"""A folder without a mark of use may just be beginning."""
FAILED = "it cannot be removed"


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder, and what we made in it, folders last. Whatever else lies there is somebody else's."""

    folder: Path
    what: str
    files: tuple[Path, ...]
    shared: bool
    """Whether one mark of use in the folder above speaks for it."""

    @property
    def size(self) -> int:
        return sum(file.lstat().st_size for file in self.files if file.is_file())


@dataclass(frozen=True, slots=True)
class Outcome:
    folder: str
    what: str
    bytes: int
    state: str
    """'removed', 'would be removed', or 'kept'."""
    why: str = ""


def kept() -> list[Kept]:
    from splatmeter.backends.cuda import trust
    from splatmeter.evaluate import lpips
    from splatmeter.scene.cached import cached_files

    cache, found = cache_folder(), []
    for folder in sorted(cache.iterdir()) if _readable(cache) else ():
        files = cached_files(folder)
        if files is not None:
            found.append(Kept(folder, "the built-in scene", tuple(files), True))
    if marks := trust.marks(cache):
        found.append(Kept(cache / trust.MARKS, "marks of cards that passed", tuple(marks), True))
    for folder, files in lpips.left_behind():
        found.append(Kept(folder, "pictures for LPIPS", tuple(files), False))
    return found


def clean(dry_run: bool) -> list[Outcome]:
    return [_cleaned(one, dry_run) for one in kept()]


def _cleaned(one: Kept, dry_run: bool) -> Outcome:
    told = (str(one.folder), one.what, one.size)
    with _free(one) as objection:
        if objection:
            return Outcome(*told, "kept", objection)
        if dry_run:
            return Outcome(*told, "would be removed")
        try:
            foreign = _remove(one)
        except OSError as problem:
            return Outcome(*told, "kept", f"{FAILED}: {problem.strerror or problem}")
    return Outcome(*told, "removed", f"{foreign} in it is not ours and stays" if foreign else "")


@contextlib.contextmanager
def _free(one: Kept) -> Iterator[str]:
    """Why it must stay, or nothing; while this lasts nobody can begin to use it."""
    place = one.folder.parent if one.shared else one.folder
    if not one.shared and not (place / IN_USE).exists() and _age(place) < ABANDONED_AFTER_SECONDS:
        yield "somebody may just have begun to use it"
        return
    with alone_with(place) as alone:
        if not alone:
            yield "another splatmeter uses it, or it cannot be locked"
        elif user := _user_of(one.folder):
            yield f"process {user} uses it"
        else:
            yield ""


def _age(folder: Path) -> float:
    return time.time() - folder.lstat().st_mtime


def _user_of(folder: Path) -> int | None:
    """A process that names the folder, stands in it or has a file of it open, such as a training."""
    import psutil

    names = {str(folder.absolute()), str(folder.resolve())}
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(psutil.Error, OSError):
            words = [*process.cmdline(), process.cwd(), *(file.path for file in process.open_files())]
            if any(name in word for name in names for word in words):
                return process.pid
    return None


def _remove(one: Kept) -> str:
    """The first thing that stays because we did not put it there, or nothing."""
    for path in one.files:
        if not path.is_dir():
            path.unlink(missing_ok=True)
    for folder in (*(path for path in one.files if path.is_dir()), one.folder):
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()
    return next((path.name for path in sorted(one.folder.iterdir())), "") if one.folder.exists() else ""


def _readable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)
