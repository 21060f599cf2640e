"""Makes what later versions must be able to read: `python tests/promises/make_kept.py`, once for a release.

It runs real commands in a folder for temporary files and packs what they left into
tests/promises/kept/VERSION. No test ever makes it anew; whoever does so after the release breaks the promise
of docs/promises.md.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "story")]

from kept_names import names_of_today  # noqa: E402
from tiny_scene import write_tiny_scene  # noqa: E402

import splatmeter  # noqa: E402

EXPORTS = {
    "fused.ply": "fused",
    "unfused.ply": "unfused",
    "small.compressed.ply": "compressed",
    "four.spz": "spz",
    "three.spz": "spz3",
    "small.splat": "splat",
    "small.glb": "gltf",
}
LEFT_OUT = ("index.sqlite", "output", "work", "priming", "memory.csv", ".splatmeter.lock")
"""Of a lab: what is built from the rest, or is no evidence that figures come from."""


def said(folder: Path, *words: str) -> str:
    print("splatmeter", *words, flush=True)
    ended = subprocess.run(
        [sys.executable, "-m", "splatmeter", *words], cwd=folder, capture_output=True, text=True
    )
    if ended.returncode:
        sys.exit(f"it left with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def train(folder: Path) -> None:
    write_tiny_scene(folder / "scene", train=4, test=2, points=24)
    usual = ("train", "-s", "scene", "--eval", "--device", "cpu", "--threads", "1")
    growing = ("--densify-from-iter", "20", "--densification-interval", "20", "--densify-until-iter", "50")
    said(
        folder, *usual, *growing, "-m", "run", "--iterations", "60", "--test-iterations", "30", "60",
        "--checkpoint-iterations", "60", "--max-gaussians", "36", "--exposure", "affine",
    )  # fmt: skip
    said(folder, *usual, "-m", "timed", "--seconds", "40", "--max-gaussians", "200")
    keep_the_plan(folder / "timed")
    for file, form in EXPORTS.items():
        said(folder, "export", "run", "-o", f"models/{file}", "--format", form)


def keep_the_plan(run: Path) -> None:
    """And the lines that tell of it; the model of some thousand steps is of no use."""
    lines = (run / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    planned = [line for line in lines if line.startswith('{"event":"planned"')]
    (run / "planned.jsonl").write_text("".join(planned), "utf-8")
    for path in [path for path in run.rglob("*") if path.is_file()]:
        if path.name not in ("plan.json", "planned.jsonl"):
            path.unlink()


def measure(folder: Path) -> None:
    sizes = ("--start", "40", "--iterations", "80", "--evaluate-at", "80", "--blocks", "4", "--seeds", "4")
    said(folder, "lab", "init", "--scene", "scene", "--resolution", "1", *sizes)
    protocol = folder / "lab" / "protocol.toml"
    options = 'options = ["--device", "cpu", "--threads", "1"]'
    protocol.write_text(
        protocol.read_text("utf-8").replace('options = ["--device", "cpu"]', options), "utf-8"
    )
    said(folder, "lab", "prepare")
    said(folder, "lab", "phase", "add", "plain-loss", "--note", "A note.", "--", "--lambda-dssim", "0")
    said(folder, "lab", "run", "plain-loss")


def figures(folder: Path) -> dict[str, Any]:
    """What the files say to the version that wrote them."""
    from splatmeter.events import from_line
    from splatmeter.formats import registry
    from splatmeter.train import container, plan

    arrays, state = container.read(next((folder / "run").glob("chkpnt60.safetensors")))
    files = (folder / "run" / "events.jsonl", folder / "timed" / "planned.jsonl")
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    models = {file: registry.read_model(folder / "models" / file) for file in EXPORTS}
    timed = plan.read(folder / "timed" / "plan.json")
    (compared,) = json.loads(said(folder, "lab", "compare", "baseline", "plain-loss", "--json"))
    return {
        "version": splatmeter.__version__,
        "checkpoint": {name: digest(array) for name, array in sorted(arrays.items())},
        "state": sorted(state),
        "events": [from_line(line).kind for line in lines],
        "models": {file: positions(model.table.geometry) for file, model in models.items()},
        "plan": {"end": timed.end, "entries": len(timed.entries), "halfway": timed.step_at(0.5)},
        "lab": {name: compared[name] for name in ("ratio", "interval_95", "blocks", "verdict", "session")},
    }


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def positions(geometry: np.ndarray) -> dict[str, Any]:
    means = geometry[:, :3].astype(np.float64)
    return {"count": len(means), "sum": [math.fsum(column) for column in means.T]}


def packed(folder: Path) -> bytes:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=9) as archive:
        for path in files:
            place = path.relative_to(folder)
            if "lab" in place.parts and set(place.parts) & set(LEFT_OUT):
                continue
            entry = tarfile.TarInfo(place.as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return buffer.getvalue()


def main() -> None:
    target = HERE / "kept" / splatmeter.__version__
    if target.exists() and sys.argv[1:] != ["--before-the-release"]:
        sys.exit(
            f"{target} is there. It is what was promised; it may be made anew only --before-the-release."
        )
    with tempfile.TemporaryDirectory(prefix="kept-") as name:
        folder = Path(name).resolve()
        os.environ["SPLATMETER_CACHE"] = str(folder / "cache")
        train(folder)
        measure(folder)
        told = figures(folder)
        data = packed(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / "files.tar.xz").write_bytes(data)
    (target / "figures.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    (target / "names.json").write_text(json.dumps(names_of_today(), indent=1) + "\n", "utf-8")
    print(f"{target}: {sum(path.stat().st_size for path in target.iterdir())} bytes")


if __name__ == "__main__":
    main()
