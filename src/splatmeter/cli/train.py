"""`splatmeter train`: the original's flags, our additions, signals, and who listens."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import sys
import time
import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from splatmeter.backends.registry import BackendName
from splatmeter.cli import arguments
from splatmeter.cli.resumed_run import resumed_settings
from splatmeter.errors import UsageError
from splatmeter.events import Event, Finished
from splatmeter.train.config import TrainConfig
from splatmeter.train.earlier import planned_settings
from splatmeter.train.presets import described, preset_settings

if TYPE_CHECKING:
    from splatmeter.backend import Backend
    from splatmeter.train.stopwatch import Stopwatch

SHORT = {
    "-s": "--source-path",
    "-m": "--model-path",
    "-i": "--images",
    "-r": "--resolution",
    "-w": "--white-background",
    "-k": "--kernel-size",
}
DESCRIPTION = f"""Train a scene from photos with poses.

A scene is a COLMAP folder (sparse/ beside images/), a NeRF-synthetic one (transforms_train.json), a
multi-scale Blender one, or nerfstudio's (transforms.json). Options that the original trainer of
Mip-Splatting has keep their names, with dashes or underscores, and their defaults. Models go to
point_cloud/iteration_N in the output folder: fused.ply is the one for viewers. Ctrl-C saves a checkpoint
and says how to go on.

--preset fast stands for {described("fast")}.

Examples:
  splatmeter train -s scenes/garden -m output/garden --eval -r 4
  splatmeter train -s scenes/garden -m output/small --eval --iterations 7000 --max-gaussians 500000
  splatmeter train -s scenes/garden -m output/fast --eval --preset fast
  splatmeter train -s scenes/garden -m output/lunch --eval --minutes 5
  splatmeter train --plan output/lunch/plan.json -s scenes/garden -m output/again
  splatmeter train -s scenes/garden -m output/fixed --eval --densification mcmc --max-gaussians 1000000
  splatmeter train -s scenes/garden -m output/plain --eval --plain-3dgs --densification 3dgs
  splatmeter train -m output/garden --resume
  splatmeter train -s scenes/garden -m output/small --eval --memory 4G
  splatmeter train -s scenes/city -m output/city --eval --blocks 3x2
  splatmeter train -s scenes/garden --dry-run"""


@dataclass(frozen=True)
class TrainArguments(TrainConfig):
    """Everything about a run, and how this command behaves."""

    minutes: float | None = None
    """The same as --seconds, in minutes: as good a model as this machine can make in the time."""
    preset: Literal["none", "fast"] = "none"
    """Settings that belong together, instead of the defaults (listed above); your own options come first."""
    backend: BackendName = "native"
    """The fast engine, or the slow and readable torch twin on the CPU."""
    device: str = "auto"
    """cpu, cuda, cuda:1, ... or auto: a graphics card if there is one that passes its self-test."""
    threads: int | None = None
    """Threads of the engine; by default one per processor this process may use."""
    blocks: str | None = None
    """Divide the scene, such as 2x2, train one block after the other, and join them: docs/large_scenes.md."""
    only_block: str | None = None
    """Train only this block, such as 1-2, and join nothing: for other machines; the first makes the plan."""
    polish: int = 0
    """With --blocks: train the joined model so many steps more, where that fits into memory."""
    on: Literal["slurm", "local"] | None = None
    """With --blocks: one job for each block, on SLURM or on this machine (needs the cluster extra)."""
    jobs: int = 0
    """With --on: at most so many at once; by default all on SLURM, one on this machine."""
    job_option: tuple[str, ...] = ()
    """With --on slurm: for sbatch, such as partition=cpu mem=60G."""
    job_minutes: int = 0
    """With --on: the time limit of a job, by default a day; one that it ends goes on in another."""
    dry_run: bool = False
    """Say in five lines what would be trained and how much memory it takes, and do nothing."""
    json: bool = False
    """With --dry-run: print everything as JSON."""
    events_stdout: bool = False
    """Write event lines to standard output, for programs that listen."""
    tensorboard: bool = False
    """Also write for TensorBoard into the output folder (needs the tensorboard extra)."""
    quiet: bool = False
    """Show no progress."""
    view: bool = False
    """Show the scene in the browser as it trains (needs the view extra)."""
    view_port: int = 8080
    """Port of that page; the next free one where it is in use, 0 for any."""
    view_host: str = "127.0.0.1"
    """Address it listens on; 0.0.0.0 lets other machines look, without a password."""

    def config(self) -> TrainConfig:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(TrainConfig)}
        if self.minutes is not None:
            values["seconds"] = 60 * self.minutes
        if self.tensorboard:
            values["evaluation_images"] = max(5, self.evaluation_images)
        return TrainConfig(**values)


class Listener(Protocol):
    def __call__(self, event: Event) -> None: ...
    def close(self) -> None: ...


def run(words: Sequence[str]) -> int:
    command = since_the_command_began()
    chosen = parse(words)
    if chosen.source_path == Path():
        raise UsageError("Which scene? Pass its folder with -s. See splatmeter train --help")
    from splatmeter.cli import blocks_sense, train_blocks
    from splatmeter.train.output_folder import with_output_folder

    config = with_output_folder(chosen.config())
    if blocks_sense.concerns(config, chosen):
        return train_blocks.run(config, chosen, command)
    if chosen.dry_run:
        dry_run(config, chosen)
        return 0
    if chosen.json:
        raise UsageError("--json goes with --dry-run; a run tells its events with --events-stdout.")
    backend = engine_for(config, chosen)
    present = listeners(config, chosen)
    seen = watched(backend, config, chosen, present) if chosen.view else backend
    return follow(config, seen, present, command)


def since_the_command_began() -> Stopwatch:
    """A running clock; imports take a part of a second that counts too."""
    from splatmeter.cli import main
    from splatmeter.train.stopwatch import Stopwatch

    began, main.began = main.began, None
    clock = Stopwatch(0.0 if began is None else perf_counter() - began)
    clock.start()
    return clock


def parse(words: Sequence[str]) -> TrainArguments:
    """A preset's settings are defaults; with --resume, those of the run that goes on are."""
    kept = _here_by_name(arguments.without_ignored(arguments.normalise(words, SHORT)))
    _refuse_contradictions(kept)
    chosen = _chosen(kept)
    if chosen.minutes is not None and not 0 < chosen.minutes < math.inf:
        raise UsageError(f"--minutes is {chosen.minutes:g}, but must be above 0.")
    if chosen.resume and _has_time(chosen) and "--iterations" in _names(kept):
        raise UsageError("This run was given a time, not a number of steps: go on without --iterations.")
    return chosen


