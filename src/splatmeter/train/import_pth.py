"""The original's chkpnt*.pth, read without letting it run code (`weights_only=True`).

Its layout: ((active degree, xyz, f_dc, f_rest, scaling, rotation, opacity, max radii, gradient
sum, visits, optimizer state, extent), step). The optimizer's groups are in another order: 3 opacity,
4 scaling, 5 rotation.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Backend, OptimizerState
from splatmeter.errors import CheckpointError, MissingExtra, MissingFile
from splatmeter.ops import (
    GRADIENT_SUM,
    HARMONICS_WIDTH,
    LAST_UPDATE,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    SECOND_GEOMETRY,
    VISITS,
    Table,
    empty_table,
    normalize_moments,
)
from splatmeter.scene.scene import Scene
from splatmeter.train.checkpoint import Resumed
from splatmeter.train.config import TrainConfig
from splatmeter.train.losses import Losses
from splatmeter.train.state import Ancestry, TrainingState, view_sampler

_GROUPS = {"xyz": 0, "f_dc": 1, "f_rest": 2, "opacity": 3, "scaling": 4, "rotation": 5}
_COLUMNS: dict[str, int | slice] = {
    "xyz": MEANS,
    "scaling": LOG_SCALES,
    "rotation": ROTATIONS,
    "opacity": slice(OPACITY_LOGITS, OPACITY_LOGITS + 1),
}
EXTENT_TOLERANCE = 0.01


def load(path: Path, scene: Scene, config: TrainConfig, backend: Backend) -> Resumed:
    """Parameters, moments, counters; the view order and the 3D filter start anew, as in the original."""
    model, step = _read(path)
    try:
        table, updates = _convert(model)
        degree, extent = int(model[0]), float(model[11])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as problem:
        raise CheckpointError(
            f"{path} is not laid out as a Mip-Splatting checkpoint ({problem})."
        ) from problem
    rates = config.schedule(scene).rates(max(step, 1))
    optimizer = OptimizerState(updates, rates, momentum=config.optimizer_momentum)
    state = TrainingState(
        model=backend.upload(table, optimizer),
        losses=Losses(config.lambda_dssim),
        sampler=view_sampler(scene, config),
        step=step,
        grown=step,  # the original writes checkpoints after densification
        sh_degree=degree,
        ancestry=Ancestry(known=False),
    )
    return Resumed(state, 0.0, {}, tuple(_warnings(path, extent, scene)))


def _warnings(path: Path, extent: float, scene: Scene) -> list[str]:
    said = [
        f"{path.name} does not tell which images trained it: "
        "metrics on test views may be of views it has seen."
    ]
    if abs(extent - scene.extent) > EXTENT_TOLERANCE * max(extent, scene.extent):
        said.append(
            f"{path.name} was trained with a scene extent of {extent:.4g}, this scene and split have "
            f"{scene.extent:.4g}: is it the same scene?"
        )
    return said


def _read(path: Path) -> tuple[tuple[Any, ...], int]:
    if not path.is_file():
        raise MissingFile(f"The checkpoint {path} does not exist.")
    try:
        import torch
    except ImportError:
        raise MissingExtra("Reading the original's .pth checkpoints", "torch") from None
    try:
        with torch.serialization.safe_globals(_numpy_scalars()):
            content = torch.load(path, map_location="cpu", weights_only=True)
        model, step = content
        if len(model) != 12:
            raise ValueError(f"{len(model)} entries instead of 12")
        return tuple(model), int(step)
    except Exception as problem:  # torch raises many types for files that are damaged or want to run code
        whole = zipfile.is_zipfile(path)
        why = (
            "it holds something else than tensors and numbers" if whole else "it is cut off or no checkpoint"
        )
        first = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise CheckpointError(f"{path} cannot be read: {why} ({first[:160]}).") from problem


def _numpy_scalars() -> list[Any]:
    """What the file's one NumPy scalar (the extent) needs; old and new NumPy name it differently."""
    scalar = np.float64(0).__reduce__()[0]
    return [
        (scalar, "numpy.core.multiarray.scalar"),
        (scalar, "numpy._core.multiarray.scalar"),
        np.dtype,
        type(np.dtype(np.float64)),
        type(np.dtype(np.float32)),
    ]


def _convert(model: tuple[Any, ...]) -> tuple[Table, int]:
    values: dict[str, Any] = dict(
        zip(("xyz", "f_dc", "f_rest", "scaling", "rotation", "opacity"), model[1:7], strict=True)
    )
    moments = {name: model[10]["state"].get(index, {}) for name, index in _GROUPS.items()}
    table = empty_table(len(values["xyz"]))
    updates = max(int(moment.get("step", 0)) for moment in moments.values())
    for name, columns in _COLUMNS.items():
        width = range(16)[columns] if isinstance(columns, slice) else [columns]
        table.geometry[:, columns] = _numbers(values[name]).reshape(-1, len(width))
        if moments[name]:
            second = slice(width[0] + SECOND_GEOMETRY, width[-1] + 1 + SECOND_GEOMETRY)
            table.geometry_moments[:, columns] = _numbers(moments[name]["exp_avg"]).reshape(-1, len(width))
            table.geometry_moments[:, second] = _numbers(moments[name]["exp_avg_sq"]).reshape(-1, len(width))
    table.harmonics[:] = _harmonics(values["f_dc"], values["f_rest"])
    if moments["f_dc"] and moments["f_rest"]:
        for target, key in ((table.harmonics_first, "exp_avg"), (table.harmonics_second, "exp_avg_sq")):
            target[:] = _harmonics(moments["f_dc"][key], moments["f_rest"][key])
    normalize_moments(table)
    table.geometry[:, GRADIENT_SUM] = _numbers(model[8]).reshape(-1)
    table.geometry[:, VISITS] = _numbers(model[9]).reshape(-1)
    table.geometry[:, LAST_UPDATE] = updates
    return table, updates


def _harmonics(constant: Any, rest: Any) -> NDArray[np.float32]:
    """[N, 1, 3] and [N, K, 3] as coefficient-major rows [N, 48]; lower degrees are filled with zeros."""
    both = np.concatenate([_numbers(constant), _numbers(rest)], axis=1)  # [N, 1 + K, 3]
    flat = both.reshape(len(both), -1)
    return np.pad(flat, ((0, 0), (0, HARMONICS_WIDTH - flat.shape[1])))


def _numbers(tensor: Any) -> NDArray[np.float32]:
    return np.asarray(tensor.detach().cpu().numpy(), np.float32)
