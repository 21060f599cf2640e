"""Where everything of a lab lies, and who may write to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from splatmeter.errors import MissingFile, OutputError
from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.plan import protocol as protocols
from splatmeter.lab.plan.phases import Phases
from splatmeter.lab.plan.protocol import Protocol

SEQUENCE = "sequence.json"
MERGED = "merged.json"
"""Beside a session that came from another lab: its place in the order of this one."""


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
    def work(self) -> Path:
        """Where trainers write while they run: under names that tell them nothing."""
        return self.root / "work"

    @property
    def worktrees(self) -> Path:
        return self.root / "worktrees"

    @property
    def index_file(self) -> Path:
        return self.root / "index.sqlite"

    def protocol(self) -> Protocol:
        return protocols.read_protocol(self.protocol_file)

    def checked(self) -> Lab:
        if not self.protocol_file.exists():
            raise MissingFile(
                f"{self.root} is not a lab (it has no protocol.toml);"
                " `splatmeter lab init --scene SCENE` makes one, --lab DIR names another."
            )
        return self


def read_plan(path: Path) -> dict[str, Any] | None:
    """A session.json, in the order of this lab: one that was merged from another has its place from here."""
    plan, merged = read_json(path), read_json(path.parent / MERGED)
    if not isinstance(plan, dict):
        return None
    number = merged.get("sequence") if isinstance(merged, dict) else None
    return plan | {"sequence": number} if isinstance(number, int) else plan


def next_sequence(lab: Lab, session: str, phases: Sequence[str]) -> int:
    """A number that no session of this lab has had: order without asking a clock, which may step back. Who
    got it is written down, so that a session that is removed is missed.
    """
    return enter_sessions(lab, [(session, phases)])[session]


def enter_sessions(lab: Lab, entries: Sequence[tuple[str, Sequence[str]]]) -> dict[str, int]:
    """A number each, in this order; those of sessions that came from another lab are given here as well."""
    with locked(lab.root / ".sequence.lock", "the counter of sessions", wait=True):
        plans = [read_plan(path) for path in lab.sessions.glob("*/session.json")]
        book = read_json(lab.root / SEQUENCE)
        book = book if isinstance(book, dict) else {}
        known = [plan.get("sequence") for plan in (*plans, book) if isinstance(plan, dict)]
        last = max((item for item in known if isinstance(item, int)), default=0)
        numbers = {session: last + place for place, (session, _) in enumerate(entries, start=1)}
        begun = {name: {"sequence": numbers[name], "phases": list(phases)} for name, phases in entries}
        record = {"sequence": last + len(entries), "sessions": {**book.get("sessions", {}), **begun}}
        write_json(lab.root / SEQUENCE, record)
    return numbers


def begun_sessions(lab: Lab) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Every session that was ever begun here: its number and its phases."""
    book = read_json(lab.root / SEQUENCE)
    entries = book.get("sessions") if isinstance(book, dict) else None
    found: dict[str, tuple[int, tuple[str, ...]]] = {}
    for name, entry in (entries if isinstance(entries, dict) else {}).items():
        if isinstance(entry, dict) and isinstance(entry.get("sequence"), int):
            found[name] = (entry["sequence"], tuple(map(str, entry.get("phases", ()))))
    return found


@contextlib.contextmanager
def locked(path: Path, what: str, wait: bool = False) -> Iterator[None]:
    """Held by the operating system, so that a killed process never leaves it behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(path, timeout=-1 if wait else 0, thread_local=False).acquire()
    except Timeout:
        raise OutputError(
            f"{what} is in use by another process; wait for it, or end it, and try again."
        ) from None
    with lock:
        yield
