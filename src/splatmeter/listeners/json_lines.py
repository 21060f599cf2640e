"""Events as lines of JSON: the record of a run, and what the lab reads from a child process."""

from __future__ import annotations

import errno
import io
import sys
from pathlib import Path
from typing import TextIO

from splatmeter.errors import OutputError
from splatmeter.events import Event, to_line

FULL = {errno.ENOSPC, errno.EDQUOT}
MOST_WAITING = 2**26
"""Bytes of lines that wait for room on a full disk. 30 000 steps have a few million."""


class JsonLines:
    """Appends to a file, each line whole at once; the file is made at the first event, not before.

    A full disk costs nobody a run: lines wait until there is room again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO | None = None
        self._waiting = bytearray()
        self._told = False

    def __call__(self, event: Event) -> None:
        self._waiting += to_line(event).encode("utf-8", "backslashreplace") + b"\n"  # paths may be no UTF-8
        try:
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
                self._end_cut_line()
            self._write()
        except OSError as problem:
            reason = problem.strerror or str(problem)
            if problem.errno not in FULL or len(self._waiting) > MOST_WAITING:
                self._waiting.clear()
                raise OutputError(
                    f"{self._path} cannot be written ({reason}). Mend that, and go on with --resume if there "
                    "is a checkpoint."
                ) from problem
            self._tell(f"{reason}: lines wait until there is room. Training goes on.")

    def close(self) -> None:
        try:
            if self._file is not None:
                self._write()
        except OSError:
            pass  # said below
        if self._waiting:
            self._told = False
            self._tell(f"its last {len(self._waiting)} bytes are lost: there was no room.")
            self._waiting.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _end_cut_line(self) -> None:
        """What a killed process or a full disk left unfinished must not swallow the next event."""
        with self._path.open("rb") as file:
            if file.seek(0, io.SEEK_END) and file.seek(-1, io.SEEK_END) >= 0 and file.read(1) != b"\n":
                self._waiting[:0] = b"\n"

    def _write(self) -> None:
        """What has been written waits no longer, also where the rest finds no room."""
        assert self._file is not None
        while self._waiting:
            del self._waiting[: self._file.write(self._waiting)]

    def _tell(self, what: str) -> None:
        """Once: to the person, because the record of the run is what cannot be written."""
        if not self._told:
            self._told = True
            print(f"warning: {self._path} cannot be written, {what}", file=sys.stderr)


class StreamLines:
    """The same onto a stream that somebody else owns, flushed line by line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        self._stream.write(to_line(event) + "\n")
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()
