"""The steps of `splatmeter make`: which command each is, and how one sees that its result is whole."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from splatmeter.capture.from_photos import present
from splatmeter.capture.job import Job
from splatmeter.capture.report import NAME as SCENE_REPORT
from splatmeter.cli import export_page
from splatmeter.cli.main import carried_out
from splatmeter.cli.make_folder import Folder
from splatmeter.cli.models import say
from splatmeter.errors import CheckpointError
from splatmeter.files.ply_header import read_header
from splatmeter.gaussians.ply import ADVICE
from splatmeter.models.run_settings import run_config
from splatmeter.scene.scene import SceneOptions, load_scene
from splatmeter.train import checkpoint_names
from splatmeter.train.output_folder import holds_run
from splatmeter.units import bytes_text, count_text

FEWEST_TO_HOLD_OUT = 8
"""Below that every photo is needed to train on."""


@dataclass(frozen=True)
class Task:
    """What is to be made of what. Paths as they were given, so that printed commands read as people write."""

    source: Path
    folder: Folder
    job: Job | None
    """None where the source is a scene, whose photos have their places already."""
    photo_words: Sequence[str] = ()
    engine_words: Sequence[str] = field(default=())

    @property
    def scene(self) -> Path:
        return self.source if self.job is None else self.folder.scene

    @cached_property
    def views(self) -> int:
        return len(load_scene(SceneOptions(self.scene)).train)

    @cached_property
    def holds_out(self) -> bool:
        """Scenes that come with test views of their own hold those out."""
        if self.job is not None and not self.folder.scene.is_dir():  # not known yet: as if all found a place
            return self.job.video is not None or len(self.job.photos) >= FEWEST_TO_HOLD_OUT
        return not (self.scene / "sparse").is_dir() or self.views >= FEWEST_TO_HOLD_OUT


class Step(Protocol):
    name: str
    title: str

    def whole(self) -> bool: ...
    def words(self) -> list[str]: ...
    def run(self) -> int: ...
    def told(self) -> str: ...


def steps(task: Task) -> list[Step]:
    places: list[Step] = [] if task.job is None else [Places(task, task.job)]
    return [*places, Training(task), Judging(task), Page(task)]


@dataclass
class Places:
    task: Task
    job: Job
    name: str = "places"
    title: str = "Where each photo was taken"

    def whole(self) -> bool:
        return present(self.task.folder.scene.absolute(), self.job) is not None

    def words(self) -> list[str]:
        to = [str(self.task.source), str(self.task.folder.scene)]
        return ["scene", "from-photos", *to, *self.task.photo_words]

    def run(self) -> int:
        return carried_out(self.words())

    def told(self) -> str:
        facts = json.loads((self.task.folder.scene / SCENE_REPORT).read_text("utf-8"))
        return f"{facts['registered']} of {facts['photos']} photos have found their place"


@dataclass
class Training:
    task: Task
    name: str = "training"
    title: str = "Training"

    def whole(self) -> bool:
        return self.task.folder.model_file() is not None and not self._older_than_scene()

    def words(self) -> list[str]:
        return [*self._first_words(), *self._continuation()]

    def run(self) -> int:
        try:
            return carried_out(self.words())
        except CheckpointError as problem:
            say(f"{problem.what} Training begins anew.")
            return carried_out([*self._first_words(), "--overwrite"])

    def told(self) -> str:
        step, gaussians = _model_facts(self.task.folder.model_file())
        return f"{step} steps, {count_text(gaussians)} Gaussians"

    def _first_words(self) -> list[str]:
        where = ["-s", str(self.task.scene), "-m", str(self.task.folder.model)]
        held = ["--eval"] if self.task.holds_out else []
        return ["train", *where, *held, "--preset", "fast", *self.task.engine_words]

    def _continuation(self) -> list[str]:
        model = self.task.folder.model
        if not model.is_dir() or not holds_run(model):
            return []
        config, reached = run_config(model), max(checkpoint_names.saved(model), default=None)
        useful = config is not None and reached is not None and reached < config.iterations
        return ["--resume"] if useful and not self._older_than_scene() else ["--overwrite"]

    def _older_than_scene(self) -> bool:
        """Somebody removed the scene, and it was made anew: other places, other training."""
        made, trained = self.task.folder.scene / SCENE_REPORT, self.task.folder.model / "config.json"
        if self.task.job is None or not made.is_file() or not trained.is_file():
            return False
        return trained.stat().st_mtime_ns < made.stat().st_mtime_ns


@dataclass
class Judging:
    task: Task
    name: str = "judging"
    title: str = "Judging: photos beside renders"

    def whole(self) -> bool:
        folder = self.task.folder
        return folder.record.judged.get("model") == folder.model_stamp() and folder.sheet.is_file()

    def words(self) -> list[str]:
        folder = self.task.folder
        what = ["-m", str(folder.model), "-s", str(self.task.scene), "--lpips", "none"]
        return ["eval", *what, "--contact-sheet", str(folder.sheet), *self.task.engine_words]

    def run(self) -> int:
        from splatmeter.cli import eval as evaluation

        record = evaluation.judged(self.words()[1:])[0]
        split, found = next(iter(record["splits"].items()))
        psnr = found["1"]["means"]["psnr"]
        self.task.folder.record.judged = {
            "model": self.task.folder.model_stamp(),
            "split": split,
            "views": found["1"]["views"],
            "psnr": psnr if math.isfinite(psnr) else None,
        }
        return 0

    def told(self) -> str:
        found: dict[str, Any] = self.task.folder.record.judged
        psnr = "no PSNR" if found["psnr"] is None else f"{found['psnr']:.2f} dB"
        if found["split"] == "test":
            return f"{psnr} on {_photos(found['views'])} that training never saw"
        return (
            f"{psnr} on {_photos(found['views'])} of the training itself: there were too few to hold any "
            "out, so this says little about new views"
        )


@dataclass
class Page:
    task: Task
    name: str = "page"
    title: str = "The page"

    def whole(self) -> bool:
        return not self.task.folder.older_than_model(self.task.folder.page)

    def words(self) -> list[str]:
        folder = self.task.folder
        named = folder.out.absolute().name
        title = export_page.first_public([] if named.startswith("-") else [named])
        where = ["-s", str(self.task.scene), "-o", str(folder.page)]
        return ["export", str(folder.model), *where, "--title", title]

    def run(self) -> int:
        return carried_out(self.words())

    def told(self) -> str:
        page = self.task.folder.page
        return f"{page}, {bytes_text(page.stat().st_size)}"


def _model_facts(model: Path | None) -> tuple[int, int]:
    """Step and number of Gaussians, from the file's header alone."""
    if model is None:
        return 0, 0
    with model.open("rb") as stream:
        _, vertex = read_header(stream, model, ADVICE).before("vertex")
    return int(model.parent.name.removeprefix("iteration_")), vertex.count if vertex else 0


def _photos(count: int) -> str:
    return "one photo" if count == 1 else f"{count} photos"
