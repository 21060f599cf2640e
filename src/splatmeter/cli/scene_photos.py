"""`splatmeter scene from-photos` and `undistort`: from what cameras leave to what training takes."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from splatmeter.backends.registry import checked_threads
from splatmeter.capture.from_photos import from_photos
from splatmeter.capture.job import STAGES, Settings
from splatmeter.capture.report import NAME, lines
from splatmeter.capture.undistort import undistort
from splatmeter.capture.work import work_folder
from splatmeter.cli.arguments import parse
from splatmeter.errors import UsageError
from splatmeter.shell import command_text
from splatmeter.units import duration_text

CameraModel = Literal[
    "SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "OPENCV_FISHEYE", "FULL_OPENCV"
]
LARGEST_SEED = 2**31 - 1
STAGE_WORDS = {
    "photos": "looking at photos",
    "features": "finding features",
    "pairs": "choosing pairs",
    "matching": "comparing pairs",
    "mapping": "placing photos",
    "undistortion": "undistorting",
    "points": "adding points",
}


@dataclass(frozen=True, kw_only=True)
class PhotoOptions:
    """What can be told about photos, here and to `splatmeter make`."""

    camera_model: CameraModel = "SIMPLE_RADIAL"
    """Lens: PINHOLE for photos without distortion, OPENCV for wide lenses, OPENCV_FISHEYE for fisheyes."""
    matching: Literal["auto", "exhaustive", "similar", "sequential"] = "auto"
    """Compare all photos, similar ones or the next in order; auto: next in videos, all up to 100 photos."""
    single_camera: bool = False
    """All photos share one lens at one zoom; by default those of one size, camera and zoom do."""
    max_size: int = 1600
    """Pixels of the longer side of the photos in the scene; larger ones are shrunk."""
    frames: int = 200
    """From a video, take at most this many frames: the sharpest of each stretch of equal motion."""
    every: float | None = None
    """From a video, take the sharpest frame of every so many seconds instead."""
    masks: Path | None = None
    """Folder of masks, 255 = object (IMG_1.png for IMG_1.jpg); by default PHOTOS/masks where it exists."""
    seed: int = 0
    """Random seed for the samples that reconstruction takes."""
    threads: int | None = None
    """By default as many as there are processors."""

    def settings(self) -> Settings:
        if not 320 <= self.max_size <= 2**14:
            raise UsageError(f"--max-size is {self.max_size}, but must be between 320 and {2**14} pixels.")
        if not 3 <= self.frames <= 5000:
            raise UsageError(f"--frames is {self.frames}, but must be between 3 and 5000.")
        if self.every is not None and not 0.02 <= self.every <= 3600:
            raise UsageError(f"--every is {self.every:g}, but must be between 0.02 and 3600 seconds.")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise UsageError(f"The seed {self.seed} is out of range. Choose one from 0 to {LARGEST_SEED}.")
        return Settings(
            camera_model=self.camera_model,
            matching=self.matching,
            single_camera=self.single_camera,
            max_size=self.max_size,
            seed=self.seed,
            threads=checked_threads(self.threads) or _usable_cores(),
            frames=self.frames,
            every=self.every,
        )


@dataclass(frozen=True)
class FromPhotosArguments(PhotoOptions):
    photos: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="PHOTOS")]]
    """Folder of photos (sub-folders too), or a video."""
    out: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="OUT")]]
    """Folder to make: a scene for `splatmeter train -s OUT`. It must not exist yet, or be empty."""
    keep_work: bool = False
    """Keep COLMAP's database and the prepared photos in the folder .OUT.work beside OUT."""


@dataclass(frozen=True, slots=True)
class UndistortArguments:
    source: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="IN")]]
    """Scene that COLMAP reconstructed: sparse/ beside a folder of photos."""
    out: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="OUT")]]
    """Folder to make; it must not exist yet, or be empty."""
    images: str = "images"
    """Folder of the photos within IN."""
    masks: Path | None = None
    """Folder of masks, 255 = object; by default IN/masks where it exists."""
    threads: int | None = None
    """By default as many as there are processors."""


def run_from_photos(arguments: list[str]) -> int:
    about = "Find out where photos were taken, and make a scene of them to train on."
    chosen = parse(FromPhotosArguments, "splatmeter scene from-photos", arguments, about)
    settings = chosen.settings()
    started = time.perf_counter()
    try:
        with _told() as hear:
            made = from_photos(
                chosen.photos, chosen.out, settings, masks=chosen.masks, keep_work=chosen.keep_work, hear=hear
            )
    except KeyboardInterrupt:
        print(
            "splatmeter scene: interrupted. Run the same command again to go on; what is finished lies in "
            f"{work_folder(chosen.out.expanduser().absolute())}",
            file=sys.stderr,
        )
        return 130
    spent = "already there" if made.before else f"made in {duration_text(time.perf_counter() - started)}"
    print(f"{chosen.out}: {made.facts['registered']} photos ({spent}; {NAME} has all figures)")
    for name, text in lines(made.facts):
        print(f"{name:<8} {text}")
    print("Train it with:", command_text(["train", "-s", str(chosen.out), "--eval", "--preset", "fast"]))
    return 0


def run_undistort(arguments: list[str]) -> int:
    about = "Remove lens distortion: make a scene with pinhole cameras from one without."
    chosen = parse(UndistortArguments, "splatmeter scene undistort", arguments, about)
    threads = checked_threads(chosen.threads) or _usable_cores()
    with _told(("photos", "undistortion")) as hear:
        photos = undistort(
            chosen.source, chosen.out, images=chosen.images, masks=chosen.masks, threads=threads, hear=hear
        )
    print(f"{chosen.out}: {photos} photos, undistorted")
    print("Train it with:", command_text(["train", "-s", str(chosen.out), "--eval"]))
    return 0


@contextlib.contextmanager
def _told(stages: Sequence[str] = STAGES) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A bar with the time left on a terminal, else a line a finished stage; both on the error stream."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def hear(message: dict[str, Any]) -> None:
            if message.get("going_on"):
                print("Going on with what an earlier run has left.", file=sys.stderr)
            stage = message.get("stage")
            if stage is None:
                return
            if stage not in tasks:
                tasks[stage] = bar.add_task(_title(stage, stages), total=None)
            if message.get("finished"):
                bar.update(tasks[stage], visible=False)
                if not console.is_terminal and not message["before"]:
                    print(f"{_title(stage, stages)}: done", file=sys.stderr)
            else:
                bar.update(tasks[stage], completed=message["done"], total=message["total"] or None)

        yield hear


def _title(stage: str, stages: Sequence[str]) -> str:
    return f"{stages.index(stage) + 1}/{len(stages)} {STAGE_WORDS[stage]}"


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
