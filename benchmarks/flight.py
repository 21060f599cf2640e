"""A flight over the built-in city, low over its roofs and across every border of its blocks: what models show
there, against what the ray tracer sees from the same place.

    python benchmarks/flight.py CITY OUT whole=output/whole blocks=output/blocks [--frames 60]

CITY is the folder that `splatmeter scene city` made, OUT gets a picture of every frame (truth, then each
model) and `flight.json`. No photo was taken along the way, so nothing was trained on. Frames within 3 m of a
border are told apart: a seam would cost them more than the others.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from statistics import mean

import numpy as np
from measuring import table
from PIL import Image

from splatmeter import api
from splatmeter.blocks import grid
from splatmeter.ops import Pinhole
from splatmeter.scene.built_in import looking_at
from splatmeter.scene.city import CitySize, photograph
from splatmeter.scene.city_cameras import PITCH

HEIGHT, AHEAD, NEAR = 24.0, 14.0, 3.0
"""Metres above the ground; from a camera to the place it looks at; from a border to what is near it."""


def cameras(size: CitySize, frames: int) -> list[tuple[np.ndarray, Pinhole]]:
    """Along a wave from the south-west to the north-east corner and back across; with the place looked at."""
    side = PITCH * size.size
    focal = size.width / (2 * math.tan(math.radians(35)))
    found = []
    for share in (np.arange(frames) + 0.5) / frames:
        forth = share < 0.5
        t = 2 * share if forth else 2 * share - 1
        x = side * (0.08 + 0.84 * t)
        y = x + 0.08 * side * math.sin(9 * t) if forth else side - x + 0.08 * side * math.sin(9 * t)
        heading = np.array([1.0, 1.0 if forth else -1.0, 0.0]) / math.sqrt(2)
        target = np.array([x, np.clip(y, 0.04 * side, 0.96 * side), 0.0])
        eye = target - AHEAD * heading + [0, 0, HEIGHT]
        rotation = looking_at(eye, target, (0.0, 0.0, 1.0))
        lens = (focal, focal, size.width / 2, size.height / 2, size.width, size.height)
        found.append((target, Pinhole(rotation, -rotation @ eye, *lens)))
    return found


def borders(run: Path) -> grid.Grid | None:
    joined = run / "joined.json"
    return grid.from_record(json.loads(joined.read_text())["division"]["grid"]) if joined.is_file() else None


def distance_to_border(place: np.ndarray, cells: grid.Grid) -> float:
    along = [float(np.dot(place, axis)) for axis in cells.axes]
    slab = int(np.searchsorted(grid.borders(cells.across), along[0], side="right"))
    first = [abs(along[0] - cut) for cut in grid.borders(cells.across)]
    return min([*first, *(abs(along[1] - cut) for cut in grid.borders(cells.within[slab]))], default=math.inf)


def psnr(one: np.ndarray, two: np.ndarray) -> float:
    error = np.mean((one.astype(np.float64) - two) ** 2)
    return 10 * math.log10(255**2 / max(error, 1e-9))


def flown(chosen: argparse.Namespace) -> list[dict]:
    stamp = json.loads((chosen.city / "splatmeter-demo.json").read_text())
    size = CitySize(**{name: stamp[name] for name in ("size", "width", "height", "seed")})
    runs = dict(entry.split("=", 1) for entry in chosen.models)
    models = {name: api.load_model(path) for name, path in runs.items()}
    cells = next(filter(None, (borders(Path(path)) for path in runs.values())), None)
    chosen.out.mkdir(parents=True, exist_ok=True)
    frames = []
    for number, (target, camera) in enumerate(cameras(size, chosen.frames), start=1):
        truth = photograph(camera, size)
        pictures = {name: model.render(camera).pixels for name, model in models.items()}
        Image.fromarray(np.hstack([truth, *pictures.values()])).save(chosen.out / f"frame_{number:03d}.png")
        near = cells is not None and distance_to_border(target, cells) <= NEAR
        frames.append({"near": near, **{name: psnr(truth, shown) for name, shown in pictures.items()}})
    return frames


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("city", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--frames", type=int, default=60)
    chosen = parser.parse_args()
    frames = flown(chosen)
    (chosen.out / "flight.json").write_text(json.dumps(frames, indent=1))
    names = [name for name in frames[0] if name != "near"]
    groups = {"all": frames, "near a border": [f for f in frames if f["near"]],
              "elsewhere": [f for f in frames if not f["near"]]}  # fmt: skip
    rows = [
        [told, str(len(group)), *(f"{mean(f[name] for f in group):.2f}" for name in names)]
        for told, group in groups.items()
        if group
    ]
    print("\n".join(table(["frames", "count", *names], rows)))


if __name__ == "__main__":
    main()
