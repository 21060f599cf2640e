"""Progress as one line that is written over and over, as every notebook can show it."""

from __future__ import annotations

import sys
from typing import TextIO

from splatmeter.events import Densified, Event, Planned, Progress, Started
from splatmeter.listeners.progress import Plans, Speed, sentence
from splatmeter.units import count_text, duration_text


class LineProgress:
    """What happened goes above the line, for good."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._speed = Speed()
        self._plans = Plans()
        self._iterations = 0
        self._width = 0  # of the line that stands there

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self._iterations = int(event.config.get("iterations", 0))
        if isinstance(event, Planned):
            self._iterations = event.iterations
        if isinstance(event, Progress):
            self._speed.note(event.step, event.clock_seconds)
            self._show(self._line(event))
        elif self._worth_a_line(event) and (text := sentence(event)):
            self._show(text)
            self.close()

    def close(self) -> None:
        """What stands there stays."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
        self._width = 0

    def _worth_a_line(self, event: Event) -> bool:
        if isinstance(event, Planned):
            return self._plans.worth_telling(event)
        return not isinstance(event, Densified)

    def _line(self, event: Progress) -> str:
        speed = self._speed.value
        rest = f", {duration_text((self._iterations - event.step) / speed)} left" if speed else ""
        made = f"loss {event.loss:.4f}, {count_text(event.gaussians)} Gaussians"
        return f"step {event.step} of {self._iterations}: {made}{rest}"

    def _show(self, text: str) -> None:
        """Over what stands there; blanks cover the rest of it, since not every notebook can clear a line."""
        first, *more = text.split("\n")
        self._stream.write("\r" * bool(self._width) + "\n".join([first.ljust(self._width), *more]))
        self._stream.flush()
        self._width = len((more or [first])[-1])
