"""`splatmeter export -o scene.html`, and what `view` and the lab's report show: a model as a page."""

from __future__ import annotations

import dataclasses
import getpass
import json
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from splatmeter.backend import Backend
from splatmeter.cli import models, preview
from splatmeter.errors import InputError, SplatmeterError, UsageError
from splatmeter.evaluate.metrics import psnr
from splatmeter.models.opening import Opened, finite_table
from splatmeter.ops import Pinhole, RasterSettings, Table
from splatmeter.page import compared_photos, from_model, quantise, viewpoints
from splatmeter.page.from_model import MOST_GAUSSIANS, Made
from splatmeter.page.viewpoints import Viewpoint
from splatmeter.render.pictures import to_8bit
from splatmeter.scene.scene import load_scene
from splatmeter.train.config import PLAIN_KERNEL_SIZE
from splatmeter.units import count_text

MANY = 1_500_000
VIEWS_TO_MEASURE = 3
WIDEST_MEASURED = 640


@dataclass(frozen=True)
class PageWishes:
    title: str | None = None
    with_photos: bool = False
    max_gaussians: int | None = None
    kernel_size: float | None = None
    source_path: Path | None = None
    sh_degree: int | None = None


def made(opened: Opened, wishes: PageWishes) -> Made:
    table = _few_enough(finite_table(opened, models.say), wishes.max_gaussians)
    degree = opened.model.sh_degree if wishes.sh_degree is None else wishes.sh_degree
    title = title_of(opened) if wishes.title is None else wishes.title
    settings, views = _settings(opened, wishes), _views(opened, wishes)
    if not table.count:
        raise InputError(f"{opened.path} holds no Gaussians to show.")
    return from_model.made(table, degree, settings, views, title, held_out_psnr(opened))


# ---- what is drawn ----------------------------------------------------------------------------------------
def _few_enough(table: Table, limit: int | None) -> Table:
    if limit is not None and limit < 1:
        raise UsageError(f"--max-gaussians is {limit}, but must be above 0.")
    if table.count > (limit or MOST_GAUSSIANS):
        if limit is None:
            raise UsageError(
                f"This model has {count_text(table.count)} Gaussians, more than a browser can hold. "
                f"--max-gaussians {MOST_GAUSSIANS // 4} keeps those that cover most."
            )
        rows = preview.chosen_rows(table.geometry, limit)
        return dataclasses.replace(table, geometry=table.geometry[rows], harmonics=table.harmonics[rows])
    if limit is None and table.count > MANY:
        models.say(
            f"{count_text(table.count)} Gaussians make a large page, too much for most phones; "
            "--max-gaussians 500000 keeps those that cover most."
        )
    return table


def _settings(opened: Opened, wishes: PageWishes) -> RasterSettings:
    """As trained, with its background; else what the file tells; else plain 3DGS, as others write it."""
    degree, told = opened.model.sh_degree, opened.model.settings()
    if opened.config is not None:
        settings = opened.config.raster_settings(degree)
    elif told is not None:
        settings = told
    elif opened.model.filtered or wishes.kernel_size is not None:
        settings = RasterSettings(degree)
    else:
        models.say(
            f"{opened.path.name} does not say how it is to be drawn: taking it for plain 3DGS "
            "(kernel 0.3, no compensation). Pass -k 0.1 for a fused Mip-Splatting model."
        )
        settings = RasterSettings(degree, PLAIN_KERNEL_SIZE, False)
    if wishes.kernel_size is not None:
        if not 0 <= wishes.kernel_size < 100:
            raise UsageError(f"--kernel-size is {wishes.kernel_size}, but must be between 0 and 100.")
        settings = dataclasses.replace(settings, kernel_size=wishes.kernel_size)
    return settings


