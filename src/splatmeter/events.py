"""What a training run says while it runs: frozen events, one JSON line each.

This is the only place where the trainer and the lab meet. A run is
Started, (Progress | Planned | Densified | Evaluated | Saved | Warned)*, then Finished or Failed.
`step` counts completed steps. `clock_seconds` is the training clock: evaluation and saving are off it.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Started:
    """The resolved configuration and everything needed to judge the run later."""

    kind: ClassVar[str] = "started"
    config: Mapping[str, Any]
    step: int
    gaussians: int
    train_images: Sequence[str]
    test_images: Sequence[str]
    ancestor_images: Sequence[str] = ()
    """Names of all images that trained the checkpoint this run started from, along its whole ancestry."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    photo_sizes: Sequence[Sequence[int]] = ()
    """Widths and heights that are trained at, each once, the largest first."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes and Gaussians: 'low' and 'high' that are expected, 'limit' where there is one, 'available'."""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the run is, every few steps."""

    kind: ClassVar[str] = "progress"
    step: int
    clock_seconds: float
    loss: float
    """Exponential moving average, 0.4 new + 0.6 old, as the original shows it."""
    gaussians: int
    loss_last: float = math.nan
    passes: Mapping[str, float] = field(default_factory=dict)
    """Seconds per pass since the previous Progress."""
    memory_bytes: int = 0
    l1_last: float = math.nan
    """The L1 part of the last step's loss."""
    sh_degree: int = 0
    """Highest degree of the colours' harmonics that is drawn so far."""
    device_memory_bytes: int = 0
    """Held on the card, where there is one."""
    forecast_bytes: int = 0
    """What the run will need at its peak, at most; 0 while it is too early to tell."""
    forecast_low_bytes: int = 0
    """And at least."""
    memory_parts: Mapping[str, int] = field(default_factory=dict)
    """Bytes: the 'peak' so far; of what is held now, 'photos' and the engine's 'buffers' of a step."""


@dataclass(frozen=True, slots=True)
class Planned:
    """From this step on, of a run that was given a time: what it makes of it, as far as is known by now."""

    kind: ClassVar[str] = "planned"
    step: int
    iterations: int
    """The last step."""
    gaussians: int
    divisor: int
    """The largest photos are those of full size divided by this."""
    seconds: float
    """That the run was given; 0 where it repeats a plan."""
    seconds_left: float


@dataclass(frozen=True, slots=True)
class Densified:
    """The set of Gaussians has changed."""

    kind: ClassVar[str] = "densified"
    step: int
    cloned: int
    split: int
    pruned: int
    gaussians: int
    mean_opacity: float
    wanted: int = 0
    """Gaussians that asked to be cloned or split; 0 in records of older versions."""
    demand: int = 0
    """About how many there would have to be for none to ask; 0 where that is not known."""
    allowed: int = 0
    """The most Gaussians that there might have been; 0 for no limit."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The model was judged on views."""

    kind: ClassVar[str] = "evaluated"
    step: int
    split: str
    """'test' or 'train'."""
    metrics: Mapping[str, float]
    """Means over the views: l1, psnr, ssim and, where weights exist, lpips."""
    per_view: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    peak_memory_bytes: int = 0
    exposure: str = "none"
    """How the exposure of photos was treated: 'none', or 'left-half' (fitted there, judged on the right)."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A file was written."""

    kind: ClassVar[str] = "saved"
    step: int
    path: str
    content: str
    """'model', 'fused model' or 'checkpoint'."""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that a person should know; the run goes on."""

    kind: ClassVar[str] = "warned"
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a run that ended well, or was stopped in order."""

    kind: ClassVar[str] = "finished"
    step: int
    clock_seconds: float
    gaussians: int
    reason: str = "completed"
    """'completed' or 'interrupted'."""
    loss: float = math.nan
    loss_last_100: float = math.nan
    mean_opacity: float = math.nan
    peak_memory_bytes: Mapping[str, int] = field(default_factory=dict)
    """Per stage: 'loading', 'training', 'evaluation', 'saving'. Of this process, or of the card that trains:
    then with 'training reserved' and so on beside them."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a run that could not go on; an error with the same message follows it."""

    kind: ClassVar[str] = "failed"
    step: int
    message: str
    checkpoint: str = ""


Event = Started | Progress | Planned | Densified | Evaluated | Saved | Warned | Finished | Failed
_KINDS: dict[str, type] = {
    kind.kind: kind
    for kind in (Started, Progress, Planned, Densified, Evaluated, Saved, Warned, Finished, Failed)
}


def to_line(event: Event) -> str:
    """One line of strict JSON (non-finite numbers become null), without the newline."""
    record = {"event": event.kind} | {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
    return json.dumps(_finite(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_line(line: str) -> Event:
    """Raises ValueError for anything that is not a whole event of this schema; unknown fields are ignored."""
    try:
        record = json.loads(line)
        kind = _KINDS[record.pop("event")]
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise ValueError(f"not an event line: {line[:80]!r}") from None
    if record.get("schema", SCHEMA) != SCHEMA:
        raise ValueError(f"event schema {record['schema']} is not {SCHEMA}; use the splatmeter that wrote it")
    known = {f.name: record[f.name] for f in dataclasses.fields(kind) if f.name in record}
    floats = {f.name for f in dataclasses.fields(kind) if f.type == "float"}
    known = {name: math.nan if value is None and name in floats else value for name, value in known.items()}
    try:
        return kind(**known)
    except TypeError as problem:
        raise ValueError(f"incomplete event line: {problem}") from None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_finite(item) for item in value]
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return str(value)
