"""A run folder whose photos were rendered from its own model: who judges it must find it nearly perfect."""

from __future__ import annotations

import importlib.util
import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from splatmeter.backend import Backend
from splatmeter.cli.main import main
from splatmeter.gaussians.ply import write_model
from splatmeter.ops import (
    FILTER_3D,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    Pinhole,
    RasterSettings,
    Table,
    empty_table,
)
from splatmeter.render.pictures import to_8bit
from splatmeter.train.config import TrainConfig, to_json

WIDTH, HEIGHT, FOCAL = 48, 40, 50.0
TRAIN, TEST = 6, 2


@cache
def backend_name() -> str:
    """The engine where it is built, else its torch twin."""
    if importlib.util.find_spec("splatmeter._native") is not None:
        return "native"
    pytest.importorskip("torch", reason="commands that render were not checked: no engine and no torch")
    return "reference"


def engine() -> Backend:
    from splatmeter.backends import registry

    return registry.backend(backend_name())


def model() -> Table:
    generator = np.random.default_rng(5)
    table = empty_table(60, trainable=False)
    table.geometry[:, MEANS] = generator.normal(0, 0.5, (60, 3))
    table.geometry[:, LOG_SCALES] = generator.normal(-1.8, 0.3, (60, 3))
    table.geometry[:, 6:10] = generator.normal(size=(60, 4))
    table.geometry[:, OPACITY_LOGITS] = 1.5
    table.geometry[:, FILTER_3D] = 0.02
    table.harmonics[:, :48] = generator.normal(0, 0.3, (60, 48))
    return table


def camera(angle: float) -> Pinhole:
    position = np.array([4 * math.cos(angle), 4 * math.sin(angle), 1.0])
    forward = -position / np.linalg.norm(position)
    right = np.cross(forward, [0, 0, 1])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    return Pinhole(rotation, -rotation @ position, FOCAL, FOCAL, WIDTH / 2, HEIGHT / 2, WIDTH, HEIGHT)


def write_split(scene: Path, split: str, angles: list[float], backend: Backend, table: Table) -> None:
    frames = []
    (scene / split).mkdir(parents=True)
    for number, angle in enumerate(angles):
        eye = camera(angle)
        pixels = to_8bit(backend.upload(table).render(eye, RasterSettings()).color)
        Image.fromarray(pixels.transpose(1, 2, 0)).save(scene / split / f"r_{number}.png")
        to_world = np.eye(4)
        to_world[:3, :3] = eye.rotation.T * [1, -1, -1]
        to_world[:3, 3] = eye.position
        frames.append({"file_path": f"./{split}/r_{number}", "transform_matrix": to_world.tolist()})
    record = {"camera_angle_x": 2 * math.atan(WIDTH / (2 * FOCAL)), "frames": frames}
    (scene / f"transforms_{split}.json").write_text(json.dumps(record))


@dataclass(frozen=True)
class TinyRun:
    scene: Path
    folder: Path
    ply: Path


def make(place: Path, **settings: Any) -> TinyRun:
    scene, folder = place / "scene", place / "run"
    backend, table = engine(), model()
    write_split(scene, "train", [2 * math.pi * k / TRAIN for k in range(TRAIN)], backend, table)
    write_split(scene, "test", [0.5 + 3 * k for k in range(TEST)], backend, table)
    config = TrainConfig(**({"source_path": scene, "model_path": folder, "eval": True} | settings))
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(to_json(config)))
    for step in (7, 30):
        write_model(folder / f"point_cloud/iteration_{step}/point_cloud.ply", table, 3, (), RasterSettings())
    return TinyRun(scene, folder, folder / "point_cloud/iteration_30/point_cloud.ply")


def splatmeter(*words: object) -> int:
    """The command line as a person types it, with the backend that is here."""
    extra = ["--backend", backend_name()] if words[0] in ("eval", "render", "export") else []
    return main([*map(str, words), *extra])
