"""Training from Python: a run that is followed event by event, or watched to its end."""

from __future__ import annotations

import inspect
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from splatmeter.api.options import TrainOptions
from splatmeter.api.passed_options import folder_given, in_python, settings
from splatmeter.backends.registry import backend
from splatmeter.errors import UsageError
from splatmeter.events import Event, Finished
from splatmeter.scene.scene import detect
from splatmeter.train import loop
from splatmeter.train.config import TrainConfig
from splatmeter.train.earlier import earlier_settings, planned_settings
from splatmeter.train.output_folder import refuse_used_folder
from splatmeter.train.presets import PRESETS, preset_settings

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


class Training(Iterator[Event]):
    """A run that happens as it is iterated over: every `next` trains on to the next event.

    `watch` trains to the end and shows how far it is; `stop` ends it early and in order. A loop that is left
    with ``break`` ends the run at once, and saves nothing more.
    """

    def __init__(self, begin: Callable[[Callable[[], bool]], Generator[Event, None, None]]) -> None:
        """For `train`; `begin` gets the question that a run asks after every step, whether to stop."""
        self._stopping = False
        self._events = begin(lambda: self._stopping)

    def __iter__(self) -> Training:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def stop(self) -> None:
        """Ends the run after its present step: a checkpoint is saved, and the last event tells of it.

        Go on iterating to its end afterwards. `load_model` opens what was saved, and ``train(...,
        resume=True)`` goes on from there.
        """
        self._stopping = True

    def close(self) -> None:
        """Ends the run at once, without saving anything more."""
        self._events.close()

    def watch(self, stream: TextIO | None = None) -> Finished:
        """Trains to the end; one line tells how far it is, and lines above it what happened.

        Interrupting it (the stop button of a notebook, or Ctrl-C) ends the run as `stop` does; a second time
        ends it at once. Returns the last event, whose `reason` is 'completed' or 'interrupted'. `stream` is
        where it writes, by default standard output.

        >>> run = train(demo_scene(quick=True), "output/watched", iterations=20)
        >>> done = run.watch()  # doctest: +ELLIPSIS
        Training: ...
        >>> done.reason, done.step
        ('completed', 20)
        """
        from splatmeter.listeners.notebook_line import LineProgress

        line = LineProgress(stream)
        last: Event | None = None
        try:
            with _interrupt_calls(self.stop):
                for last in self:
                    line(last)
        finally:
            line.close()
        if not isinstance(last, Finished):
            raise UsageError("This training has ended already; call train again.")
        return last


@contextmanager
def _interrupt_calls(stop: Callable[[], None]) -> Iterator[None]:
    """The first interrupt asks politely; the second is what interrupts always were."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before = signal.getsignal(signal.SIGINT)
    usual = before if before is not None else signal.default_int_handler

    def first(*_: Any) -> None:
        signal.signal(signal.SIGINT, usual)
        stop()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def train(
    folder: str | Path,
    output: str | Path,
    *,
    preset: Literal["fast"] | None = None,
    threads: int | None = None,
    device: str = "auto",
    **options: Unpack[TrainOptions],
) -> Training:
    """Trains a model of a scene: iterate over what is returned, or call its `watch`; nothing happens before.

    `folder` is the scene, `output` a folder for the run. Options are those of ``splatmeter train``, spelled
    with underscores; `TrainOptions` explains each. The most used: `iterations`, `eval=True` to hold out test
    views, `resolution`, `max_gaussians`, `seconds` for the best model within a time, `overwrite=True` to
    replace an earlier run, `resume=True` to go on with one. `preset="fast"` takes a fifth to a third of the
    time of 7000 steps. `device` is "cpu", "cuda", "cuda:1" or "auto": a graphics card if there is one that
    passes its self-test.

    >>> garden = demo_scene(quick=True)
    >>> for event in train(garden, "output/garden", eval=True, iterations=30):
    ...     if isinstance(event, Saved):
    ...         print(event.content, "at step", event.step)
    model at step 30
    fused model at step 30
    checkpoint at step 30
    """
    with in_python():
        source, place = folder_given(folder, "folder"), folder_given(output, "output")
        detect(source)
        config = _config(source, place, preset, dict(options))
        refuse_used_folder(config)
        engine = backend(threads=threads, device=device, only_on_cpu=config.only_on_cpu)
    return Training(lambda stopping: loop.train(config, engine, stopping))


def _config(folder: Path, output: Path, preset: str | None, given: dict[str, Any]) -> TrainConfig:
    """What is given, over the settings of an earlier run, a plan or a preset where one is asked for."""
    options = settings(TrainConfig, given, TrainOptions.__annotations__)
    if preset is not None and preset not in PRESETS:
        raise UsageError(f"There is no preset {preset!r}; there is: {', '.join(PRESETS)}.")
    of_time = [name for name in ("seconds", "plan") if options.get(name) is not None]
    for other in ("iterations", "preset") if of_time else ():
        if other in options or (other == "preset" and preset is not None):
            raise UsageError(f"{of_time[0]} decides on settings and steps itself: leave out {other}.")
    if options.get("resume") and (output / "config.json").is_file():
        base = earlier_settings(output)
    elif options.get("plan") is not None:
        base = planned_settings(options["plan"])
    else:
        chosen = "fast" if of_time else preset
        base = preset_settings(chosen, options) if chosen is not None else {}
    return TrainConfig(**{**base, **options, "source_path": folder, "model_path": output})


def _signature() -> inspect.Signature:
    """With every option and its default, for notebooks: they look at the function, not at its source."""
    own, keyword = inspect.signature(train), inspect.Parameter.KEYWORD_ONLY
    every = inspect.signature(TrainConfig).parameters
    listed = [every[name].replace(kind=keyword) for name in TrainOptions.__annotations__]
    kept = [value for value in own.parameters.values() if value.kind is not inspect.Parameter.VAR_KEYWORD]
    return own.replace(parameters=[*kept, *listed])


train.__signature__ = _signature()  # type: ignore[attr-defined]
