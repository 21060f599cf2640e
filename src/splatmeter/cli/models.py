"""What the commands open: a run folder, a checkpoint or a bare model file, with its scene and settings."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.backend import Backend
from splatmeter.backends.registry import BackendName
from splatmeter.cli import arguments
from splatmeter.errors import CheckpointError, InputError, MissingFile, UsageError
from splatmeter.formats.registry import read_model
from splatmeter.gaussians import gaussians
from splatmeter.gaussians.ply import Model
from splatmeter.ops import RasterSettings, Table
from splatmeter.scene.scene import Scene, load_scene
from splatmeter.train.config import PLAIN_KERNEL_SIZE, TrainConfig, from_json

_CHECKPOINT = re.compile(r"chkpnt(\d+)(?:\.safety)?\.safetensors")
SHORT = {
    "-m": "--model-path",
    "--model": "--model-path",
    "-s": "--source-path",
    "--source": "--source-path",
    "-i": "--images",
    "-r": "--resolution",
    "-w": "--white-background",
    "-k": "--kernel-size",
}


@dataclass(frozen=True)
class ModelArguments:
    """What every command on a model can be told. Everything not given comes from the run itself."""

    model_path: Path
    """Run folder, model file (PLY, SPZ, SOG, .splat, glTF), or checkpoint (.safetensors)."""
    source_path: Path | None = None
    """Scene folder; by default the one the run was trained on."""
    iteration: int = -1
    """Which saved model of a run folder; -1 is the latest."""
    images: str | None = None
    """Folder of photos inside a COLMAP scene."""
    resolution: int | None = None
    """1, 2, 4, ... shrink the photos by that factor; other values are the width in pixels."""
    white_background: bool = False
    """Composite and render over white, also where the run did not."""
    kernel_size: float | None = None
    """Variance of the 2D Mip filter in squared pixels."""
    backend: BackendName = "native"
    """The fast engine, or the slow and readable torch twin on the CPU."""
    eval: bool = False
    """Hold the test views out, also where the run did not; the original's scripts pass it everywhere."""
    device: str = "auto"
    """cpu, cuda, cuda:1, ... or auto: a graphics card if there is one that passes its self-test."""
    threads: int | None = None
    """Threads of the engine; by default one per processor this process may use."""

    def engine(self) -> Backend:
        from splatmeter.backends import registry

        return registry.backend(self.backend, arguments.checked_threads(self.threads), self.device)


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    path: Path
    """The file the Gaussians came from."""
    folder: Path | None
    """The run it belongs to, if any."""
    step: int
    model: Model
    config: TrainConfig | None


def say(note: str) -> None:
    """Beside the result, never in it: standard output may be read by a program."""
    print(note, file=sys.stderr)


# ---- opening ----------------------------------------------------------------------------------------------
def open_model(path: Path, iteration: int, engine: Callable[[], Backend]) -> Opened:
    """The engine is only made for checkpoints, whose rows have to be brought up to date."""
    if not path.exists():
        raise MissingFile(f"There is no model at {path}.")
    file = _choose(path, iteration) if path.is_dir() else path
    folder = _run_of(path, file)
    if file.suffix == ".pth":
        raise UsageError(f"{file} is a checkpoint of the original; name its point_cloud.ply instead.")
    if file.suffix == ".safetensors":
        model, step, config = read_checkpoint(file, engine)
        return Opened(file, folder, step, model, config)
    model = read_model(file)
    return Opened(file, folder, _step_of(file, model), model, run_config(folder) if folder else None)


def _run_of(path: Path, file: Path) -> Path | None:
    """The folder named, or the one whose layout the file lies in."""
    if path.is_dir() and is_run(path):
        return path
    file = file.absolute()
    if file.suffix == ".safetensors":
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


def saved_checkpoints(folder: Path) -> dict[int, Path]:
    found = {path: _CHECKPOINT.fullmatch(path.name) for path in folder.glob("chkpnt*")}
    return dict(sorted((int(match[1]), path) for path, match in found.items() if match))


