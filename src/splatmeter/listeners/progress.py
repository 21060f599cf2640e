"""What a person sees while training: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, TextIO

from splatmeter.events import (
    Densified,
    Evaluated,
    Event,
    Finished,
    Planned,
    Progress,
    Saved,
    Started,
    Warned,
)
from splatmeter.listeners import memory_words
from splatmeter.listeners.memory_words import Forecasts
from splatmeter.units import bytes_text, count_text, duration_text

QUIET_SECONDS = 5.0
"""At most one plain progress line in so many seconds."""
RECENT_REPORTS = 30
WORTH_TELLING = 0.15
"""A change of the number of steps from which a new plan is told."""
SMALLEST_BAR = 4
"""Columns that the bar keeps."""
_GAP = "  "
WIDTH = 80
"""Columns that lines in logs and pipes keep to."""


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
        begin = f"From step {event.step}" if event.step else "Training"
        needed = "".join(f"\n{line}" for line in [memory_words.at_the_start(event)] if line)
        exposed = "\nExposures are learned." if event.config.get("exposure", "none") != "none" else ""
        return f"{begin}: {count_text(event.gaussians)} Gaussians, {_photos(event)}{needed}{exposed}"
    if isinstance(event, Evaluated):
        values = "  ".join(f"{name} {_metric(name, value)}" for name, value in event.metrics.items())
        fitted = "" if event.exposure == "none" else f", exposure protocol {event.exposure}"
        return f"[step {event.step}] {event.split}{fitted}: {values}{_worst(event)}"
    if isinstance(event, Planned):
        size = f", photos at 1/{event.divisor} of their size" if event.divisor > 1 else ""
        left = f", {duration_text(event.seconds_left)} left" if event.seconds else ""
        made = f"{event.iterations} steps, {count_text(event.gaussians)} Gaussians"
        return f"[step {event.step}] plan: {made}{size}{left}"
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


def _photos(event: Started) -> str:
    """How many, how large, and how many are only for tests: short, so that a line of 80 columns holds it."""
    size = ""
    if event.photo_sizes:
        size = " {}{}x{}".format("up to " if len(event.photo_sizes) > 1 else "of ", *event.photo_sizes[0])
    tests = f", {len(event.test_images)} for tests" if event.test_images else ""
    return f"{len(event.train_images)} photos{size}{tests}"


def _metric(name: str, value: float) -> str:
    return f"{value:.2f} dB" if name == "psnr" else f"{value:.4f}"


def _worst(event: Evaluated) -> str:
    """The worst view beside the mean: a blackened sky hides in an average."""
    values = {name: row["psnr"] for name, row in event.per_view.items() if "psnr" in row}
    if len(values) < 2:
        return ""
    name = min(values, key=lambda key: values[key])
    return f"  (worst view {name}: {values[name]:.2f} dB)"


class Plans:
    """Which plans are worth a line: the first that was measured, and what differs from the last one told."""

    def __init__(self) -> None:
        self._told: Planned | None = None

    def worth_telling(self, event: Planned) -> bool:
        if event.step == 0:
            return False
        before, self._told = self._told, self._told or event
        if before is not None and not _far_apart(before, event):
            return False
        self._told = event
        return True


def _far_apart(before: Planned, now: Planned) -> bool:
    changed = abs(now.iterations - before.iterations) > WORTH_TELLING * before.iterations
    return changed or now.divisor != before.divisor


class PlainProgress:
    """Lines for logs and pipes."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = monotonic) -> None:
        self._stream = stream
        self._now = now
        self._last = -QUIET_SECONDS
        self._iterations = 0
        self._plans = Plans()
        self._forecasts = Forecasts()
        self._speed = Speed()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self._iterations = int(event.config.get("iterations", 0))
        if isinstance(event, Planned):
            self._iterations = event.iterations
            if self._plans.worth_telling(event):
                self._say(sentence(event))
        elif isinstance(event, Progress):
            self._speed.note(event.step, event.clock_seconds)
            if self._forecasts.worth_telling(event):
                self._say(memory_words.on_the_way(event))
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
        pace = [(2, f"{speed:.1f} it/s")] if speed else []  # unknown at the first report
        rest = [(1, f"{duration_text((self._iterations - event.step) / speed)} left")] if speed else []
        parts = [
            (0, f"step {event.step}/{self._iterations}"),
            (3, f"loss {event.loss:.5f}"),
            *pace,
            (4, f"{count_text(event.gaussians)} Gaussians"),
            (5, bytes_text(event.memory_bytes)),
            *rest,
        ]
        return fitting(parts, WIDTH)

    def _say(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class BarProgress:
    """A rich bar that stays below the lines of what happened; the narrower the terminal, the less it says."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        console = Console(file=stream, highlight=False)
        self._bar: Any = RichProgress(
            BarColumn(bar_width=None),
            TextColumn("{task.fields[details]}", markup=False),
            console=console,
            expand=True,
            refresh_per_second=4,
        )
        self._task: Any = None
        self._iterations = 0
        self._plans = Plans()
        self._forecasts = Forecasts()
        self._speed = Speed()

    def __call__(self, event: Event) -> None:
        silent = isinstance(event, Planned) and not self._plans.worth_telling(event)
        if (text := sentence(event)) and not silent:
            self._bar.console.print(text, markup=False, soft_wrap=True)
        if isinstance(event, Planned):
            self._iterations = event.iterations
            if self._task is not None:
                self._bar.update(self._task, total=event.iterations)
        if isinstance(event, Started):
            self._iterations = int(event.config.get("iterations", 0))
            details = f"{event.step}/{self._iterations}"
            self._task = self._bar.add_task(
                "train", total=self._iterations, completed=event.step, details=details
            )
            self._bar.start()
        elif isinstance(event, Progress) and self._task is not None:
            self._speed.note(event.step, event.clock_seconds)
            if self._forecasts.worth_telling(event):
                self._bar.console.print(memory_words.on_the_way(event), markup=False, soft_wrap=True)
            room = self._bar.console.width - SMALLEST_BAR - 1
            details = fitting(self._details(event), room)
            self._bar.update(self._task, completed=event.step, details=details)

    def close(self) -> None:
        self._bar.stop()

    def _details(self, event: Progress) -> list[tuple[int, str]]:
        """In the order they stand in, each with its importance."""
        speed = self._speed.value
        pace = [(2, f"{speed:.1f} it/s")] if speed else []
        rest = [(1, f"{duration_text((self._iterations - event.step) / speed)} left")] if speed else []
        return [
            (0, f"{event.step}/{self._iterations}"),
            *pace,
            (3, f"loss {event.loss:.5f}"),
            (4, f"{count_text(event.gaussians)} Gaussians"),
            (5, bytes_text(event.memory_bytes)),
            *rest,
        ]


def fitting(parts: Sequence[tuple[int, str]], room: int) -> str:
    """The most important parts (lowest numbers) that fit together, in their order."""
    kept = list(parts)
    while len(kept) > 1 and len(_GAP.join(text for _, text in kept)) > room:
        kept.remove(max(kept))
    return _GAP.join(text for _, text in kept)


def progress_for(stream: TextIO = sys.stderr) -> PlainProgress | BarProgress:
    return BarProgress(stream) if stream.isatty() else PlainProgress(stream)
