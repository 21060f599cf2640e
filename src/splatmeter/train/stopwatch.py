"""The training clock: evaluation, saving and whoever listens to the events are off it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


class Stopwatch:
    """Starts paused, at the seconds an earlier run has already spent."""

    def __init__(self, seconds: float = 0.0, now: Callable[[], float] = perf_counter) -> None:
        self._before = seconds
        self._now = now
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        return self._before + (0.0 if self._since is None else self._now() - self._since)

    def start(self) -> None:
        if self._since is None:
            self._since = self._now()

    def pause(self) -> None:
        self._before, self._since = self.seconds, None

    def another(self, seconds: float) -> Stopwatch:
        """A paused one by the same clock, which shows so many seconds."""
        return Stopwatch(seconds, self._now)

    @contextmanager
    def paused(self) -> Iterator[None]:
        running = self._since is not None
        self.pause()
        try:
            yield
        finally:
            if running:
                self.start()
