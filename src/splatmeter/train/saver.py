"""What a run leaves on the disk between two steps: models and checkpoints.

A disk that is full costs what was to be written, not the run. Only without its last model a run was for
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from splatmeter.errors import OutputError
from splatmeter.events import Event, Saved, Warned
from splatmeter.process_memory import StagePeaks
from splatmeter.train.assemble import Parts
from splatmeter.train.output_folder import OutputFolder


class Saver:
    def __init__(self, parts: Parts, output: OutputFolder, peaks: StagePeaks) -> None:
        self._parts = parts
        self._output = output
        self._peaks = peaks
        self._safe_since = time.monotonic()
        self.last_checkpoint = "" if parts.started_from is None else str(parts.started_from)

    def saves_at(self, step: int) -> bool:
        return step in self._parts.config.save_iterations or step == self._parts.config.iterations

    def checkpoints_at(self, step: int) -> bool:
        config = self._parts.config
        interval = config.checkpoint_interval
        return step in config.checkpoint_iterations or (interval is not None and step % interval == 0)

    def model(self, step: int) -> Iterator[Event]:
        try:
            with self._peaks.during("saving"):
                saved = list(self._output.save_model(self._parts.state))
        except OutputError as problem:
            if step == self._parts.config.iterations:
                raise
            yield without(f"model of step {step}", problem)
        else:
            yield from saved

    def stay_safe(self) -> Iterator[Event]:
        """Every few minutes and at the end: whoever pulls the plug loses those minutes only."""
        state, minutes = self._parts.state, self._parts.config.checkpoint_minutes
        ended = state.step == self._parts.config.iterations
        if not minutes or not (ended or time.monotonic() - self._safe_since > 60 * minutes):
            return
        self._safe_since = time.monotonic()
        state.catch_up()
        if not self.checkpoints_at(state.step):
            yield from self.checkpoint_if_there_is_room("safety checkpoint", safety=True)

    def checkpoint_if_there_is_room(self, name: str, safety: bool = False) -> Iterator[Event]:
        try:
            yield self.checkpoint(safety)
        except OutputError as problem:
            yield without(name, problem)

    def checkpoint(self, safety: bool = False) -> Saved:
        parts, keeper = self._parts, self._parts.keeper
        with off_the_clock(parts), self._peaks.during("saving"):
            seconds, timing = parts.clock.seconds, None if keeper is None else keeper.record()
            engine = parts.backend.facts
            saved = self._output.save_checkpoint(parts.state, parts.scene, engine, seconds, safety, timing)
        self.last_checkpoint = saved.path
        return saved

    def plan(self) -> Iterator[Warned]:
        """As it is now, for a run that was given a time."""
        keeper = self._parts.keeper
        assert keeper is not None
        try:
            self._output.save_plan(keeper.whole())
        except OutputError as problem:
            yield without("plan", problem)


def without(name: str, problem: OutputError) -> Warned:
    return Warned(f"No {name} could be written: {problem}", "Training goes on without it.")


@contextmanager
def off_the_clock(parts: Parts) -> Iterator[None]:
    parts.backend.synchronize()
    with parts.clock.paused():
        yield
