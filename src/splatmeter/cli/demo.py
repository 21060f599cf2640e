"""`splatmeter demo`: the whole tool once, on a scene it makes itself; it only drives the other commands."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from splatmeter.cli.arguments import parse
from splatmeter.errors import OutputError, SplatmeterError
from splatmeter.units import duration_text

DESCRIPTION = """Make the built-in scene, train it, judge it, and measure an optimisation with the lab.

Needs no network, no data and no graphics card. Everything goes into one folder, which is named at the end:
a contact sheet (photo, render, difference), a turntable, the log, and a page to open in a browser."""

DEFAULT_FOLDER = "splatmeter-demo"


@dataclass(frozen=True, slots=True)
class DemoArguments:
    quick: bool = False
    """A smaller scene and shorter runs: under a minute instead of a few."""
    out: Path | None = None
    """Folder for everything; by default splatmeter-demo here, or the next free number after it."""
    device: str = "auto"
    """Where the model is trained: cpu, cuda, cuda:1, ... or auto. What the lab measures is the CPU engine."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done; chosen so that the whole takes minutes on two cores."""

    iterations: int
    start: int
    """The checkpoint from which the lab's runs begin."""
    measured: int
    """Steps of each of the lab's runs."""
    frames: int
    second_phase: bool
    """Also measure one that pays for its speed with quality."""


FULL = Scale(iterations=2000, start=1000, measured=200, frames=60, second_phase=True)
QUICK = Scale(iterations=1000, start=600, measured=150, frames=24, second_phase=False)


def run(words: Sequence[str]) -> int:
    chosen = parse(DemoArguments, "splatmeter demo", words, DESCRIPTION)
    out = free_folder() if chosen.out is None else empty_folder(chosen.out)
    scale = QUICK if chosen.quick else FULL
    begin = time.perf_counter()
    title(1, "The scene: a garden, photographed by our own ray tracer")
    scene = made_scene(chosen.quick)
    title(2, f"Training: {scale.iterations} steps, every 8th photo held out")
    trained(scene, out, scale, chosen.device)
    title(3, "Judging: photos the training never saw")
    judged(out, scale, chosen.device)
    title(4, "Measuring: one optimisation against the baseline, in fresh processes and random order")
    from splatmeter.cli import demo_lab

    demo_lab.measure(demo_lab.Demo(out, scene, scale))
    title(5, f"Done in {duration_text(time.perf_counter() - begin)}")
    print(ending(out, scene))
    return 0


def title(number: int, text: str) -> None:
    print(f"\n[{number}/5] {text}", flush=True)


# ---- the folder -------------------------------------------------------------------------------------------
def free_folder() -> Path:
    """The usual name, or with the first number at which there is nothing yet."""
    number, folder = 1, Path(DEFAULT_FOLDER)
    while used(folder):
        number += 1
        folder = Path(f"{DEFAULT_FOLDER}-{number}")
    return made(folder)


def empty_folder(folder: Path) -> Path:
    if used(folder):
        raise OutputError(f"{folder} is not empty. Choose another --out, or remove it.")
    return made(folder)


def used(folder: Path) -> bool:
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


def made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(
            f"{folder} cannot be made ({problem.strerror}). Choose another folder with --out."
        ) from None
    return folder


# ---- the steps --------------------------------------------------------------------------------------------
def made_scene(quick: bool) -> Path:
    from splatmeter.cli.scene import _progress_bar
    from splatmeter.scene import demo

    size = demo.QUICK if quick else demo.FULL
    with _progress_bar() as progress:
        folder = demo.cached_demo_scene(quick=quick, progress=progress)
    photos = f"{size.photos} photos of {size.width}x{size.height}"
    print(f"{photos} and {size.points} points in {folder}", flush=True)
    return folder


def trained(scene: Path, out: Path, scale: Scale, device: str) -> None:
    from splatmeter.cli import train

    code = train.run(
        [
            *("-s", str(scene), "-m", str(out / "model"), "--eval", "--iterations", str(scale.iterations)),
            *("--test-iterations", str(scale.start), "--checkpoint-iterations", str(scale.start)),
            *("--device", device),
        ]
    )
    if code:
        raise SplatmeterError("the demo was interrupted; start it again with: splatmeter demo")


def judged(out: Path, scale: Scale, device: str) -> None:
    """Metrics, contact sheet and turntable of the trained model."""
    from splatmeter.cli import eval as evaluation
    from splatmeter.cli import models, render

    words = ["-m", str(out / "model"), "--write-renders", "--device", device]
    chosen = parse(evaluation.EvalArguments, "splatmeter eval", words, "", models.SHORT)
    opened = models.open_model(chosen.model_path, chosen.iteration, chosen.engine)
    record = evaluation.evaluate(opened, chosen, [1])
    print(evaluation.text(record))
    if not record["lpips"]:
        print("LPIPS: not installed")
    sheet = next((out / "model" / "test").glob("ours_*/contact_sheet_*.png"))
    shutil.copyfile(sheet, out / "contact_sheet.png")
    turn = ["-m", str(out / "model"), "--path", "orbit", "--frames", str(scale.frames), "--fps", "20"]
    render.run([*turn, "-o", str(out / "turntable.gif"), "--quiet", "--device", device])


def ending(out: Path, scene: Path) -> str:
    """What is where, and what to do with it next."""
    model, lab = (shlex.quote(str(out / name)) for name in ("model", "lab"))
    files = {
        "report.html": "everything on one page: open it in a browser",
        "contact_sheet.png": "photo, render, difference of the held-out views",
        "turntable.gif": "a turn around the garden",
        "LOG.md": "the log of the measurement, for your repository",
        "model/": "the trained model; point_cloud/*/fused.ply opens in any viewer",
        "lab/": "every run with its evidence",
    }
    there = {name: text for name, text in files.items() if (out / name).exists()}
    width = max(map(len, there))
    listing = [f"  {name:<{width}}  {text}" for name, text in there.items()]
    return "\n".join(
        [
            f"Everything is in {out.absolute()}",
            *listing,
            "",
            "Try next:",
            f"  splatmeter eval -m {model} --scales 1,2,4,8    # the same model seen from further away",
            f"  splatmeter lab --lab {lab} aa baseline    # how much does this machine fluctuate?",
            "  splatmeter train -s YOUR_COLMAP_FOLDER --eval    # your own photos",
        ]
    )
