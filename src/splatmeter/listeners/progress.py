"""What a person sees while training: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, TextIO

from splatmeter.events import (
    Densified,
    Evaluated,
    Event,
    Finished,
    Progress,
    Saved,
    Started,
    Warned,
)
from splatmeter.units import bytes_text, count_text, duration_text

QUIET_SECONDS = 5.0
"""At most one plain progress line in so many seconds."""
RECENT_REPORTS = 30


class Speed:
    """Steps per second of the training clock over the latest reports."""

    def __init__(self) -> None:
        self._reports: deque[tuple[int, float]] = deque(maxlen=RECENT_REPORTS)

    def note(self, step: int, clock_seconds: float) -> None:
        self._reports.append((step, clock_seconds))

    @property
    def value(self) -> float:
        if len(self._reports) < 2:
            return 0.0
        (first, begin), (last, end) = self._reports[0], self._reports[-1]
        return (last - first) / (end - begin) if end > begin else 0.0


def sentence(event: Event) -> str:
    """What happened, in one line; empty for what is not worth one. A failure is raised as well, and whoever
    started the run says it: telling it here too would say everything twice."""
    if isinstance(event, Started):
        views = f"{len(event.train_images)} training and {len(event.test_images)} test views"
        where = f" from step {event.step}" if event.step else ""
        exposed = ", exposures learned" if event.config.get("exposure", "none") != "none" else ""
        return f"Training{where}: {count_text(event.gaussians)} Gaussians, {views}{exposed}"
    if isinstance(event, Evaluated):
        values = "  ".join(f"{name} {_metric(name, value)}" for name, value in event.metrics.items())
        fitted = "" if event.exposure == "none" else f", exposure protocol {event.exposure}"
        return f"[step {event.step}] {event.split}{fitted}: {values}{_worst(event)}"
    if isinstance(event, Saved):
        return f"[step {event.step}] saved {event.content}: {event.path}"
    if isinstance(event, Warned):
        return f"Warning: {event.message} {event.remedy}".rstrip()
    if isinstance(event, Finished):
        peak = max(event.peak_memory_bytes.values(), default=0)
        ending = "Finished" if event.reason == "completed" else "Interrupted"
        return (
            f"{ending} at step {event.step} after {duration_text(event.clock_seconds)} of training: "
            f"{count_text(event.gaussians)} Gaussians, loss {event.loss:.5f}, peak memory {bytes_text(peak)}"
        )
    return ""


def _metric(name: str, value: float) -> str:
    return f"{value:.2f} dB" if name == "psnr" else f"{value:.4f}"


def _worst(event: Evaluated) -> str:
    """The worst view beside the mean: a blackened sky hides in an average."""
    values = {name: row["psnr"] for name, row in event.per_view.items() if "psnr" in row}
    if len(values) < 2:
        return ""
    name = min(values, key=lambda key: values[key])
    return f"  (worst view {name}: {values[name]:.2f} dB)"


class PlainProgress:
    """Lines for logs and pipes."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = monotonic) -> None:
        self._stream = stream
        self._now = now
        self._last = -QUIET_SECONDS
        self._iterations = 0
        self._speed = Speed()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self._iterations = int(event.config.get("iterations", 0))
        if isinstance(event, Progress):
            self._speed.note(event.step, event.clock_seconds)
            if self._now() - self._last < QUIET_SECONDS:
                return
            self._last = self._now()
            self._say(self._line(event))
        elif not isinstance(event, Densified) and (text := sentence(event)):
            self._say(text)

    def close(self) -> None:
        self._stream.flush()

    def _line(self, event: Progress) -> str:
        speed = self._speed.value
        pace = f"{speed:.1f} it/s  " if speed else ""  # unknown at the first report
        rest = f", {duration_text((self._iterations - event.step) / speed)} left" if speed else ""
        return (
            f"step {event.step}/{self._iterations}  loss {event.loss:.5f}  {pace}"
            f"{count_text(event.gaussians)} Gaussians  {bytes_text(event.memory_bytes)}{rest}"
        )

    def _say(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class BarProgress:
    """A rich bar that stays below the lines of what happened."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._bar: Any = RichProgress(
            TextColumn("Training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[details]}"),
            TimeElapsedColumn(),
            console=Console(file=stream, highlight=False),
            refresh_per_second=4,
        )
        self._task: Any = None
        self._iterations = 0
        self._speed = Speed()

    def __call__(self, event: Event) -> None:
        if text := sentence(event):
            self._bar.console.print(text, markup=False, soft_wrap=True)
        if isinstance(event, Started):
            self._iterations = int(event.config.get("iterations", 0))
            self._task = self._bar.add_task("train", total=self._iterations, completed=event.step, details="")
            self._bar.start()
        elif isinstance(event, Progress) and self._task is not None:
            self._speed.note(event.step, event.clock_seconds)
            self._bar.update(self._task, completed=event.step, details=self._details(event))

    def close(self) -> None:
        self._bar.stop()

    def _details(self, event: Progress) -> str:
        speed = self._speed.value
        rest = f"  {duration_text((self._iterations - event.step) / speed)} left" if speed else ""
        return (
            f"{speed:.1f} it/s  loss {event.loss:.5f}  {count_text(event.gaussians)} Gaussians  "
            f"{bytes_text(event.memory_bytes)}{rest}"
        )


def progress_for(stream: TextIO = sys.stderr) -> PlainProgress | BarProgress:
    return BarProgress(stream) if stream.isatty() else PlainProgress(stream)
