"""Events as lines of JSON: the record of a run, and what the lab reads from a child process."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TextIO

from splatmeter.errors import OutputError
from splatmeter.events import Event, to_line


class JsonLines:
    """Appends to a file, each line whole at once; the file is made at the first event, not before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO | None = None

    def __call__(self, event: Event) -> None:
        try:
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
                self._end_cut_line()
            self._write(to_line(event).encode("utf-8", "backslashreplace") + b"\n")  # paths may be no UTF-8
        except OSError as problem:
            raise OutputError(
                f"{self._path} cannot be written ({problem.strerror or problem}). "
                "Make room and go on with --resume."
            ) from problem

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _end_cut_line(self) -> None:
        """What a killed process or a full disk left unfinished must not swallow the next event."""
        with self._path.open("rb") as file:
            if file.seek(0, io.SEEK_END) and file.seek(-1, io.SEEK_END) >= 0 and file.read(1) != b"\n":
                self._write(b"\n")

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        while data:
            data = data[self._file.write(data) :]


class StreamLines:
    """The same onto a stream that somebody else owns, flushed line by line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        self._stream.write(to_line(event) + "\n")
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()
