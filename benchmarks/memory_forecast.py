"""What runs needed, against what was said before: tables for results/memory_forecast.md, of recorded runs.

    splatmeter train -s SCENE -m runs/scene --eval      # one or more of these
    python benchmarks/memory_forecast.py runs/*         # folders, or files with event lines

Forecasts are functions of what a run has shown: its counts are replayed through the present rule, whatever
code recorded them. Peaks are those that the run itself measured, the system's high-water marks of its stages;
where an older version recorded it, forecasts are compared with what the present one would need for the count.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from splatmeter.backends.native import native_backend
from splatmeter.events import Densified, Event, Finished, Progress, Started, from_line
from splatmeter.scene.scene import load_scene
from splatmeter.train.config import TrainConfig, from_json
from splatmeter.train.memory_forecast import FIRST_SHARE, RANDOM_POINTS, Forecast, Range
from splatmeter.train.memory_prediction import LEAST_OF_PREDICTED, Prediction, predict

MEBIBYTE = 2**20
SHARES = (0.2, 0.3, 0.4, 0.6)


@dataclass(frozen=True, slots=True)
class Recorded:
    name: str
    started: Started
    config: TrainConfig
    changes: tuple[Densified, ...]
    peaks: tuple[tuple[int, int], ...]
    """(step, bytes) so far, on the way."""
    peak: int
    """0 where the run did not get to its end."""

    @property
    def counts(self) -> tuple[tuple[int, int], ...]:
        """(step, Gaussians) after each densification."""
        return tuple((change.step, change.gaussians) for change in self.changes)

    @property
    def most(self) -> int:
        return max(self.started.gaussians, *(count for _, count in self.counts))

    def replayed(self, prediction: Prediction, until: float) -> Forecast:
        """The present rule, as it was at that step."""
        random = load_scene(self.config.scene_options()).kind in RANDOM_POINTS
        told = (prediction.bytes_later, LEAST_OF_PREDICTED, self.config.max_gaussians, random)
        forecast = Forecast(self.config, *told)
        forecast.begin(self.started.step, self.started.gaussians)
        for change in self.changes:
            if change.step < until:
                forecast.note(change.step, change.gaussians, change.wanted, change.allowed, change.demand)
        return forecast

    def told(self, prediction: Prediction, step: int) -> Range | None:
        """Of memory."""
        there = [count for at, count in self.counts if at < step] or [self.started.gaussians]
        shown = max((peak for at, peak in self.peaks if at <= step), default=0)
        return self.replayed(prediction, step).peak_bytes(step, shown, there[-1])


def recorded(path: Path) -> Recorded:
    lines = (path / "events.jsonl" if path.is_dir() else path).read_text().splitlines()
    events: list[Event] = [from_line(line) for line in lines]
    started = next(event for event in events if isinstance(event, Started))
    ends = [event for event in events if isinstance(event, Finished)]
    shown = [event for event in events if isinstance(event, Progress) and event.memory_parts]
    return Recorded(
        name=path.stem if path.is_file() else path.name,
        started=started,
        config=from_json(started.config),
        changes=tuple(event for event in events if isinstance(event, Densified)),
        peaks=tuple((event.step, event.memory_parts["peak"]) for event in shown),
        # Peaks of earlier code tell nothing about this one.
        peak=max(ends[-1].peak_memory_bytes.values()) if ends and shown else 0,
    )


def row_of(run: Recorded) -> list[str]:
    scene = load_scene(run.config.scene_options())
    threads = int(run.started.environment.get("backend_threads", 1))
    engine = native_backend(threads).memory
    prediction = predict(run.config, scene, engine, run.started.gaussians)
    given = prediction.bytes_with(run.most)
    peak = run.peak or given
    low, high = prediction.expected_bytes
    return [
        run.name,
        "x".join(map(str, scene.photo_sizes[0])),
        str(run.config.iterations),
        f"{run.most:,}",
        f"{run.peak / MEBIBYTE:.0f}" if run.peak else "",
        f"{low / MEBIBYTE:.0f} to {high / MEBIBYTE:.0f}{'' if low <= peak <= high else ' (outside)'}",
        off(given, run.peak) if run.peak else "",
        *(_at(run, prediction, round(share * run.config.iterations), peak) for share in SHARES),
        _worst(run, prediction),
    ]


def off(told: float, real: float) -> str:
    return f"{100 * (told / real - 1):+.0f} %"


def _at(run: Recorded, prediction: Prediction, step: int, peak: int) -> str:
    told = run.told(prediction, step)
    return "" if told is None else f"{off(told.low, peak)} to {off(told.high, peak)}"


def _worst(run: Recorded, prediction: Prediction) -> str:
    """The lowest upper end from a fifth of the steps on, over the most Gaussians from then on: below 0 it
    missed."""
    end, ratios = run.config.last_growth, []
    for step, _ in run.counts:
        told = run.replayed(prediction, step + 1).gaussians()
        if told is not None and run.config.iterations / FIRST_SHARE <= step < end:
            ratios.append(told.high / max(count for at, count in run.counts if at >= step))
    return off(min(ratios), 1)


HEAD = [
    *("run", "photos", "steps", "most Gaussians", "peak, MiB", "range at the start, MiB", "count given"),
    *(f"at {share:.0%}" for share in SHARES),
    "lowest upper end, Gaussians",
]


def main(paths: list[str]) -> None:
    print("| " + " | ".join(HEAD) + " |")
    print("| " + " | ".join("---" for _ in HEAD) + " |")
    for path in paths:
        print("| " + " | ".join(row_of(recorded(Path(path)))) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
