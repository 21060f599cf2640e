"""Events as lines of JSON: the record of a run, and what the lab reads from a child process."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from splatmeter.errors import OutputError
from splatmeter.events import Event, to_line


class JsonLines:
    """Appends to a file, each line whole at once; the file is made at the first event, not before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __call__(self, event: Event) -> None:
        try:
            if self._file is None:
                self._file = self._path.open("a", encoding="utf-8", buffering=1)
            self._file.write(to_line(event) + "\n")
        except OSError as problem:
            raise OutputError(
                f"{self._path} cannot be written ({problem.strerror or problem}). "
                "Make room and go on with --resume."
            ) from problem

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class StreamLines:
    """The same onto a stream that somebody else owns, flushed line by line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        self._stream.write(to_line(event) + "\n")
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()
