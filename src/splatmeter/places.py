"""Where things of this user lie, and whether somebody uses them right now."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

IN_USE = ".in-use"
"""An empty file in a folder; who uses the folder holds a lock on it, which the system gives back when a
process ends, however it ends."""


def cache_folder() -> Path:
    """$SPLATMETER_CACHE, else splatmeter/ in $XDG_CACHE_HOME, else in ~/.cache."""
    chosen = os.environ.get("SPLATMETER_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    general = os.environ.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path.home() / ".cache") / "splatmeter"


class Hold:
    """Keeps `splatmeter doctor --clean` away from a folder, until released or until this process ends.

    Where locks cannot be had it does nothing: what is cached can always be made again.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = _opened(folder / IN_USE)
            _lock(self._descriptor, exclusive=False)

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def alone_with(folder: Path) -> Iterator[bool]:
    """False where somebody holds the folder, or where nobody can tell."""
    try:
        descriptor = _opened(folder / IN_USE)
    except OSError:
        yield False
        return
    try:
        try:
            _lock(descriptor, exclusive=True)
            alone = True
        except OSError:
            alone = False
        yield alone
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _lock(descriptor: int, exclusive: bool) -> None:
    """Who wants a folder for itself does not wait; who uses one waits until it has been cleaned."""
    try:
        import fcntl
    except ImportError:
        raise OSError("this system has no such locks") from None
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH)
