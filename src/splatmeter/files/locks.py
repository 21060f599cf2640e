"""Locks that the system gives back when a process ends, however it ends; without a holder, just a file."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

_NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class Lock:
    """One process alone. Where a file system knows no locks, as some in networks, it guards nothing: better
    unguarded than unusable.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(str(path), thread_local=False)  # a generator may be closed by another thread
        self.holder = ""
        """The number of the process that has it; empty where that is not known."""

    def take(self, wait: bool = False) -> bool:
        """False where somebody else has it; OSError where the file cannot be written."""
        self._read_holder()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer versions warn before they do without
                self._lock.acquire(timeout=-1 if wait else 0)
            self.holder = str(os.getpid())
            self._write(self.holder)
        except Timeout:
            return False
        except NotImplementedError:
            return True
        except OSError as problem:
            self.release()
            if problem.errno not in _NO_LOCKS_HERE:
                raise
        return True

    def _read_holder(self) -> None:
        """Before trying: some versions of filelock empty the file even where they do not get it."""
        with contextlib.suppress(OSError, ValueError):
            self.holder = self._path.read_text("utf-8").strip() or self.holder

    def release(self) -> None:
        if self._lock.is_locked:
            with contextlib.suppress(OSError):
                self._write("")
            self.holder = ""
            self._lock.release(force=True)

    def _write(self, text: str) -> None:
        if os.name != "nt":  # there nobody may write into a file that is locked
            self._path.write_text(text, "utf-8")


# ---- shared by many ---------------------------------------------------------------------------------------
# By the system itself: filelock has had such a lock only since 3.21, and needs a database for it.
IN_USE = ".in-use"
"""An empty file in a folder; whoever uses the folder holds a lock on it, together with others."""


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
    """Whoever wants a folder alone does not wait; whoever uses one waits until it has been cleaned."""
    try:
        import fcntl
    except ImportError:
        raise OSError("this system has no such locks") from None
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH)
