"""What `splatmeter profile` asks the engine beyond its operations: the machine's limits, a step's counts."""

from __future__ import annotations

import time
from dataclasses import dataclass

from splatmeter.backends.native.engine import Engine

TIMED_PASSES = 7
"""Passes of a step that the engine's stopwatch times."""

_CALLS = 100_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Measured on the engine's own threads, with its instruction set, in a few tenths of a second."""

    flops: float
    """Floating point operations a second; a fused multiply-add is two."""
    bandwidth: float
    """Bytes a second to and from memory; a line that is written is fetched first, which counts."""
    operations: float
    """Operations on eight floats a second in the mix that passes have: loads, comparisons, masks, stores."""
    divisions: float
    """Divisions or square roots of eight floats a second."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What the last forward pass met; `step_work` in native/limits.cpp recounts it pixel by pixel."""

    gaussians: float
    visible: float
    visible_behind: float  # of these, rows that lazy Adam owes something
    seen: float  # rows that at least one pixel took
    pairs: float  # (Gaussian, tile)
    walked: float  # pairs looked at before their tile was full
    items: float  # (Gaussian, strip of eight columns in a tile)
    vectors: float  # eight pixels of a row, at least one of which takes the Gaussian
    pixels: float  # single contributions


def measure_limits(engine: Engine) -> Limits:
    native = engine.native
    return Limits(
        measured_flops(engine),
        native.measured_bandwidth(),
        native.measured_operations(),
        native.measured_divisions(),
    )


def measured_flops(engine: Engine) -> float:
    return engine.native.measured_flops()


def last_counts(engine: Engine) -> Counts:
    """Counted over the latest render: its tiles are walked again."""
    return Counts(**{name: float(value) for name, value in engine.native.step_work().items()})


def stopwatch_seconds_per_step() -> float:
    """CPU time of the engine's stopwatch in one step, by running nothing but stopwatches."""
    from splatmeter import _native  # type: ignore[attr-defined]

    start = time.process_time()
    _native.run_stopwatches(_CALLS)
    return (time.process_time() - start) / _CALLS * TIMED_PASSES