def _choose(folder: Path, iteration: int) -> Path:
    if (folder / "point_cloud.ply").is_file():
        return folder / "point_cloud.ply"
    models, checkpoints = saved_models(folder), saved_checkpoints(folder)
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
    from splatmeter.train import checkpoint, container

    arrays, record = container.read(path)
    try:
        config = from_json(record["config"])
        settled = engine().upload(*checkpoint.content(path, arrays, record)).download(slice(None))
        broken = int((~gaussians.finite_rows(settled)).sum())
        model = Model(settled, config.sh_degree, config.uses_filter_3d, (), broken)
        return model, int(record["step"]), config
    except (KeyError, TypeError, ValueError) as problem:
        raise CheckpointError(f"The checkpoint {path} lacks or garbles {problem}.") from problem


def finite_table(opened: Opened) -> Table:
    """What can be rendered; says how many rows are left out."""
    if opened.model.nonfinite:
        say(f"{opened.model.nonfinite} Gaussians of {opened.path} are not finite and are left out.")
    return gaussians.only_finite(opened.model.table)


# ---- the run's settings -----------------------------------------------------------------------------------
def run_config(folder: Path) -> TrainConfig | None:
    """Of config.json, else of the original's cfg_args; None where there is neither."""
    try:
        if (folder / "config.json").exists():
            record = json.loads((folder / "config.json").read_text("utf-8"))
        elif (folder / "cfg_args").exists():
            record = parse_namespace((folder / "cfg_args").read_text("utf-8"))
        else:
            return None
        if not isinstance(record, dict):
            raise ValueError("not a set of settings")
        return from_json({name: value for name, value in record.items() if name not in _UNSUPPORTED})
    except (OSError, ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as problem:
        raise InputError(f"The settings of the run {folder} cannot be read ({problem}).") from None


_UNSUPPORTED = ("ray_jitter", "resample_gt_image")  # training only; no reason to refuse a finished model


def parse_namespace(text: str) -> Mapping[str, Any]:
    """`Namespace(a=1, b='x')` -> its literal values; nothing in it is ever executed."""
    tree = ast.parse(text.strip(), mode="eval").body
    if not isinstance(tree, ast.Call):
        raise ValueError("cfg_args is not a Namespace")
    found: dict[str, Any] = {}
    for keyword in tree.keywords:
        if keyword.arg and isinstance(keyword.value, (ast.Constant, ast.UnaryOp, ast.List, ast.Tuple)):
            found[keyword.arg] = ast.literal_eval(keyword.value)
    return found


def scene_config(opened: Opened, chosen: ModelArguments) -> TrainConfig:
    """The run's settings with what the command line says instead."""
    if chosen.source_path is None and (opened.config is None or opened.config.source_path == Path()):
        raise UsageError(f"Which scene? {opened.path} does not tell; pass the scene's folder with -s.")
    # A bare model is judged on every 8th view, the usual convention.
    config = opened.config or TrainConfig(eval=True, sh_degree=opened.model.sh_degree)
    given = {
        name: getattr(chosen, name)
        for name in ("source_path", "images", "resolution", "test_every", "test_count")
        if getattr(chosen, name, None) is not None
    }
    if "test_every" in given or "test_count" in given:
        given = {"test_count": None, **given, "eval": True}
    if chosen.eval:
        given["eval"] = True
    white = chosen.white_background or config.white_background
    return dataclasses.replace(config, **given, white_background=white)


def open_scene(config: TrainConfig) -> Scene:
    scene = load_scene(config.scene_options())
    for note in scene.notes:
        say(note)
    return scene


def raster_settings(opened: Opened, chosen: ModelArguments, config: TrainConfig) -> RasterSettings:
    """The run's own, else what the file says in a comment, else what its columns suggest."""
    base = config.raster_settings(opened.model.sh_degree)
    if opened.config is None:
        told = opened.model.settings()
        if told is None and not opened.model.filtered and chosen.kernel_size is None:
            say(
                f"{opened.path} does not say how it is to be rendered: taking it for plain 3DGS "
                "(kernel 0.3, no compensation). Pass -k 0.1 for a fused Mip-Splatting model."
            )
            told = RasterSettings(kernel_size=PLAIN_KERNEL_SIZE, compensate=False)
        if told is not None:
            base = dataclasses.replace(base, kernel_size=told.kernel_size, compensate=told.compensate)
    if chosen.kernel_size is not None:
        if not 0 <= chosen.kernel_size < 100:
            raise UsageError(f"--kernel-size is {chosen.kernel_size}, but must be between 0 and 100.")
        base = dataclasses.replace(base, kernel_size=chosen.kernel_size)
    return base
