"""One run per output folder: a lock the system itself gives back when a process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO

from splatmeter.errors import OutputError

NAME = ".splatmeter.lock"


class FolderLock:
    """Held from creation to `release`. The file stays; a lock nobody holds is just a file."""

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[str] | None = path.open("a+", encoding="utf-8")
        except OSError as problem:
            raise _unwritable(folder, problem) from problem
        if not _take(self._file):
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise OutputError(
                f"Process {holder} is training into {folder} right now. "
                "Wait for it or choose another --model-path."
            )
        try:
            self._file.truncate(0)
            os.write(self._file.fileno(), str(os.getpid()).encode())  # nothing left for close to flush
        except OSError as problem:  # a full disk shows here first
            self._file.close()
            raise _unwritable(folder, problem) from problem

    def release(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.truncate(0)
            self._file.close()
            self._file = None


def _unwritable(folder: Path, problem: OSError) -> OutputError:
    return OutputError(
        f"The output folder {folder} cannot be written ({problem.strerror or problem}). "
        "Make room, or choose another --model-path."
    )


def _take(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:
        return _take_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems know no locks: better unguarded than unusable
        return True
    return True


def _take_on_windows(file: IO[str]) -> bool:
    import msvcrt

    file.seek(0x7FFF0000)  # a byte far behind the text, so that others can still read who holds it
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    finally:
        file.seek(0)
    return True
