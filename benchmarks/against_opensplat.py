"""Seconds to a quality beside OpenSplat's CPU path, on one machine and scene, with the same photos held out.

    python benchmarks/against_opensplat.py SCENE --opensplat build/opensplat --steps 600 --every 100

OpenSplat is not part of this repository: build it from its public source and name the program. It cannot
hold several photos out, so it gets a copy of the scene without them; its models are judged by `splatmeter
eval` as the plain 3DGS models they are. Its clock is the wall's, from the start of the program until a model
lies there complete, reading photos and writing models included; ours is the same, evaluations left out. Ours
runs once before and once after.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.scene import SceneOptions, load_scene

Curve = list[tuple[int, float, float]]
"""Step, seconds, PSNR on held-out photos."""


def without_held_out(source: Path, folder: Path) -> Path:
    scene = load_scene(SceneOptions(source=source, resolution=1, eval=True))
    (folder / "images").mkdir(parents=True)
    for view in scene.train:
        photo = Path(view.photo.path)
        (folder / "images" / photo.name).symlink_to(photo.resolve())
    names = [Path(view.photo.path).name for view in scene.train]
    write_colmap(folder, [view.camera for view in scene.train], names, scene.points)
    return folder


def judged(model: Path, scene: Path) -> float:
    command = [
        sys.executable,
        "-m",
        "splatmeter",
        "eval",
        "-m",
        str(model),
        "-s",
        str(scene),
        "-r",
        "1",
        "--eval",
    ]
    command += ["--lpips", "none", "--train-views", "0", "--device", "cpu", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["splits"]["test"]["1"]["means"]["psnr"]


def opensplat(chosen: argparse.Namespace, folder: Path) -> Curve:
    scene = without_held_out(chosen.scene, folder / "scene")
    command = [chosen.opensplat, str(scene), "--cpu", "-n", str(chosen.steps), "-s", str(chosen.every)]
    command += ["--keep-crs", "-o", str(folder / "theirs.ply")]
    start = time.perf_counter()
    with (folder / "theirs.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        arrived: dict[int, float] = {}
        while process.poll() is None:
            time.sleep(0.2)
            for step in range(chosen.every, chosen.steps, chosen.every):
                if step not in arrived and whole(folder / f"theirs_{step}.ply"):
                    arrived[step] = time.perf_counter() - start
        arrived[chosen.steps] = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(
            f"OpenSplat ended with code {process.returncode}: {(folder / 'theirs.log').read_text()[-500:]}"
        )
    last = folder / "theirs.ply"
    models = {step: folder / f"theirs_{step}.ply" for step in arrived} | {chosen.steps: last}
    return [(step, seconds, judged(models[step], chosen.scene)) for step, seconds in sorted(arrived.items())]


def whole(path: Path) -> bool:
    """Written some moments ago, and not touched since."""
    return path.is_file() and path.stat().st_size > 0 and time.time() - path.stat().st_mtime > 0.5


def ours(chosen: argparse.Namespace, folder: Path) -> Curve:
    """The training clock, which stands still in evaluations, and what the program took before it began."""
    at = [str(step) for step in range(chosen.ours_every, 3201, chosen.ours_every)]
    command = [
        sys.executable,
        "-m",
        "splatmeter",
        "train",
        "-s",
        str(chosen.scene),
        "-m",
        str(folder),
        "-r",
        "1",
    ]
    command += ["--eval", "--preset", "fast", "--overwrite", "--quiet", "--events-stdout", "--device", "cpu"]
    command += ["--checkpoint-minutes", "0", "--test-iterations", *at]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    loading, clock = None, 0.0
    found: Curve = []
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "progress":
            clock = event["clock_seconds"]
            loading = time.perf_counter() - start - clock if loading is None else loading
        if event["event"] == "evaluated" and event["split"] == "test":
            found.append((event["step"], (loading or 0.0) + clock, event["metrics"]["psnr"]))
    process.wait()
    return found


def reached(curve: Curve, psnr: float) -> float | None:
    return next((seconds for _, seconds, found in curve if found >= psnr), None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scene", type=Path)
    parser.add_argument("--opensplat", required=True)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--ours-every", type=int, default=50)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        curves = [ours(chosen, folder / "ours")]
        shutil.rmtree(folder / "ours")
        theirs = opensplat(chosen, folder)
        curves.append(ours(chosen, folder / "ours"))
    print("| OpenSplat --cpu: step | seconds | held-out PSNR | splatmeter: before, after | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for step, seconds, psnr in theirs:
        times = [reached(curve, psnr) for curve in curves]
        shown = ", ".join("never" if found is None else f"{found:.1f} s" for found in times)
        known = [found for found in times if found is not None]
        ratio = f"{seconds / (sum(known) / len(known)):.0f} x" if known else "-"
        print(f"| {step} | {seconds:.0f} | {psnr:.2f} dB | {shown} | {ratio} |")
    for number, curve in enumerate(curves):
        print(
            f"splatmeter, run {number + 1}: "
            + ", ".join(f"{s}: {t:.1f} s {p:.2f} dB" for s, t, p in curve[::4])
        )


if __name__ == "__main__":
    main()
