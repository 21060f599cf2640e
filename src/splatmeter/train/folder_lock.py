"""One run per output folder."""

from __future__ import annotations

import time
from pathlib import Path

from splatmeter.errors import OutputError
from splatmeter.files.locks import Lock

NAME = ".splatmeter.lock"
LOOK_AGAIN_SECONDS = 0.2


class FolderLock:
    """Held from creation to `release`."""

    def __init__(self, folder: Path) -> None:
        self._lock = Lock(folder / NAME)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            taken = self._lock.take()
        except OSError as problem:  # a full disk shows here first
            raise OutputError(
                f"The output folder {folder} cannot be written ({problem.strerror or problem}). "
                "Make room, or choose another --model-path."
            ) from problem
        if not taken:
            holder = f"Process {self._lock.holder}" if self._lock.holder else "Another process"
            raise OutputError(
                f"{holder} is training into {folder} right now. Wait for it or choose another --model-path."
            )

    def release(self) -> None:
        self._lock.release()


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
