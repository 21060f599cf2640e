"""What --exposure affine costs: steps with and without it, interleaved on one engine.

    python benchmarks/exposure.py [--yardstick FOLDER] [--rounds 12] [--processes 4]

Both arms train a model of their own with the same Gaussians, cameras and photos. Rounds with foreign load are
done again; fresh processes draw anew where memory lies. Without FOLDER (g140.npz, see README.md) the workload
is garden_512 from its points.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import measuring
import numpy as np
import workloads

from splatmeter.backend import ExposureStep, TrainStep
from splatmeter.backends.native import native_backend, usable_threads
from splatmeter.ops import RasterSettings
from splatmeter.train.photo_exposures import begun

FORMATTER = argparse.RawDescriptionHelpFormatter
WITH, WITHOUT = "affine", "none"


def arm(name: str, work: workloads.Workload, engine: Any) -> measuring.Arm:
    model = engine.upload(workloads.table_of(work))
    views = len(work.cameras)
    model.expose(begun(views))

    def step(number: int) -> None:
        view = number % views
        exposed = ExposureStep(view, 1e-7, 0.01) if name == WITH else None
        settings = RasterSettings(absolute_gradients=True)
        rates = workloads.TINY if work.schedule is None else work.schedule.rates(number + 1)
        order = TrainStep(work.cameras[view], work.photos[view], settings, 0.2, rates, exposure=exposed)
        model.train_step(order)

    return measuring.Arm(name, step, lambda: dict(engine.timings()))


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for label, work in loaded(chosen.yardstick):
        engine = native_backend(usable_threads())
        rounds = measuring.interleave(
            [arm(WITHOUT, work, engine), arm(WITH, work, engine)], chosen.rounds, min(3, len(work.cameras))
        )
        found[label] = {
            "ratio": rounds.ratio(WITH, WITHOUT),
            "loss": rounds.pass_ratio(WITH, WITHOUT, "loss"),
            "milliseconds": [rounds.median_ms(name) for name in (WITHOUT, WITH)],
            "rounds": measuring.counted(rounds),
        }
    return found


def loaded(yardstick: Path | None) -> list[tuple[str, workloads.Workload]]:
    if yardstick is None:
        return [("garden_512", workloads.garden())]
    return [(f"g140 {size}", workloads.stored(yardstick, "g140", size)) for size in workloads.SIZES]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--yardstick", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--results", type=Path)
    chosen = parser.parse_args()
    if chosen.processes == 1:
        parts = [measure(chosen)]
    else:
        parts = measuring.in_processes(__file__, chosen.processes)
        parts = [part for found in parts for part in found]
    rows = [row(label, [part[label] for part in parts]) for label in parts[0]]
    header = ["workload", "without, ms", "with, ms", "with / without", "loss pass alone"]
    lines = ["# Steps with --exposure affine against steps without", "", *measuring.table(header, rows)]
    measuring.write_results("exposure_speed", parts, lines, chosen.results)
    print("\n".join(lines))


def row(label: str, parts: list[dict[str, Any]]) -> list[str]:
    """Over processes, each of which is one ratio; of a single one over its rounds."""
    single = len(parts) == 1
    ratios = [
        parts[0][key] if single else measuring.interval([math.log(part[key][0]) for part in parts])
        for key in ("ratio", "loss")
    ]
    times = np.median([part["milliseconds"] for part in parts], axis=0)
    return [label, f"{times[0]:.2f}", f"{times[1]:.2f}", *(measuring.text(ratio, 3) for ratio in ratios)]


if __name__ == "__main__":
    main()
