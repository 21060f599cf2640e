"""Bytes a Gaussian in training: the slope of peak memory between 0.5 M and 2 M Gaussians, densification
included.

    python benchmarks/memory_slope.py

Each size is a fresh process on garden_512 at 512x512 (its points, multiplied): steps over several views,
one densification by the real code that clones a sixth of the rows, splits a sixth and removes a sixth, the
3D filter, steps again. Peaks are the system's own high-water marks, reset between the stages. Image
buffers and photos are the same for every size and drop out of the slope. The number of Gaussians is that
after the densification. It needs no quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import workloads
from measuring import table, write_results

from splatmeter import process_memory
from splatmeter.backend import TrainStep
from splatmeter.backends.native import backend_of, native_engine
from splatmeter.densify.densifier import Densifier, DensifySettings
from splatmeter.ops import GRADIENT_SUM, LOG_SCALES, OPACITY_LOGITS, VISITS, Table

SIZES = (500_000, 1_000_000, 2_000_000)
GROWTH = 7 / 6
VIEWS, STEPS = 12, 24
TARGET = 1100


def prepared(count: int, scene: Path) -> tuple[workloads.Workload, Table]:
    work = workloads.garden(scene)
    keep = list(range(0, len(work.cameras), max(1, len(work.cameras) // VIEWS)))
    base = len(work.arrays["means"])
    filters = work.filters[np.arange(count) * base // count]
    arrays = workloads.numbering(work.arrays, count)
    work = workloads.Workload(
        arrays, [work.cameras[k] for k in keep], [work.photos[k] for k in keep], filters, work.schedule
    )
    made = workloads.table_of(work)
    for moments in (made.geometry_moments, made.harmonics_first, made.harmonics_second):
        moments[:] = 1e-20  # pages that were never written would not count
    work.arrays, work.filters = {}, np.empty(0)
    return work, made


class Child:
    """One process: the stages of a training, their peaks, and what the engine itself holds."""

    def __init__(self, count: int, threads: int, scene: Path) -> None:
        self.work, table = prepared(round(count / GROWTH), scene)
        self.engine = native_engine(threads)
        self.model = backend_of(self.engine).upload(table)
        self.stages: dict[str, dict[str, float]] = {}

    def steps(self) -> None:
        settings = workloads.RasterSettings()
        for step in range(STEPS):
            view = step % len(self.work.cameras)
            camera, photo = self.work.cameras[view], self.work.photos[view]
            self.model.train_step(TrainStep(camera, photo, settings, 0.2, workloads.TINY)).read()

    def densify(self) -> None:
        """By the statistics and opacities as one finds them in training, set by hand: every third row is
        wanted, the larger half of them is split, every sixth is too faint."""
        self.model.settle()
        geometry = self.model.stored("geometry", slice(None))
        geometry[:, VISITS], geometry[:, GRADIENT_SUM] = 1, 0
        geometry[0::3, GRADIENT_SUM] = 1
        geometry[1::6, OPACITY_LOGITS] = -20
        middle = float(np.exp(np.median(geometry[::97, LOG_SCALES].max(axis=1))))
        rule = DensifySettings(extent=middle, strategy="3dgs", percent_dense=1.0, threshold=0.5)
        del geometry  # the old rows must be free to go
        self.change = self.model.grow(Densifier(rule).rule(600))
        self.model.refresh_filter(self.work.cameras)

    def stage(self, name: str, work) -> None:
        process_memory.reset_peak()
        work()
        self.stages[name] = {
            "gaussians": self.model.count,
            "peak_bytes": process_memory.peak_bytes(),
            "workspace_bytes": self.engine.native.workspace_bytes,
            "pairs": self.engine.native.pair_count,
        }

    def run(self) -> None:
        self.stage("steps before", self.steps)
        self.stage("densification", self.densify)
        self.stage("steps after", self.steps)
        print(json.dumps(self.stages))


def slope(results: dict[int, dict], pick) -> float:
    """Bytes a Gaussian between the smallest and the largest size."""
    low, high = results[min(results)], results[max(results)]
    count = high["steps after"]["gaussians"] - low["steps after"]["gaussians"]
    return (pick(high) - pick(low)) / count


def report(results: dict[int, dict]) -> tuple[dict, list[str]]:
    stages = list(next(iter(results.values())))
    whole = slope(results, lambda run: max(stage["peak_bytes"] for stage in run.values()))
    by_stage = {name: slope(results, lambda run, name=name: run[name]["peak_bytes"]) for name in stages}
    workspace = slope(results, lambda run: run["steps after"]["workspace_bytes"])
    rows = [
        [
            f"{run['steps after']['gaussians']:,}",
            *[f"{run[name]['peak_bytes'] / 2**20:.0f} MiB" for name in stages],
        ]
        for run in results.values()
    ]
    verdict = "reached" if whole <= TARGET else "NOT reached"
    lines = ["# Memory per Gaussian", "", *(__doc__ or "").partition("\n\n    ")[0].splitlines(), ""]
    lines += [f"**{whole:.0f} B a Gaussian** (at most {TARGET}: {verdict}).", ""]
    lines += [*table(["Gaussians", *stages], rows), ""]
    lines += [
        f"Slope of each stage: {', '.join(f'{name} {value:.0f} B' for name, value in by_stage.items())}."
    ]
    lines += [f"Of the last, {workspace:.0f} B are the engine's workspace (capacity), 736 B the table."]
    record = {"bytes_per_gaussian": whole, "by_stage": by_stage, "workspace": workspace, "sizes": results}
    return record, lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scene", type=Path, default=workloads.GARDEN)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, help="folder for the results; default: benchmarks/results")
    chosen = parser.parse_args()
    if chosen.child:
        return Child(chosen.child, chosen.threads, chosen.scene).run()
    results = {}
    for size in chosen.sizes:
        words = [sys.executable, __file__, "--child", str(size), "--threads", str(chosen.threads)]
        words += ["--scene", str(chosen.scene)]
        said = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ))
        if said.returncode:
            sys.exit(f"with {size} Gaussians: {said.stderr.strip()[-2000:]}")
        results[size] = json.loads(said.stdout)
        print(size, {name: f"{stage['peak_bytes'] / 2**20:.0f} MiB" for name, stage in results[size].items()})
    record, lines = report(results)
    print("\n".join(lines))
    write_results("memory", record, lines, chosen.results)


if __name__ == "__main__":
    main()
