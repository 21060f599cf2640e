"""The result of one run, typed: what `result.json` says, whoever wrote it and when.

Everything that knows the keys of that file is here. A new figure is a new field with a default, so that
results of older versions still read; whatever is not known is None or empty, never 0.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from splatmeter.lab.executor import ProcessEnd
from splatmeter.lab.samples.run_sample import Clocks, RatePoint, StagePeak

SCHEMA = 1
BY_THE_TRAINER = "trainer"
"""Who computed a metric that the trainer printed itself."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity:
    """Which run of which block this is; copied into the result, so that a folder explains itself."""

    session: str = ""
    block: int = -1
    attempt: int = 1
    place: int = 0
    arm: str = ""
    phase: str = ""
    seed: int = 0
    protocol: str = ""
    started: str = ""
    machine: str = ""
    revision: str = ""
    code: str = ""
    """Hash of the contents of the code it executed; empty if nothing could be identified."""
    scene: str = ""
    """Which one, where the protocol has several; else empty."""
    host: str = ""
    """Tells machines of one name and kind apart, as a hash; empty where nothing tells them apart."""
    boot: str = ""
    """When the machine was last started, as a hash: both arms of a block must have the same."""
    job: str = ""
    """Which job of the session's folder ran it; empty where the lab ran it itself."""

    @property
    def which_machine(self) -> str:
        """The machine, and which one of several that look alike; older results know only the first."""
        return f"{self.machine}-{self.host[:6]}" if self.host else self.machine


@dataclass(frozen=True, slots=True)
class Window:
    """The steps from `first` + `warm_up` to `last` are timed."""

    first: int = 0
    last: int = 0
    warm_up: int = 0


@dataclass(frozen=True, slots=True)
class RunTiming:
    """The one number of a run, and what it was taken from."""

    steps: int = 0
    seconds: float = 0.0
    measured_steps: int = 0
    """How many of the steps were timed; the time of the others is taken to be like theirs."""
    steps_per_second: float | None = None
    gaussian_steps_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class RunStart:
    """What a run said when it began; all of it empty where it said nothing."""

    config: Mapping[str, Any] = field(default_factory=dict)
    train_images: tuple[str, ...] = ()
    test_images: tuple[str, ...] = ()
    ancestor_images: tuple[str, ...] = ()
    hashes: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunEvaluation:
    """Mean metrics over the views of one split at one step; a metric that is not a number is None."""

    step: int = 0
    split: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    images: tuple[str, ...] = ()
    peak_memory_bytes: int | None = None
    judged_by: str = BY_THE_TRAINER
    exposure: str = "none"
    model_sha256: str = ""
    judged_in: str = ""
    """The file among the lab's judgements that it was copied from."""


@dataclass(frozen=True, slots=True)
class SavedModel:
    path: str = ""
    sha256: str = ""
    step: int = 0


@dataclass(frozen=True, slots=True)
class RunMemory:
    """Peaks of the whole run."""

    total_peak_bytes: int | None = None
    device_peak_bytes: int | None = None
    device: str = ""


