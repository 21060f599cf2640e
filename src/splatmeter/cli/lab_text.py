"""Plain tables and the line that shows how far a session is."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from splatmeter.events import Progress
from splatmeter.lab.session.session import Beat
from splatmeter.units import duration_text

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


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
        self, arms: int, blocks: int, already: int, steps: tuple[int, int], stream: TextIO = sys.stderr
    ) -> None:
        self.arms, self.steps, self.stream = arms, steps, stream
        self.runs_left = arms * max(0, blocks - already)
        self.done_seconds: list[float] = []
        self._begin = time.monotonic()
        self._drawn = 0.0
        self._arm = ""

    def show(self, beat: Beat) -> None:
        if beat.arm and beat.arm != self._arm and beat.result is None:
            self._arm, self._begin = beat.arm, time.monotonic()
        if beat.result is not None:
            self._ended(beat)
        elif beat.arrival and isinstance(beat.arrival.event, Progress) and self.stream.isatty():
            self._frame(beat, beat.arrival.event)

    def _ended(self, beat: Beat) -> None:
        self.done_seconds.append(time.monotonic() - self._begin)
        self.runs_left = max(0, self.runs_left - 1)
        self._arm = ""
        timing = (beat.result or {}).get("timing") or {}
        rate = f"{timing['steps_per_second']:.3f} it/s" if timing else "no time"
        of = f"block {beat.block + 1}/{beat.blocks}"
        self._line(f"{of}  {clean(beat.arm)}  {rate}  {self._left()}", "\n")

    def _frame(self, beat: Beat, event: Progress) -> None:
        if time.monotonic() - self._drawn < 0.2:
            return
        self._drawn = time.monotonic()
        of = "priming" if beat.stage == "priming" else f"block {beat.block + 1}/{beat.blocks}"
        share = (event.step - self.steps[0]) / max(1, self.steps[1] - self.steps[0])
        self._line(f"{of}  {clean(beat.arm)}  {share:4.0%}  loss {event.loss:.4f}  {self._left(share)}", "")

    def _left(self, share: float = 0.0) -> str:
        if not self.runs_left:
            return "last run done"
        if self.done_seconds:
            each = sum(self.done_seconds) / len(self.done_seconds)
            return f"about {duration_text(max(0.0, each * (self.runs_left - share)))} left"
        spent = time.monotonic() - self._begin
        return f"about {duration_text(spent / share * (self.runs_left - share))} left" if share > 0.05 else ""

    def _line(self, text: str, end: str) -> None:
        start = "\r\x1b[K" if self.stream.isatty() else ""
        print(start + text, end=end, file=self.stream, flush=True)
