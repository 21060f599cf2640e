"""One run per output folder."""

from __future__ import annotations

import errno
import time
from contextlib import suppress
from pathlib import Path

from splatmeter.errors import OutputError
from splatmeter.files.locks import Lock

NAME = ".splatmeter.lock"
LOOK_AGAIN_SECONDS = 0.2
_FULL = (errno.ENOSPC, errno.EDQUOT)


class FolderLock:
    """Held from creation to `release`."""

    def __init__(self, folder: Path) -> None:
        self._lock = Lock(folder / NAME)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            taken = self._lock.take()
        except OSError as problem:  # a full disk shows here first
            raise _not_writable(folder, problem) from problem
        if not taken:
            raise _in_use(folder, self._lock.holder)

    def release(self) -> None:
        self._lock.release()


def refuse_if_in_use(folder: Path) -> None:
    """OutputError where somebody trains there right now; leaves a folder without runs as it is."""
    if not (folder / NAME).is_file():
        return
    lock = Lock(folder / NAME)
    with suppress(OSError):  # whoever may only read cannot tell
        if not lock.take():
            raise _in_use(folder, lock.holder)
        lock.release()


def wait_until_free(folder: Path, seconds: float) -> None:
    """Until nobody trains there, but no longer than that: a process that was killed takes a moment to go."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            FolderLock(folder).release()
        except OutputError:
            time.sleep(LOOK_AGAIN_SECONDS)
        else:
            return


def _in_use(folder: Path, process: str) -> OutputError:
    holder = f"Process {process}" if process else "Another process"
    return OutputError(
        f"{holder} is training into {folder} right now. Wait for it or choose another --model-path."
    )


def _not_writable(folder: Path, problem: OSError) -> OutputError:
    reason = "there is a file of that name" if folder.is_file() else problem.strerror or str(problem)
    remedy = "Make room, or choose" if problem.errno in _FULL else "Choose"
    return OutputError(
        f"The output folder {folder} cannot be written ({reason}). {remedy} another --model-path."
    )