# ---- where one may stand ----------------------------------------------------------------------------------
def _views(opened: Opened, wishes: PageWishes) -> list[Viewpoint]:
    """Those of the scene, with their principal points; else what cameras.json in the run folder tells."""
    asked = models.ModelArguments(opened.path, source_path=wishes.source_path)
    try:
        scene = load_scene(models.scene_config(opened, asked).scene_options())
    except SplatmeterError:
        if wishes.with_photos or wishes.source_path is not None:
            raise
        return known_cameras(opened.folder)
    held_out = {view.name for view in scene.test}
    views = sorted((*scene.train, *scene.test), key=lambda view: view.name)
    return compared_photos.viewpoints(views, [view.name in held_out for view in views], wishes.with_photos)


def known_cameras(folder: Path | None) -> list[Viewpoint]:
    """From cameras.json, in order of the photos' names; an unreadable file counts as none."""
    try:
        entries = json.loads((folder / "cameras.json").read_text("utf-8")) if folder else []
        entries = sorted(entries, key=lambda entry: str(entry["img_name"]))
        found = [_camera(entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [Viewpoint(camera) for camera in found]


def _camera(entry: dict[str, Any]) -> Pinhole:
    rotation = np.array(entry["rotation"], np.float64).reshape(3, 3).T
    position = np.array(entry["position"], np.float64).reshape(3)
    width, height = int(entry["width"]), int(entry["height"])
    fx, fy = float(entry["fx"]), float(entry["fy"])
    sound = np.isfinite([*rotation.ravel(), *position, fx, fy]).all() and min(width, height, fx, fy) > 0
    if not sound or np.abs(rotation @ rotation.T - np.eye(3)).max() > 0.01:
        raise ValueError("no camera")
    return Pinhole(rotation, -rotation @ position, fx, fy, width / 2, height / 2, width, height)


# ---- what is told -----------------------------------------------------------------------------------------
def title_of(opened: Opened) -> str:
    """The scene's name, never a path, and never the name of a person or machine."""
    named = [opened.config.source_path.name] if opened.config is not None else []
    named += [opened.folder.absolute().name] if opened.folder is not None else []
    stem = opened.path.stem
    named += [stem] if stem not in ("point_cloud", "fused") and not stem.startswith("chkpnt") else []
    return first_public(named)


def first_public(names: Sequence[str]) -> str:
    private = {_user().lower(), platform.node().lower(), "", "."}
    return next((name for name in names if name.lower() not in private), "Scene")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def held_out_psnr(opened: Opened) -> float | None:
    """As the run itself measured it at this step."""
    if opened.folder is None:
        return None
    try:
        lines = (opened.folder / "events.jsonl").read_text("utf-8").splitlines()
        events = [json.loads(line) for line in lines if '"evaluated"' in line]
        for event in reversed(events):
            if (event["event"], event["step"], event["split"]) == ("evaluated", opened.step, "test"):
                value = float(event["metrics"]["psnr"])
                return value if math.isfinite(value) else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


# ---- what rounding costs ----------------------------------------------------------------------------------
def rounding(opened: Opened, page: Made, engine: Callable[[], Backend]) -> str:
    """The page's Gaussians against the model's, both drawn by our engine; empty without cameras."""
    if not page.views:
        return ""
    backend = engine()
    first = backend.upload(finite_table(opened, models.say))
    second = backend.upload(quantise.restored(page.gaussians.packed))
    found = []
    settings = dataclasses.replace(page.settings, sh_degree=page.degree)
    for view in viewpoints.evenly(page.views, VIEWS_TO_MEASURE):
        camera = _smaller(view.camera)
        pictures = [to_8bit(model.render(camera, settings).color) for model in (first, second)]
        found.append(min(psnr(*pictures), 99.0))
    mean = float(np.mean(found))
    return f"Rounding: {mean:.1f} dB between the page's Gaussians and the model's ({len(found)} views)."


def _smaller(camera: Pinhole) -> Pinhole:
    share = min(1.0, WIDEST_MEASURED / camera.width)
    width, height = max(1, round(camera.width * share)), max(1, round(camera.height * share))
    lens = {name: getattr(camera, name) * share for name in ("fx", "fy", "cx", "cy")}
    return dataclasses.replace(camera, width=width, height=height, **lens)
