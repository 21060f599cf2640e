"""`splatmeter demo`: the whole tool once, on a scene it makes itself; it only drives the other commands."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from splatmeter.cli.arguments import parse
from splatmeter.errors import OutputError, SplatmeterError
from splatmeter.units import duration_text

DESCRIPTION = """Make the built-in scene, train it, judge it, and measure two changes with the lab.

Needs no network, no data and no graphics card. Everything goes into one folder, which is named at the end:
first the model as a page that any browser shows, a contact sheet (photo, render, difference) and a turntable;
then the lab's report: a change that is proved to be faster, and one that loses quality."""

DEFAULT_FOLDER = "splatmeter-demo"


@dataclass(frozen=True, slots=True)
class DemoArguments:
    quick: bool = False
    """A smaller scene and shorter runs: half a minute instead of three."""
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
    warm_up: int
    """How many of these steps are not timed."""
    grows_from: int
    """The step after which Gaussians are added, so that the lab's runs have some of it."""
    frames: int


FULL = Scale(iterations=2000, start=1000, measured=200, warm_up=50, grows_from=500, frames=60)
QUICK = Scale(iterations=600, start=250, measured=100, warm_up=25, grows_from=100, frames=20)


def run(words: Sequence[str]) -> int:
    chosen = parse(DemoArguments, "splatmeter demo", words, DESCRIPTION)
    out = free_folder() if chosen.out is None else empty_folder(chosen.out)
    scale = QUICK if chosen.quick else FULL
    begin = time.perf_counter()
    title(1, "The scene: a garden, photographed by our own ray tracer")
    scene = made_scene(chosen.quick)
    title(2, f"Training: {scale.iterations} steps, every 8th photo held out")
    trained(scene, out, scale, chosen.device)
    title(3, "The finished model, on photos that training never saw")
    told = shown(out, scale, chosen.device, lpips=not chosen.quick)
    title(4, "Measuring two changes, in fresh processes and random order")
    from splatmeter.cli import demo_lab

    demo_lab.measure(demo_lab.Demo(out, scene, scale, told))
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
            *("--densify-from-iter", str(scale.grows_from)),
            *("--test-iterations", str(scale.iterations), "--checkpoint-iterations", str(scale.start)),
            *("--device", device),
        ]
    )
    if code:
        raise SplatmeterError("the demo was interrupted; start it again with: splatmeter demo")


def shown(out: Path, scale: Scale, device: str, lpips: bool) -> str:
    """Metrics, contact sheet, page and turntable of the trained model; what there is to say in a sentence."""
    from splatmeter.cli import eval as evaluation
    from splatmeter.cli import export, render

    model = ["-m", str(out / "model")]
    words = [*model, "--contact-sheet", str(out / "contact_sheet.png"), "--device", device]
    record = evaluation.judged([*words, *([] if lpips else ["--lpips", "none"])])[0]
    export.run([*model, "-o", str(out / "scene.html"), "--title", "The built-in garden", "--with-photos"])
    turn = [*model, "--path", "orbit", "--frames", str(scale.frames), "--fps", "20"]
    render.run([*turn, "-o", str(out / "turntable.gif"), "--quiet", "--device", device])
    found = record["splits"]["test"]["1"]
    psnr = f"{found['means']['psnr']:.2f} dB on the {found['views']} photos that training never saw"
    told = f"{scale.iterations} steps, {record['gaussians']} Gaussians, {psnr}"
    print(f"{told}\nLook around in it: {(out / 'scene.html').absolute().as_uri()}", flush=True)
    return told


def ending(out: Path, scene: Path) -> str:
    """What is where, and what to do with it next."""
    model, lab = (shlex.quote(str(out / name)) for name in ("model", "lab"))
    files = {
        "scene.html": "the model: open it in a browser, turn it, fly through it, send it to others",
        "contact_sheet.png": "photo, render, difference of the held-out views",
        "turntable.gif": "a turn around the garden",
        "report.html": "the lab's report: what was measured, and what follows",
        "LOG.md": "the same as Markdown, for your repository",
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
            "  splatmeter make YOUR_PHOTOS -o YOUR_PAGE    # the same of your own photos, or of a video",
        ]
    )