@dataclass(frozen=True, slots=True)
class MonitorCost:
    """What watching the run cost."""

    samples: int = 0
    interval_seconds: float = 0.0
    cpu_seconds: float = 0.0
    share: float | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """Everything that is known of one run when it has ended."""

    status: str = ""
    """'finished', 'failed', or why the trainer stopped early."""
    message: str = ""
    timing: RunTiming | None = None
    window: Window | None = None
    """None in results of older versions."""
    first_iteration_seconds: float | None = None
    passes: Mapping[str, float] = field(default_factory=dict)
    rates: tuple[RatePoint, ...] = ()
    started: RunStart = RunStart()
    last_step: int = 0
    gaussians_start: int | None = None
    gaussians_end: int | None = None
    loss: float | None = None
    loss_last_100: float | None = None
    mean_opacity: float | None = None
    evaluations: tuple[RunEvaluation, ...] = ()
    clock_at: Mapping[str, float] | None = None
    """Seconds of the training clock at every step that was evaluated; None in older results."""
    peak_bytes: Mapping[str, int] = field(default_factory=dict)
    models: tuple[SavedModel, ...] = ()
    warnings: tuple[str, ...] = ()
    identity: Identity = Identity()
    start_sha256: str = ""
    clocks: Clocks | None = None
    sliced: bool = False
    process: ProcessEnd | None = None
    peaks: tuple[StagePeak, ...] = ()
    memory: RunMemory = RunMemory()
    monitor: MonitorCost | None = None
    """None where nothing watched."""
    allocator_retries: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the machine and the software were (environment.py)."""
    on_a_card: bool | None = None
    """None in results of older versions."""
    foreign_cpu_share: float | None = None
    stolen_share: float | None = None
    throttled: int | None = None
    card_bytes: int | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    card_used: bool = False
    shared_memory: Mapping[str, Any] = field(default_factory=dict)
    image_bytes_held: int | None = None
    """Photos that the trainer keeps where its peaks are measured; None where that is not known."""
    schema: int = SCHEMA

    @property
    def finished(self) -> bool:
        return self.status == "finished"

    @property
    def model(self) -> SavedModel:
        """The last one that was saved; without a path where there is none."""
        return self.models[-1] if self.models else SavedModel()

    def peak_of_stage(self, stage: str) -> int | None:
        """The last figure for this stage: of the process, or allocated on the card."""
        sizes = [peak.process_bytes or peak.allocated_bytes for peak in self.peaks if peak.stage == stage]
        return sizes[-1] if sizes else None

    def to_record(self) -> dict[str, Any]:
        """As `result.json` holds it."""
        record = dataclasses.asdict(self)
        return record | {"model": dataclasses.asdict(self.model) if self.models else {}}


def result_from(record: Mapping[str, Any]) -> RunResult:
    """A record of any version; keys that this one does not know are left out."""
    known = _fields(RunResult, record)
    models = record.get("models") or ([record["model"]] if record.get("model") else ())
    known |= {
        "timing": _optional(RunTiming, record.get("timing")),
        "window": _optional(Window, record.get("window")),
        "rates": rate_points(record.get("rates") or ()),
        "started": _made(RunStart, record.get("started")),
        "evaluations": evaluations_from(record),
        "models": tuple(_made(SavedModel, item) for item in models),
        "warnings": tuple(map(str, record.get("warnings") or ())),
        "identity": _made(Identity, record.get("identity")),
        "clocks": _optional(Clocks, record.get("clocks")),
        "process": _optional(ProcessEnd, record.get("process")),
        "peaks": tuple(_made(StagePeak, item) for item in record.get("peaks") or ()),
        "memory": _made(RunMemory, record.get("memory")),
        "monitor": _optional(MonitorCost, record.get("monitor")),
    }
    return RunResult(**known)


def result_from_text(text: str) -> RunResult:
    """As the index keeps it."""
    return result_from(json.loads(text))


def evaluations_from(record: Mapping[str, Any]) -> tuple[RunEvaluation, ...]:
    """The evaluations in a result, or in a file among the lab's judgements."""
    return tuple(_made(RunEvaluation, item) for item in record.get("evaluations") or ())


def status_of(record: Any) -> tuple[str, str] | None:
    """Status and message of a record that may be damaged otherwise; None if it is no record at all."""
    if not isinstance(record, Mapping):
        return None
    return str(record.get("status") or ""), str(record.get("message") or "")


def rate_points(points: Iterable[Mapping[str, Any]]) -> tuple[RatePoint, ...]:
    return tuple(RatePoint(int(p["step"]), int(p["gaussians"]), p["steps_per_second"]) for p in points)


def preferred(evaluations: Iterable[RunEvaluation]) -> list[RunEvaluation]:
    """One per step and split: what the lab computed where it did, else what the trainer printed.

    The original prints a PSNR of another definition; the two must never be compared with each other.
    """
    chosen: dict[tuple[int, str], RunEvaluation] = {}
    for item in evaluations:
        key = (item.step, item.split)
        if key not in chosen or chosen[key].judged_by == BY_THE_TRAINER:
            chosen[key] = item
    return list(chosen.values())


def last_metrics(evaluations: Iterable[RunEvaluation]) -> dict[str, float]:
    """At the last step; held-out views before training views, our own figures before the trainer's."""
    ranked = [
        ((item.split == "test", item.step, item.judged_by != BY_THE_TRAINER, place), item)
        for place, item in enumerate(evaluations)
    ]
    if not ranked:
        return {}
    metrics = max(ranked, key=lambda entry: entry[0])[1].metrics
    return {name: value for name, value in metrics.items() if isinstance(value, (int, float))}


def _fields(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """What the dataclass knows of a record; null takes the default; lists become tuples."""
    found: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        value = record.get(item.name)
        if value is not None:
            found[item.name] = tuple(value) if isinstance(value, list) else value
    return found


def _made(kind: type[T], record: Mapping[str, Any] | None) -> T:
    return kind(**_fields(kind, record or {}))


def _optional(kind: type[T], record: Mapping[str, Any] | None) -> T | None:
    return _made(kind, record) if record else None