def _chosen(kept: list[str]) -> TrainArguments:
    chosen = _parse(kept, {})
    resumed = resumed_settings(chosen)
    if resumed is not None:
        return _parse(kept, resumed)
    if chosen.plan is not None:
        return _parse(kept, planned_settings(chosen.plan))
    preset = "fast" if _has_time(chosen) else chosen.preset
    given = {name[2:].replace("-", "_") for name in _names(kept)}
    return chosen if preset == "none" else _parse(kept, preset_settings(preset, given))


def _has_time(chosen: TrainArguments) -> bool:
    return chosen.minutes is not None or chosen.seconds is not None


def _names(words: Sequence[str]) -> set[str]:
    return {word.partition("=")[0] for word in words}


def _refuse_contradictions(words: Sequence[str]) -> None:
    """A run has a time, or a plan, or a number of steps; settings that belong together go with steps."""
    given = _names(words)
    of_time = sorted(given & {"--minutes", "--seconds", "--plan"})
    if len(of_time) > 1:
        raise UsageError(f"{' and '.join(of_time)} contradict each other: choose one.")
    for other in sorted(given & {"--iterations", "--preset"} if of_time else ()):
        raise UsageError(
            f"{of_time[0]} decides on settings and steps itself: leave out {other}, or {of_time[0]}."
        )


