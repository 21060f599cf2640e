"""Files that are either whole or not there: what a reader finds under the name was written to its end."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from splatmeter.errors import OutputError


@contextmanager
def replacing(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `path` when the block ends well.

    After any failure the old file is untouched and the temporary one is gone. What the system refuses
    (no space, no permission) becomes an OutputError. A file that is not `durable` may be lost in a power cut;
    nobody has to wait for the disk then.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as stream:
                yield stream
                if durable:
                    stream.flush()
                    os.fsync(stream.fileno())
            temporary.replace(path)
            if durable:
                _settle_folder(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise OutputError(
            f"Cannot write {path}: {reason}. What was there before is unchanged; "
            "free some space or choose another place."
        ) from problem


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """Names of files may hold bytes that are no text; those are written as escapes."""
    with replacing(path, durable) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))


def _settle_folder(folder: Path) -> None:
    """The new name survives a power cut too, where the system can promise it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
