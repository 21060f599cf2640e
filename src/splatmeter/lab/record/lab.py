"""Where everything of a lab lies, and who may write to it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from splatmeter.errors import MissingFile, OutputError
from splatmeter.lab.plan import protocol as protocols
from splatmeter.lab.plan.phases import Phases
from splatmeter.lab.plan.protocol import Protocol


@dataclass(frozen=True, slots=True)
class Lab:
    """A folder:

    protocol.toml  phases/NAME.toml  start/ (checkpoint and its hash)  judged/ (metrics by model hash)
    sessions/ID/   session.json  blocks/003.1/ (block 3, first attempt)  0-PHASE/ (one run)  ended.json
    index.sqlite   built from sessions/, can be deleted at any time
    """

    root: Path

    @property
    def protocol_file(self) -> Path:
        return self.root / "protocol.toml"

    @property
    def phases(self) -> Phases:
        return Phases(self.root / "phases")

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def start(self) -> Path:
        return self.root / "start"

    @property
    def judged(self) -> Path:
        return self.root / "judged"

    @property
    def worktrees(self) -> Path:
        return self.root / "worktrees"

    @property
    def index_file(self) -> Path:
        return self.root / "index.sqlite"

    def protocol(self) -> Protocol:
        return protocols.read(self.protocol_file)

    def checked(self) -> Lab:
        if not self.protocol_file.exists():
            raise MissingFile(
                f"{self.root} is not a lab (it has no protocol.toml);"
                " `splatmeter lab init --scene SCENE` makes one, --lab DIR names another"
            )
        return self


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Held by the operating system, so that a killed process never leaves it behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            _lock(file.fileno())
        except OSError:
            raise OutputError(
                f"{what} is in use by another process; wait for it, or end it, and try again"
            ) from None
        yield


def _lock(descriptor: int) -> None:
    if os.name == "posix":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
