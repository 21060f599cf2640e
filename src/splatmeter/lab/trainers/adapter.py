"""What an adapter is, the clock all foreign ones share, and the opt-in line any script can print."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Protocol

from splatmeter.events import Event, Failed, Finished, Progress, Started, Warned, from_line

MARK = ":::SPLATMETER "
WENT_BACK = "The progress bar went back"
"""How a warning begins that the audit looks for."""


class Adapter(Protocol):
    """Fed with lines and their arrival times; never looks at a clock itself."""

    def line(self, stream: str, text: str, seconds: float) -> Iterator[Event]: ...

    def end(self, code: int, seconds: float) -> Iterator[Event]:
        """Called when the process has ended without saying Finished or Failed itself."""
        ...


class SegmentClock:
    """Training time from arrivals; a cut takes out everything up to the next tick (evaluation, saving)."""

    def __init__(self) -> None:
        self.value = 0.0
        self._last: float | None = None

    def tick(self, seconds: float) -> float:
        if self._last is not None:
            self.value += max(0.0, seconds - self._last)
        self._last = seconds
        return self.value

    def cut(self) -> None:
        self._last = None


class EventLines:
    """Our own trainer, or any that prints event lines; everything else it prints is only captured."""

    def __init__(self) -> None:
        self._step = 0

    def line(self, stream: str, text: str, seconds: float) -> Iterator[Event]:
        if stream == "stdout" and text.startswith("{"):
            event = sound(text)
            if event is not None:
                self._step = getattr(event, "step", self._step)
                yield event

    def end(self, code: int, seconds: float) -> Iterator[Event]:
        yield Failed(
            self._step, f"the trainer ended with {exit_text(code)} before saying that it had finished"
        )


class Foreign:
    """Base of the adapters: keeps step, loss, count and clock; subclasses read one trainer's lines.

    Two Progress events with the same clock and different steps are the sign of a cut:
    those steps were not timed, and whoever computes a rate leaves them out.
    """

    def __init__(self, start_step: int = 0, end_step: int = 0) -> None:
        self.start_step = start_step
        self.end_step = end_step
        self.clock = SegmentClock()
        self.step = start_step
        self.loss = float("nan")
        self.gaussians = 0
        self._begun = False
        self._last: tuple[int, float] | None = None
        self._paused = False
        self._went_back = False
        self._peaks: dict[str, int] = {}

    def line(self, stream: str, text: str, seconds: float) -> Iterator[Event]:
        text = text.strip()
        if not self._begun:
            self._begun = True
            yield Started({"trainer": type(self).__name__}, self.start_step, 0, (), ())
        if text.startswith(MARK):
            yield from self._marked(text[len(MARK) :], seconds)
        elif text:
            with contextlib.suppress(ValueError):  # what only looks like a number is no progress
                yield from self.read(stream, text, seconds)

    def read(self, stream: str, text: str, seconds: float) -> Iterator[Event]:
        """One trainer's own lines."""
        return iter(())

    def end(self, code: int, seconds: float) -> Iterator[Event]:
        if code == 0:
            peaks = self._peaks
            yield Finished(
                self.step, self.clock.value, self.gaussians, loss=self.loss, peak_memory_bytes=peaks
            )
        else:
            yield Failed(self.step, f"the trainer ended with {exit_text(code)}")

    def progress(self, step: int, seconds: float) -> Iterator[Event]:
        """A frame. Bars are redrawn without progress, and a second bar may count anew: only growth counts."""
        if self._last and step < self._last[0] and not self._paused and not self._went_back:
            self._went_back = True
            yield Warned(f"{WENT_BACK} from step {self._last[0]} to step {step}.")
        if self._paused or (self._last and step <= self._last[0]):
            return
        self.step = step
        clock = self.clock.tick(seconds)
        self._last = (step, clock)
        yield Progress(step, clock, self.loss, self.gaussians)

    def absolute(self, count: int, total: int) -> int:
        """The original's bar counts from zero again after a resume: 600/1000 may mean iteration 3600 of
        4000.
        """
        resumed = self.start_step > 0 and total == self.end_step - self.start_step
        return count + self.start_step if resumed else count

    def _marked(self, text: str, seconds: float) -> Iterator[Event]:
        """An event; `{"stage": "evaluation"}`, which stops the clock until "training"; or torch's own peaks:

        `{"memory": {"stage": "training", "allocated": BYTES, "reserved": BYTES, "retries": COUNT}}`.
        """
        try:
            record = json.loads(text)
        except ValueError:
            return
        if not isinstance(record, dict):
            return
        if "stage" in record:
            self.clock.cut()
            self._paused = record["stage"] != "training"
        elif isinstance(record.get("memory"), dict):
            self._note_peaks(record["memory"])
        elif record.get("event") == "progress" and isinstance(record.get("step"), int):
            self._note(record)
            yield from self.progress(record["step"], seconds)
        else:
            event = sound(text)
            if event is not None:
                yield event

    def _note_peaks(self, record: dict[str, object]) -> None:
        stage = str(record.get("stage", "training"))
        keys = {"allocated": stage, "reserved": f"{stage} reserved", "retries": f"{stage} retries"}
        for name, key in keys.items():
            size = record.get(name)
            if isinstance(size, int) and 0 < size < 2**63:
                self._peaks[key] = max(size, self._peaks.get(key, 0))

    def _note(self, record: dict[str, object]) -> None:
        loss, count = record.get("loss"), record.get("gaussians")
        self.loss = float(loss) if isinstance(loss, (int, float)) else self.loss
        self.gaussians = count if isinstance(count, int) else self.gaussians


_KINDS_OF_VALUES: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "str": str}


def sound(line: str) -> Event | None:
    """The event of a line, if every field has the type it should have: anyone can print such a line."""
    try:
        event = from_line(line)
    except ValueError:
        return None
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        plain = _KINDS_OF_VALUES.get(str(field.type))
        if plain and (not isinstance(value, plain) or isinstance(value, bool)):
            return None
        if str(field.type).startswith("Mapping") and not isinstance(value, dict):
            return None
        if str(field.type).startswith("Mapping[str, float]") and not _numbers(value.values()):
            return None
        if str(field.type).startswith("Sequence") and not isinstance(value, (list, tuple)):
            return None
    return event


def _numbers(values: Iterable[object]) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in values)


def exit_text(code: int) -> str:
    """-9 -> 'signal 9'; people mix up the two."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
