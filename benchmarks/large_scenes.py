"""Growth to 10 million Gaussians: seconds of each pass and peak memory of ordinary trainings.

    python benchmarks/large_scenes.py SCENE [--millions 1.25 2.5 5 10] [--steps 200]

SCENE is a COLMAP folder, such as garden_512. Its points are multiplied, each copy moved at random by a
fiftieth of its distance from the middle, and a scene with the same photos and that many points is trained
without densification, as a user would: a fresh `splatmeter train` for each size, start from points included.
Seconds are the engine's own per pass, from the run's events; the peak is the system's high-water mark. Memory
needs no quiet machine, times do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from measuring import table

from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.points import PointCloud
from splatmeter.scene.scene import SceneOptions, load_scene


def multiplied(source: Path, count: int, out: Path) -> Path:
    """The scene with so many points; photos are linked, not copied."""
    scene = load_scene(SceneOptions(source=source, resolution=1))
    views = scene.train
    rng = np.random.default_rng(0)
    rows = np.arange(count) % scene.points.count
    positions = scene.points.positions[rows].astype(np.float32)  # [N, 3]
    middle = np.median(scene.points.positions, axis=0)
    spread = np.linalg.norm(positions - middle, axis=1, keepdims=True).astype(np.float32) / 50
    positions += spread * rng.standard_normal(positions.shape, np.float32)
    points = PointCloud(positions.astype(np.float32), scene.points.colors[rows])
    write_colmap(out, [view.camera for view in views], [view.name for view in views], points)
    (out / "images").symlink_to((source / "images").resolve())
    return out


def trained(source: Path, steps: int, out: Path) -> dict:
    words = ["train", "-s", str(source), "-m", str(out), "-r", "1", "--densification", "none", "--quiet"]
    words += ["--iterations", str(steps), "--events-stdout", "--device", "cpu", "--checkpoint-minutes", "0"]
    command = [sys.executable, "-m", "splatmeter", *words, "--save-iterations", str(steps)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        events = [json.loads(line) for line in process.stdout]
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the training in {source} failed")
    passes: Counter[str] = Counter()
    told = [event for event in events if event["event"] == "progress"]
    for event in told:
        passes.update(event["passes"])
    return {
        "gaussians": told[-1]["gaussians"],
        "steps": told[-1]["step"],
        "clock_seconds": told[-1]["clock_seconds"],
        "passes": dict(passes),
        "peak_bytes": usage.ru_maxrss * 1024,
    }


def shown(results: list[dict]) -> list[str]:
    names = list(results[0]["passes"])
    header = ["Gaussians", "ms a step", *names, "peak", "bytes a Gaussian"]
    rows = []
    for before, one in zip([None, *results], results, strict=False):
        per_step = {name: 1000 * one["passes"].get(name, 0.0) / one["steps"] for name in names}
        slope = ""
        if before is not None:
            more = one["gaussians"] - before["gaussians"]
            slope = f"{(one['peak_bytes'] - before['peak_bytes']) / more:.0f}"
        rows.append(
            [
                f"{one['gaussians'] / 1e6:.2f} M",
                f"{1000 * one['clock_seconds'] / one['steps']:.0f}",
                *(f"{per_step[name]:.1f}" for name in names),
                f"{one['peak_bytes'] / 2**30:.2f} GiB",
                slope,
            ]
        )
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scene", type=Path)
    parser.add_argument("--millions", type=float, nargs="+", default=[1.25, 2.5, 5, 10])
    parser.add_argument("--steps", type=int, default=200)
    chosen = parser.parse_args()
    results: list[dict] = []
    for millions in chosen.millions:
        folder = Path(tempfile.mkdtemp(prefix="large-"))
        try:
            scene = multiplied(chosen.scene, round(millions * 1e6), folder / "scene")
            results.append(trained(scene, chosen.steps, folder / "out"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(json.dumps(results[-1]), flush=True)
    print("\n".join(shown(results)))


if __name__ == "__main__":
    main()
