"""The record of a run: after a killed process, and on a full disk."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from splatmeter.errors import OutputError
from splatmeter.events import Warned, from_line
from splatmeter.listeners.json_lines import JsonLines


def test_a_line_cut_off_by_a_killed_process_does_not_swallow_the_next_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"event":"warned","message":"whole","remedy":""}\n{"event":"prog')
    lines = JsonLines(path)
    lines(Warned("after"))
    lines.close()
    kept = path.read_text().splitlines()
    assert [from_line(line) for line in (kept[0], kept[2])] == [Warned("whole"), Warned("after")]


class SmallDisk:
    """A file on a disk with room for so many bytes, which writes what it can before it refuses."""

    def __init__(self, path: Path, room: int) -> None:
        self.file, self.room = path.open("ab", buffering=0), room

    def write(self, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self.file.write(data[: self.room])
        self.room -= written
        return written

    def close(self) -> None:
        self.file.close()


@pytest.mark.parametrize("room", [0, 1, 60, 10_000])
def test_lines_wait_for_room_on_a_full_disk_and_come_whole(
    tmp_path: Path, room: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, events = JsonLines(tmp_path / "events.jsonl"), [Warned(f"number {k}") for k in range(5)]
    disk: Any = SmallDisk(tmp_path / "events.jsonl", room)
    lines._file = disk
    for event in events[:3]:
        lines(event)
    disk.room = 10_000
    for event in events[3:]:
        lines(event)
    lines.close()
    assert [from_line(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()] == events
    assert capsys.readouterr().err.count("No space left") == (room < 10_000)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full: not checked")
def test_what_never_found_room_is_said_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    lines = JsonLines(Path("/dev/full"))
    lines(Warned("anything"))
    lines.close()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and "wait until there is room" in said[0] and "are lost" in said[1]


def test_what_is_no_full_disk_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        JsonLines(tmp_path / "gone" / "events.jsonl")(Warned("anything"))
