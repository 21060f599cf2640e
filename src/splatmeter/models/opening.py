"""What commands and notebooks open: a run folder, a checkpoint or a bare model file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from splatmeter.backend import Backend
from splatmeter.errors import MissingFile, UsageError
from splatmeter.formats.registry import read_model
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.ply import Model
from splatmeter.models.run_settings import run_config
from splatmeter.ops import Table
from splatmeter.train import checkpoint_names
from splatmeter.train.config import TrainConfig, from_json

Say = Callable[[str], object]
"""Takes a sentence that belongs beside the result, not into it."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    path: Path
    """The file the Gaussians came from."""
    folder: Path | None
    """The run it belongs to, if any."""
    step: int
    model: Model
    config: TrainConfig | None


def open_model(path: Path, iteration: int, engine: Callable[[], Backend]) -> Opened:
    """The engine is only made for checkpoints, whose rows have to be brought up to date."""
    if not path.exists():
        raise MissingFile(f"There is no model at {path}.")
    file = _choose(path, iteration) if path.is_dir() else path
    folder = _run_of(path, file)
    if file.suffix == ".pth":
        raise UsageError(f"{file} is a checkpoint of the original; name its point_cloud.ply instead.")
    if file.suffix == checkpoint_names.SUFFIX:
        model, step, config = read_checkpoint(file, engine)
        return Opened(file, folder, step, model, config)
    model = read_model(file)
    return Opened(file, folder, _step_of(file, model), model, run_config(folder) if folder else None)


def _run_of(path: Path, file: Path) -> Path | None:
    """The folder named, or the one whose layout the file lies in."""
    if path.is_dir() and is_run(path):
        return path
    file = file.absolute()
    if file.suffix == checkpoint_names.SUFFIX:
        return file.parent if is_run(file.parent) else None
    saved = file.parent.parent.name == "point_cloud" and is_run(file.parents[2])
    return file.parents[2] if saved else None


def is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("config.json", "cfg_args", "point_cloud"))


def saved_models(folder: Path) -> dict[int, Path]:
    """Step -> point_cloud.ply, ascending."""
    found: dict[int, Path] = {}
    for path in folder.glob("point_cloud/iteration_*/point_cloud.ply"):
        if re.fullmatch(r"iteration_\d+", path.parent.name):
            found[int(path.parent.name.removeprefix("iteration_"))] = path
    return dict(sorted(found.items()))


def _choose(folder: Path, iteration: int) -> Path:
    if (folder / "point_cloud.ply").is_file():
        return folder / "point_cloud.ply"
    models, checkpoints = saved_models(folder), checkpoint_names.saved(folder)
    if iteration >= 0:
        if iteration in models or iteration in checkpoints:
            return models.get(iteration) or checkpoints[iteration]
        there = ", ".join(map(str, sorted({*models, *checkpoints}))) or "none"
        raise MissingFile(f"{folder} has no model of iteration {iteration}; there are: {there}.")
    if models:
        return models[max(models)]
    if checkpoints:
        return checkpoints[max(checkpoints)]
    raise MissingFile(
        f"{folder} holds no model (no point_cloud/iteration_*/point_cloud.ply); train it first."
    )


def _step_of(file: Path, model: Model) -> int:
    for text in (file.parent.name.replace("_", " ", 1), *model.comments):
        match = re.fullmatch(r"(?:step|iteration) (\d{1,9})", text)
        if match:
            return int(match[1])
    return 0


def read_checkpoint(path: Path, engine: Callable[[], Backend]) -> tuple[Model, int, TrainConfig]:
    """The model inside a checkpoint, with what its rows were still owed."""
    from splatmeter.train import checkpoint_content

    found = checkpoint_content.read(path)
    with found.understood():
        config = from_json(found.record["config"])
        model = engine().upload(found.table(), found.optimizer())
        settled = model.download(slice(None))
        broken = int((~gaussians.finite_rows(settled)).sum())
        model = Model(settled, config.sh_degree, config.uses_filter_3d, (), broken)
        return model, int(found.record["step"]), config


def finite_table(opened: Opened, say: Say) -> Table:
    """What can be rendered; says how many rows are left out."""
    if opened.model.nonfinite:
        say(f"{opened.model.nonfinite} Gaussians of {opened.path} are not finite and are left out.")
    return gaussians.only_finite(opened.model.table)
