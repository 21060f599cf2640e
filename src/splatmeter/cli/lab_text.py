"""Plain tables and the line that shows how far a session is."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from splatmeter.events import Progress
from splatmeter.lab.monitor import clocks
from splatmeter.lab.record.result import RunResult
from splatmeter.lab.session.session import Beat
from splatmeter.units import duration_text

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


_OF_JOBS = {
    "waiting": "its job is submitted",
    "found": "its job is still there",
    "started": "its job has started",
    "died": "its job died",
}


def clean(text: object) -> str:
    """Text from outside must not move the terminal's cursor."""
    return _CONTROL.sub(" ", str(text))


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their longest cell, the last one as it comes."""
    cells = [[clean(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


class SessionProgress:
    """One line that is redrawn on a terminal; one line per run elsewhere."""

    def __init__(
        self, blocks: int, already: int, steps: tuple[int, int], stream: TextIO | None = None
    ) -> None:
        self.steps, self.stream = steps, stream or sys.stderr
        self.blocks_left = max(0, blocks - already)
        self.blocks_done = 0
        self._begin = time.monotonic()
        self._block_ended = self._begin
        self._drawn = 0.0
        self._warned: set[str] = set()

    def show(self, beat: Beat) -> None:
        if beat.stage == "block done":
            self.blocks_done += 1
            self.blocks_left -= 1
            self._block_ended = time.monotonic()
        elif beat.stage == "block repeated":
            self._line(f"block {beat.block + 1} is run again: {clean(beat.arm)}", "\n")
        elif beat.stage in _OF_JOBS:
            told = f": {clean(beat.arm)}" if beat.stage == "died" and beat.arm else ""
            self._line(f"block {beat.block + 1}/{beat.blocks}  {_OF_JOBS[beat.stage]}{told}", "\n")
        elif beat.result is not None:
            timing = beat.result.timing
            rate = f"{timing.steps_per_second:.3f} it/s" if timing else "no time"
            self._line(
                f"block {beat.block + 1}/{beat.blocks}  {clean(beat.arm)}  {rate}  {self._left()}", "\n"
            )
            self._warn(beat.result)
        elif beat.arrival and isinstance(beat.arrival.event, Progress) and self.stream.isatty():
            self._frame(beat, beat.arrival.event)

    def _warn(self, result: RunResult) -> None:
        """Once a session for each kind, with the figures of the first run that showed it."""
        for text in clocks.card_warnings(result.card) if result.card_used else ():
            kind = text.partition(":")[0]
            if kind not in self._warned:
                self._warned.add(kind)
                self._line(f"warning: {clean(text)}", "\n")

    def _frame(self, beat: Beat, event: Progress) -> None:
        if time.monotonic() - self._drawn < 0.2:
            return
        self._drawn = time.monotonic()
        of = "priming" if beat.stage == "priming" else f"block {beat.block + 1}/{beat.blocks}"
        share = (event.step - self.steps[0]) / max(1, self.steps[1] - self.steps[0])
        self._line(f"{of}  {clean(beat.arm)}  {share:4.0%}  loss {event.loss:.4f}  {self._left()}", "")

    def _left(self) -> str:
        """From whole blocks only: a guess from half a block would jump about."""
        if not self.blocks_done:
            return ""
        each = (self._block_ended - self._begin) / self.blocks_done
        left = each * self.blocks_left - (time.monotonic() - self._block_ended)
        return f"about {duration_text(max(0.0, left))} left"

    def _line(self, text: str, end: str) -> None:
        start = "\r\x1b[K" if self.stream.isatty() else ""
        print(start + text.rstrip(), end=end, file=self.stream, flush=True)