def _here_by_name(words: list[str]) -> list[str]:
    """`-s .` as the folder's own name: the bare dot is what an option that was not given looks like."""
    at = words.index("--source-path") + 1 if "--source-path" in words else len(words)
    if at < len(words) and Path(words[at]) == Path():
        words[at] = str(Path.cwd())
    return [
        f"--source-path={Path.cwd()}" if word in ("--source-path=.", "--source-path=./") else word
        for word in words
    ]


def _parse(words: Sequence[str], earlier: dict[str, Any]) -> TrainArguments:
    cls: type[TrainArguments] = TrainArguments
    if earlier:
        hints = typing.get_type_hints(TrainArguments)
        fields = [(name, hints[name], dataclasses.field(default=value)) for name, value in earlier.items()]
        cls = dataclasses.make_dataclass("TrainArguments", fields, bases=(TrainArguments,), frozen=True)
    return arguments.parse(cls, "splatmeter train", words, DESCRIPTION, SHORT)


def engine_for(config: TrainConfig, chosen: TrainArguments) -> Backend:
    """Says why where a card is there and the CPU works."""
    from splatmeter.backends import registry

    engine = registry.backend(chosen.backend, chosen.threads, chosen.device, config.only_on_cpu)
    if "card_not_used" in engine.facts.details:
        print(engine.facts.details["card_not_used"], file=sys.stderr)
    return engine


def dry_run(config: TrainConfig, chosen: TrainArguments) -> None:
    from splatmeter.cli.dry_run import plan

    planned = plan(config, engine_for(config, chosen))
    if chosen.json:
        print(json.dumps(planned.record(), indent=1))
        return
    for note in planned.notes:
        print(f"Warning: {note}", file=sys.stderr)
    print("\n".join(planned.lines()))


def listeners(config: TrainConfig, chosen: TrainArguments) -> list[Listener]:
    from splatmeter.listeners.json_lines import JsonLines, StreamLines
    from splatmeter.listeners.progress import progress_for
    from splatmeter.train.output_folder import EVENTS

    assert config.model_path is not None
    present: list[Listener] = [JsonLines(config.model_path / EVENTS)]
    if chosen.events_stdout:
        present.append(StreamLines(sys.stdout))
    if chosen.tensorboard:
        from splatmeter.listeners.tensorboard import TensorBoard

        present.append(TensorBoard(config.model_path))
    if not chosen.quiet:
        present.append(progress_for(sys.stderr))
    return present


def watched(
    backend: Backend, config: TrainConfig, chosen: TrainArguments, present: list[Listener]
) -> Backend:
    """One more listener, and the backend it sees the Gaussians through."""
    from splatmeter.cli.preview import LiveView, Watch
    from splatmeter.listeners.viewer import Viewer

    assert config.model_path is not None
    viewer = Viewer(chosen.view_host, chosen.view_port)
    print("\n".join(viewer.notices()), file=sys.stderr)
    watch = Watch()
    present.append(LiveView(viewer, watch, config.model_path))
    return watch.over(backend)


def follow(
    config: TrainConfig, backend: Backend, present: Sequence[Listener], command: Stopwatch | None = None
) -> int:
    """Trains to the end or to the first signal; the exit code tells which."""
    from splatmeter.train.loop import train
    from splatmeter.train.output_folder import way_on

    last: Event | None = None
    with caught_signals() as caught:
        events = train(config, backend, interrupted=lambda: bool(caught), command=command)
        try:
            for last in events:
                for listener in present:
                    listener(last)
        finally:
            events.close()
            for listener in present:
                listener.close()
    if isinstance(last, Finished) and last.reason == "interrupted":
        assert config.model_path is not None
        print(way_on(config.model_path), file=sys.stderr)
        return 128 + caught[0]
    return 0


TOGETHER_SECONDS = 0.5


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """The first SIGINT or SIGTERM ends the run after its step; a second one ends it at once. Those that come
    together are one: the kernel tells of a killed parent once for each of its threads."""
    caught: list[int] = []
    first = 0.0

    def note(number: int, _: FrameType | None) -> None:
        nonlocal first
        if not caught:
            first = time.monotonic()
            caught.append(number)
        elif time.monotonic() - first > TOGETHER_SECONDS:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
