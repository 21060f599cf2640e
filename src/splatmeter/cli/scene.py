"""`splatmeter scene`: a scene of your photos, a built-in one, or what the loader finds in one of yours."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from splatmeter.cli.arguments import parse
from splatmeter.cli.nearest import suggestion
from splatmeter.cli.scene_photos import run_from_photos, run_undistort
from splatmeter.errors import UsageError
from splatmeter.scene.built_in import Progress
from splatmeter.scene.city import CitySize, is_city_scene, make_city_scene
from splatmeter.scene.demo import FULL, QUICK, DemoSize, is_demo_scene, make_demo_scene
from splatmeter.scene.scene import Scene, SceneOptions, View, load_scene
from splatmeter.units import duration_text

USAGE = """usage: splatmeter scene from-photos PHOTOS OUT [--max-size N] [--matching HOW] ...
       splatmeter scene undistort IN OUT [--images NAME]
       splatmeter scene info FOLDER [--images NAME] [--resolution R] [--test-every N]
       splatmeter scene demo OUT [--seed N] [--quick]
       splatmeter scene city OUT [--size N] [--seed N] [--width PIXELS] [--height PIXELS]

  from-photos   find out where the photos of a folder (or frames of a video) were taken: a scene to train on
  undistort     remove lens distortion: make a scene with pinhole cameras from one without
  info          show what training would find in FOLDER: views, split, sizes, points, extent
  demo          photograph the built-in garden into the folder OUT, as an ordinary COLMAP scene
  city          photograph the built-in city, as large as you like, from the air and from its streets

`splatmeter scene from-photos --help` and so on explain the options."""


@dataclass(frozen=True, slots=True)
class DemoArguments:
    out: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="OUT")]]
    """Folder to make; it must not exist yet, be empty, or already hold this scene."""
    seed: int = 0
    """Another seed plants another garden; the same seed gives the same photos."""
    quick: bool = False
    """20 photos of 128x96 instead of 48 of 320x240: for trying things out."""


@dataclass(frozen=True, slots=True)
class CityArguments:
    out: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="OUT")]]
    """Folder to make; it must not exist yet, be empty, or already hold this city."""
    size: int = 2
    """Blocks on a side, 40 m each: 1 gives 54 photos, 2 gives 176, 4 gives 624, 8 gives 2336."""
    seed: int = 0
    """Another seed builds another city; the same size and seed give the same photos."""
    width: int = 480
    """Pixels in a row of a photo, which shows 70 degrees."""
    height: int = 320
    """Rows of a photo. Photos straight down overlap by about 70 % if they are 3:2."""


@dataclass(frozen=True, slots=True)
class InfoArguments:
    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]
    """Folder of the scene: COLMAP (sparse/ and photos), NeRF-synthetic or multi-scale."""
    images: str = "images"
    """Folder of the photos within a COLMAP scene, for example images_4."""
    resolution: int = -1
    """Divisor 1 to 64, or a width in pixels; -1 shrinks photos wider than 1600 pixels to that width."""
    test_every: int = 8
    """Every n-th photo by name is a test view (COLMAP scenes)."""


def run(arguments: list[str]) -> int:
    if arguments[:1] in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    actions = {
        "from-photos": run_from_photos,
        "undistort": run_undistort,
        "info": _info,
        "demo": _demo,
        "city": _city,
    }
    if not arguments or arguments[0] not in actions:
        listed = "from-photos, undistort, info, demo or city"
        if not arguments:
            raise UsageError(f"Say {listed}. See splatmeter scene --help")
        given = f"{arguments[0]!r} is none of {listed}.{suggestion(arguments[0], actions)}"
        raise UsageError(f"{given} See splatmeter scene --help")
    return actions[arguments[0]](arguments[1:])


def _demo(arguments: list[str]) -> int:
    chosen = parse(DemoArguments, "splatmeter scene demo", arguments, "Photograph the built-in garden.")
    size = QUICK if chosen.quick else FULL
    present = is_demo_scene(chosen.out, chosen.seed, size)
    started = time.perf_counter()
    with _progress_bar() as progress:
        folder = make_demo_scene(chosen.out, chosen.seed, chosen.quick, progress=progress)
    _tell(folder, size, present, started)
    return 0


def _city(arguments: list[str]) -> int:
    chosen = parse(CityArguments, "splatmeter scene city", arguments, "Photograph the built-in city.")
    size = CitySize(chosen.size, chosen.width, chosen.height, chosen.seed).checked()
    present = is_city_scene(chosen.out, size)
    started = time.perf_counter()
    with _progress_bar("photographing the city") as progress:
        folder = make_city_scene(chosen.out, size, progress=progress)
    _tell(folder, size, present, started)
    return 0


def _tell(folder: Path, size: DemoSize | CitySize, present: bool, started: float) -> None:
    spent = "already there" if present else f"made in {duration_text(time.perf_counter() - started)}"
    print(f"{folder}: {size.photos} photos of {size.width}x{size.height}, {size.points} points ({spent})")
    print(f"Train it with: splatmeter train -s {shlex.quote(str(folder))} --eval")


@contextlib.contextmanager
def _progress_bar(doing: str = "photographing the garden") -> Iterator[Progress]:
    """On the terminal's error stream, gone when done; silent elsewhere."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _info(arguments: list[str]) -> int:
    chosen = parse(InfoArguments, "splatmeter scene info", arguments, "Show what is in a scene.")
    options = SceneOptions(
        source=chosen.folder,
        images=chosen.images,
        resolution=chosen.resolution,
        eval=True,
        test_every=chosen.test_every,
    )
    for name, text in describe(load_scene(options)):
        print(f"{name:<8} {text}")
    return 0


def describe(scene: Scene) -> list[tuple[str, str]]:
    """One line a fact, in the order a person asks."""
    low, high = scene.points.positions.min(axis=0), scene.points.positions.max(axis=0)  # [3] [3] world
    views = [*scene.train, *scene.test]
    split = f"with --eval {len(scene.train)} to train on and {len(scene.test)} to judge by"
    lines = [
        ("scene", str(scene.source)),
        ("kind", scene.kind),
        ("views", f"{len(views)}, {split}"),
        ("sizes", _sizes(views)),
        ("points", f"{scene.points.count}, within {_corner(low)} to {_corner(high)}"),
        ("extent", f"{scene.extent:.4g} (radius of the training cameras, and a tenth)"),
    ]
    return lines + [("note", note) for note in scene.notes]


def _sizes(views: Sequence[View]) -> str:
    sizes = Counter(f"{view.photo.width}x{view.photo.height}" for view in views)
    most = [size if len(sizes) == 1 else f"{size} ({count})" for size, count in sizes.most_common(4)]
    return ", ".join(most) + (f" and {len(sizes) - 4} other sizes" if len(sizes) > 4 else "")


def _corner(position: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in position) + ")"
