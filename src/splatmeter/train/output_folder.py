"""The output folder, laid out as the original's, plus what makes a run repeatable."""

from __future__ import annotations

import dataclasses
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from splatmeter import __version__
from splatmeter.backend import Facts
from splatmeter.errors import MissingFile, OutputError
from splatmeter.events import Saved
from splatmeter.files.atomic import replacing, write_text
from splatmeter.files.hashes import sha256_of
from splatmeter.gaussians import ply
from splatmeter.photos.photo import size_of
from splatmeter.scene.points_ply import points_bytes
from splatmeter.scene.scene import Scene, View
from splatmeter.shell import command_text
from splatmeter.train import checkpoint, checkpoint_names, plan
from splatmeter.train.config import TrainConfig, to_json
from splatmeter.train.folder_lock import FolderLock, refuse_if_in_use
from splatmeter.train.state import TrainingState

TRIAL_ROWS = 65_536
EVENTS = "events.jsonl"
CONFIG = "config.json"
_TRACES = (CONFIG, "cfg_args", EVENTS, "cameras.json", "input.ply", "point_cloud", "evaluations", plan.NAME)


def with_output_folder(config: TrainConfig) -> TrainConfig:
    """The same configuration with `model_path` decided."""
    if config.model_path is not None:
        return config
    return dataclasses.replace(
        config, model_path=Path("output") / (config.experiment_name or uuid.uuid4().hex[:10])
    )


def starting_checkpoint(config: TrainConfig) -> Path | None:
    """The file to start from: the one named, else with --resume the newest in the output folder."""
    if config.start_checkpoint is not None:
        return config.start_checkpoint
    if not config.resume:
        return None
    folder = folder_of(config)
    found = checkpoint_names.newest(folder)
    if found is None:
        refuse_if_in_use(folder)  # a run that has just begun: --overwrite would be the wrong advice
        raise MissingFile(
            f"There is no checkpoint to resume from in {folder}. Start anew: without --resume, and with "
            "--overwrite if a run without checkpoints lies there."
        )
    return found


def refuse_used_folder(config: TrainConfig) -> None:
    """An existing run is never mixed with another one."""
    folder = folder_of(config)
    if config.overwrite or _continues(config) or not holds_run(folder):
        return
    raise OutputError(
        f"{folder} already holds a run. Go on with it (--resume), replace it (--overwrite), "
        "or choose another --model-path."
    )


def way_on(folder: Path) -> str:
    """For whoever was stopped."""
    return f"Go on with: {command_text(['train', '-m', str(folder), '--resume'])}"


class OutputFolder:
    """Owns the folder while it is open. Everything it writes is whole or not there."""

    def __init__(self, config: TrainConfig) -> None:
        self.folder = folder_of(config)
        self.config = config
        self._lock = FolderLock(self.folder)
        try:
            refuse_used_folder(config)
            if config.overwrite and not _continues(config):
                clear_run(self.folder)
            _sweep(self.folder)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> OutputFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def describe(self, scene: Scene) -> None:
        """What the run is about, before it begins."""
        source = str(self.config.source_path.absolute())  # so that the run can be resumed from anywhere
        record = {"splatmeter": __version__, **to_json(self.config), "source_path": source}
        write_text(self.folder / CONFIG, json.dumps(record, indent=1))
        write_text(self.folder / "cfg_args", _namespace(self.config))
        write_text(self.folder / "cameras.json", json.dumps(_cameras(scene)))
        with replacing(self.folder / "input.ply") as file:
            file.write(points_bytes(scene.points, with_normals=True))

    def save_model(self, state: TrainingState) -> Iterator[Saved]:
        """point_cloud.ply with the 3D filter as a column, and fused.ply for viewers."""
        folder = self.folder / "point_cloud" / f"iteration_{state.step}"
        settings = self.config.raster_settings(self.config.sh_degree)
        comments = (f"step {state.step}",)

        for name, content, write in (
            ("point_cloud.ply", "model", ply.write_model),
            ("fused.ply", "fused model", ply.write_fused),
        ):
            write(folder / name, state.model, self.config.sh_degree, comments, settings)
            yield Saved(state.step, str(folder / name), content, sha256_of(folder / name))

    def try_saving(self, state: TrainingState) -> int:
        """Does what `save_model` does for some Gaussians and forgets them; how many they were."""
        rows = state.model.download(slice(0, TRIAL_ROWS))
        path = self.folder / ".trial.part"  # a killed run's is swept away as any half of a file
        try:
            for write in (ply.write_model, ply.write_fused):
                write(path, rows, self.config.sh_degree)
                sha256_of(path)
        finally:
            path.unlink(missing_ok=True)
        return rows.count

    def save_checkpoint(
        self,
        state: TrainingState,
        scene: Scene,
        engine: Facts,
        clock_seconds: float,
        safety: bool = False,
        timing: Mapping[str, Any] | None = None,
    ) -> Saved:
        path = checkpoint_names.path_for(self.folder, state.step, safety)
        digest = checkpoint.save(path, state, scene, self.config, engine, clock_seconds, timing)
        checkpoint_names.drop_older_safety(self.folder, path)
        return Saved(state.step, str(path), "checkpoint", digest)

    def save_plan(self, made: plan.Plan) -> None:
        plan.write(self.folder / plan.NAME, made)


def folder_of(config: TrainConfig) -> Path:
    if config.model_path is None:
        raise OutputError("The run has no output folder yet.")
    return config.model_path


def _continues(config: TrainConfig) -> bool:
    start = config.start_checkpoint
    return config.resume or (start is not None and start.resolve().parent == folder_of(config).resolve())


def holds_run(folder: Path) -> bool:
    """Whether a run has begun there, finished or not."""
    return any((folder / name).exists() for name in _TRACES) or any(folder.glob("chkpnt*"))


def clear_run(folder: Path) -> None:
    """Only what a run writes; other files in the folder are somebody's."""
    for path in [*(folder / name for name in _TRACES), *folder.glob("chkpnt*.safetensors")]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Halves of files that a killed run left; the lock says that nobody is writing them now."""
    for pattern in (".*.part", "point_cloud/iteration_*/.*.part", "evaluations/*/.*.part"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def _namespace(config: TrainConfig) -> str:
    """The 13 model parameters as the original's own tools read them."""
    values: dict[str, Any] = {
        "sh_degree": config.sh_degree,
        "source_path": str(config.source_path.absolute()),
        "model_path": str(config.model_path),
        "images": config.images,
        "resolution": config.resolution,
        "white_background": config.white_background,
        "data_device": "cpu",
        "eval": config.eval,
        "kernel_size": config.kernel_size,
        "ray_jitter": config.ray_jitter,
        "resample_gt_image": config.resample_gt_image,
        "load_allres": config.load_allres,
        "sample_more_highres": config.sample_more_highres,
    }
    return f"Namespace({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def _cameras(scene: Scene) -> list[dict[str, Any]]:
    """Test views first, sizes and focal lengths of the photo files."""
    return [_camera(index, view) for index, view in enumerate((*scene.test, *scene.train))]


def _camera(index: int, view: View) -> dict[str, Any]:
    width, height = size_of(view.photo.path)
    camera = view.camera
    return {
        "id": index,
        "img_name": Path(view.name).with_suffix("").as_posix(),
        "width": width,
        "height": height,
        "position": camera.position.tolist(),
        "rotation": camera.rotation.T.tolist(),  # camera to world
        "fy": camera.fy * height / camera.height,
        "fx": camera.fx * width / camera.width,
    }
