"""The evidence of one run: what was asked, what was printed and when, and last of all the result.

A folder without a whole result.json is a run that never ended; it is kept and never counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from splatmeter.errors import OutputError
from splatmeter.events import Event, from_line, to_line
from splatmeter.lab.executor import Arrival, Command, signal_group
from splatmeter.lab.json_files import read_json, write_json, write_text
from splatmeter.lab.record.result import RunResult

RESULT = "result.json"
EVENTS = "events.jsonl"
PROCESS = "process.json"
BLOCK = "block.json"
"""Lies beside the runs of an attempt at a block: written when all of them have their results."""


class RunFolder:
    """Written while the run is under way; every line is on its way to the disk before the next is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events: TextIO | None = None

    def begin(self) -> None:
        with _told_in_a_sentence(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._events = (self.path / EVENTS).open("w", encoding="utf-8", buffering=1)

    def command(self, record: Mapping[str, Any]) -> None:
        write_json(self.path / "command.json", record)

    def environment(self, record: Mapping[str, Any]) -> None:
        """The difference of the working tree becomes a patch file of its own."""
        git = dict(record.get("git", {}))
        diff = git.pop("diff", "")
        if diff:
            write_text(self.path / "worktree.diff", diff)
        write_json(self.path / "environment.json", {**record, "git": git})

    def process(self, pid: int, command: Command, output: Path) -> None:
        record = {"pid": pid, "arguments": list(command.arguments), "output": str(output)}
        write_json(self.path / PROCESS, record)

    def arrival(self, arrival: Arrival) -> None:
        assert self._events is not None, "begin() comes first"
        with _told_in_a_sentence(self.path):
            self._events.write(f'{{"seconds":{arrival.seconds:.6f},"line":{to_line(arrival.event)}}}\n')

    def result(self, result: RunResult) -> None:
        self.close()
        (self.path / PROCESS).unlink(missing_ok=True)
        write_json(self.path / RESULT, result.to_record())

    def close(self) -> None:
        if self._events and not self._events.closed:
            with _told_in_a_sentence(self.path):
                self._events.flush()
                with contextlib.suppress(OSError):  # a file system that cannot sync still keeps the lines
                    os.fsync(self._events.fileno())
                self._events.close()


@contextlib.contextmanager
def _told_in_a_sentence(path: Path) -> Iterator[None]:
    """A full disk costs the run, not the lab."""
    try:
        yield
    except OSError as problem:
        raise OutputError(
            f"Cannot write what the run says into {path}: {problem.strerror}. The run is lost; free some"
            " space and `splatmeter lab resume`."
        ) from None


def complete(attempt: Path) -> bool:
    """Whether an attempt at a block counts: all its arms have ended, and no earlier attempt did it too."""
    if not (attempt / BLOCK).exists():
        return False
    block, _, number = attempt.name.partition(".")
    earlier = range(1, int(number)) if number.isdigit() else ()
    return not any((attempt.with_name(f"{block}.{other}") / BLOCK).exists() for other in earlier)


def arrivals(path: Path) -> list[Arrival]:
    """All whole lines; the last one may be cut off by a kill and is then left out."""
    found: list[Arrival] = []
    try:
        lines = (path / EVENTS).read_text("utf-8", "replace").splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            record = json.loads(line)
            event: Event = from_line(json.dumps(record["line"]))
            found.append(Arrival(float(record["seconds"]), event))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def end_orphan(path: Path, work: Path) -> bool:
    """Ends the trainer of a run whose lab was killed, only if it is certainly the process we started, and
    removes what it had written under `work`.
    """
    record = read_json(path / PROCESS)
    ended = _end_process(record)
    remove_output(path, work)
    return ended


def remove_output(path: Path, work: Path) -> None:
    """What an unfinished run has left under `work`, once nothing writes there any more."""
    record = read_json(path / PROCESS)
    output = Path(str(record.get("output", ""))) if isinstance(record, dict) else Path()
    if output.parent == work.resolve():
        shutil.rmtree(output, ignore_errors=True)


def _end_process(record: Any) -> bool:
    import psutil

    if not isinstance(record, dict) or not isinstance(record.get("pid"), int):
        return False
    try:
        process = psutil.Process(record["pid"])
        same = process.cmdline() == record.get("arguments") and os.getpgid(process.pid) == process.pid
        if not same:
            return False
        signal_group(process.pid, "SIGKILL")
        process.wait(timeout=5)
    except (psutil.Error, ProcessLookupError, AttributeError):
        return False
    return True
