"""What finished runs needed, against what they and the program said before: a table for results/.

splatmeter train -s SCENE -m runs/scene --eval --iterations 7000      # one or more of these
python benchmarks/memory_forecast.py runs/* > benchmarks/results/memory_forecast.md
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path

from splatmeter.backends.native import native_backend
from splatmeter.events import Densified, Event, Finished, Progress, Started, from_line
from splatmeter.scene.scene import load_scene
from splatmeter.train.config import TrainConfig, from_json
from splatmeter.train.prediction import predict

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    photos: str
    steps: int
    most: int
    peak: int
    low: int
    high: int
    counted: int
    """Predicted for the number of Gaussians that there were in the end."""
    forecasts: tuple[int, ...]
    """From a fifth of the steps on."""

    def cells(self) -> list[str]:
        inside = "" if self.low <= self.peak <= self.high else " (outside)"
        span = f"{self.low / MEBIBYTE:.0f} to {self.high / MEBIBYTE:.0f}{inside}"
        first, worst, best = self.forecasts[0], max(self.forecasts), min(self.forecasts)
        return [
            self.name,
            self.photos,
            str(self.steps),
            f"{self.most:,}",
            f"{self.peak / MEBIBYTE:.0f}",
            span,
            self._off(self.counted),
            self._off(first),
            f"{self._off(best)} to {self._off(worst)}",
        ]

    def _off(self, told: int) -> str:
        return f"{100 * (told / self.peak - 1):+.0f} %"


HEAD = [
    *("scene", "photos", "steps", "most Gaussians", "peak, MiB", "range at the start, MiB"),
    *("count given", "first forecast", "all forecasts"),
]


def row_of(folder: Path) -> Row:
    events: list[Event] = [from_line(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    started = next(event for event in events if isinstance(event, Started))
    finished = next(event for event in events if isinstance(event, Finished))
    config: TrainConfig = from_json(started.config)
    scene = load_scene(config.scene_options())
    memory = native_backend().memory
    densified = [event.gaussians for event in events if isinstance(event, Densified)]
    most = max(started.gaussians, *densified)
    fixed = dataclasses.replace(config, densification="none")
    told = predict(config, scene, memory, started.gaussians)
    forecasts = [event.forecast_bytes for event in events if isinstance(event, Progress)]
    return Row(
        name=folder.name,
        photos="x".join(map(str, scene.photo_sizes[0])),
        steps=finished.step,
        most=most,
        peak=max(finished.peak_memory_bytes.values()),
        low=told.expected_bytes[0],
        high=told.expected_bytes[1],
        counted=predict(fixed, scene, memory, most).start_bytes,
        forecasts=tuple(filter(None, forecasts)) or (0,),
    )


def main(folders: list[str]) -> None:
    print("# Memory that runs needed, and what was said before\n")
    print(
        "Peaks are the resident memory that the system saw; percentages: how far what was told is above it."
    )
    print("Forecasts are those from a fifth of the steps on.\n")
    print("| " + " | ".join(HEAD) + " |")
    print("| " + " | ".join("---" for _ in HEAD) + " |")
    for folder in folders:
        print("| " + " | ".join(row_of(Path(folder)).cells()) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
