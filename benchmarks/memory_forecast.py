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
from types import SimpleNamespace

from splatmeter.backends.native import native_backend
from splatmeter.events import Densified, Event, Finished, Progress, Started, from_line
from splatmeter.scene.scene import load_scene
from splatmeter.train.config import TrainConfig, from_json
from splatmeter.train.forecast import FIRST_SHARE, Forecast, Range, last_growth
from splatmeter.train.prediction import LEAST_OF_PREDICTED, Prediction, predict

MEBIBYTE = 2**20
SHARES = (0.2, 0.3, 0.4, 0.6)


@dataclass(frozen=True, slots=True)
class Recorded:
    name: str
    started: Started
    config: TrainConfig
    counts: tuple[tuple[int, int], ...]
    """(step, Gaussians) after each densification."""
    peak: int
    """0 where the run did not get to its end."""

    @property
    def most(self) -> int:
        return max(self.started.gaussians, *(count for _, count in self.counts))

    def replayed(self, prediction: Prediction) -> dict[int, tuple[Range, Range]]:
        """Gaussians and memory that the present rule tells after each densification."""
        forecast = Forecast(self.config, prediction.bytes_with, LEAST_OF_PREDICTED, self.config.max_gaussians)
        forecast.begin(self.started.step, self.started.gaussians)
        found = {}
        for step, count in self.counts:
            forecast.note(step, count)
            memory = forecast.peak_bytes(min(step + 1, self.config.iterations), 0, count)
            gaussians = forecast.gaussians()
            if memory is not None and gaussians is not None:
                found[step] = (gaussians, memory)
        return found


def recorded(path: Path) -> Recorded:
    lines = (path / "events.jsonl" if path.is_dir() else path).read_text().splitlines()
    events: list[Event] = [from_line(line) for line in lines]
    started = next(event for event in events if isinstance(event, Started))
    ends = [event for event in events if isinstance(event, Finished)]
    shown = any(event.memory_parts for event in events if isinstance(event, Progress))
    return Recorded(
        name=path.stem if path.is_file() else path.name,
        started=started,
        config=from_json(started.config),
        counts=tuple((event.step, event.gaussians) for event in events if isinstance(event, Densified)),
        # Peaks of earlier code tell nothing about this one.
        peak=max(ends[-1].peak_memory_bytes.values()) if ends and shown else 0,
    )


def row_of(run: Recorded) -> list[str]:
    scene = load_scene(run.config.scene_options())
    threads = int(run.started.environment.get("backend_threads", 1))
    engine = native_backend(threads).memory
    prediction = predict(run.config, scene, engine, run.started.gaussians)
    given = prediction.bytes_with(run.most)
    real = SimpleNamespace(gaussians=run.most, peak=run.peak or given)
    low, high = prediction.expected_bytes
    told = run.replayed(prediction)
    return [
        run.name,
        "x".join(map(str, scene.photo_sizes[0])),
        str(run.config.iterations),
        f"{run.most:,}",
        f"{run.peak / MEBIBYTE:.0f}" if run.peak else "",
        f"{low / MEBIBYTE:.0f} to {high / MEBIBYTE:.0f}{'' if low <= real.peak <= high else ' (outside)'}",
        off(given, run.peak) if run.peak else "",
        *(_at(told, share * run.config.iterations, real) for share in SHARES),
        _worst(told, run, real),
    ]


def off(told: float, real: float) -> str:
    return f"{100 * (told / real - 1):+.0f} %"


def _at(told: dict[int, tuple[Range, Range]], step: float, real: SimpleNamespace) -> str:
    """What was told last before that step, of memory."""
    earlier = [at for at in told if at <= step]
    if not earlier:
        return "nothing yet"
    memory = told[max(earlier)][1]
    return f"{off(memory.low, real.peak)} to {off(memory.high, real.peak)}"


def _worst(told: dict[int, tuple[Range, Range]], run: Recorded, real: SimpleNamespace) -> str:
    """The lowest upper end from a fifth of the steps on, of Gaussians: below 0 it missed."""
    growing = [
        gaussians.high
        for step, (gaussians, _) in told.items()
        if step * FIRST_SHARE >= run.config.iterations and step < last_growth(run.config)
    ]
    return off(min(growing, default=real.gaussians), real.gaussians)


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
