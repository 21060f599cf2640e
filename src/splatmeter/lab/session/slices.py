"""Two living processes that take turns: pairs of slices cancel drift that whole runs cannot.

One arm is stopped with SIGSTOP when it reports a step, the other woken with SIGCONT. A trainer's own clock
runs on while it is stopped, so slices are timed here, from waking to the report that ends the slice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from splatmeter.errors import UsageError
from splatmeter.events import Progress
from splatmeter.lab.executor import Arrival, signal_group
from splatmeter.lab.record.result import RunTiming
from splatmeter.lab.samples.run_sample import SliceSample
from splatmeter.lab.session.run import Run


@dataclass(slots=True)
class _Turn:
    """One arm: its events and whether it still runs."""

    run: Run
    events: Iterator[Arrival]
    stopped: bool = False
    over: bool = False


class Slices:
    def __init__(self, runs: list[Run], seconds: float, seed: int) -> None:
        import signal

        if not hasattr(signal, "SIGSTOP"):
            raise UsageError(
                "--slices needs SIGSTOP, which this system does not have; lengthen the runs instead."
            )
        self.runs = runs
        self.seconds = seconds
        self.samples: list[SliceSample] = []
        self.steps_per_slice = 0
        self._order = random.Random(seed)
        self._turns = [_Turn(run, run.events()) for run in runs]

    def alternate(self) -> Iterator[tuple[Run, Arrival]]:
        """Warm-up of both, then pairs of slices in random order, then both run to their end."""
        window = self.runs[0].window
        border = window.first + window.warm_up
        try:
            for turn in self._turns:
                yield from self._warm_up(turn, border)
            index = 0
            step = self._turns[0].run.last_step()
            while step + self.steps_per_slice <= window.last and not any(turn.over for turn in self._turns):
                target = step + self.steps_per_slice
                for turn in self._order.sample(self._turns, len(self._turns)):
                    yield from self._slice(turn, index, step, target)
                step, index = target, index + 1
            for turn in self._turns:
                yield from self._until(turn, window.last * 2)
        finally:
            for turn in self._turns:
                self._wake(turn)
                turn.events.close()  # type: ignore[attr-defined]

    def timing(self, run: Run) -> RunTiming | None:
        """The arm's slices together, scaled to the whole window like any run with stretches cut out."""
        mine = [sample for sample in self.samples if sample.arm == run.spec.identity.arm]
        measured = sum(sample.last_step - sample.first_step for sample in mine)
        if not measured:
            return None
        window = run.window
        steps = window.last - window.first - window.warm_up
        seconds = sum(sample.seconds for sample in mine) * steps / measured
        return RunTiming(steps, seconds, measured, steps / seconds)

    def record(self, block: int) -> dict[str, Any]:
        return {
            "block": block,
            "slice_seconds": self.seconds,
            "steps_per_slice": self.steps_per_slice,
            "slices": [asdict(sample) for sample in self.samples],
        }

    def _warm_up(self, turn: _Turn, border: int) -> Iterator[tuple[Run, Arrival]]:
        """The first arm's speed in the second half of its warm-up sets the number of steps in a slice, for
        both.
        """
        seen: list[tuple[int, float]] = []
        for run, arrival in self._until(turn, border):
            if isinstance(arrival.event, Progress):
                seen.append((arrival.event.step, arrival.seconds))
            yield run, arrival
        if not self.steps_per_slice and len(seen) >= 2:
            middle, last = seen[len(seen) // 2 - 1], seen[-1]
            rate = (last[0] - middle[0]) / max(1e-6, last[1] - middle[1])
            interval = max(1, seen[-1][0] - seen[-2][0])
            self.steps_per_slice = max(1, round(self.seconds * rate / interval)) * interval
        self.steps_per_slice = self.steps_per_slice or 10
        self._stop(turn)

    def _slice(self, turn: _Turn, index: int, first: int, target: int) -> Iterator[tuple[Run, Arrival]]:
        self._wake(turn)
        begin = time.perf_counter()
        yield from self._until(turn, target)
        seconds = time.perf_counter() - begin
        self._stop(turn)
        if turn.run.last_step() == target:
            identity = turn.run.spec.identity
            self.samples.append(SliceSample(identity.arm, identity.block, index, first, target, seconds))

    def _until(self, turn: _Turn, step: int) -> Iterator[tuple[Run, Arrival]]:
        self._wake(turn)
        if turn.over or turn.run.last_step() >= step:
            return
        for arrival in turn.events:
            yield turn.run, arrival
            if isinstance(arrival.event, Progress) and arrival.event.step >= step:
                return
        turn.over = True

    def _stop(self, turn: _Turn) -> None:
        if turn.run.pid and not turn.over and not turn.stopped:
            signal_group(turn.run.pid, "SIGSTOP")
            turn.stopped = True

    def _wake(self, turn: _Turn) -> None:
        if turn.stopped:
            signal_group(turn.run.pid, "SIGCONT")
            turn.stopped = False
