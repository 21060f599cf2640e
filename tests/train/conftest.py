from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from running import Make
from tiny_scene import some_backend, write_tiny_scene

from splatmeter.backend import Backend
from splatmeter.train.config import TrainConfig


@pytest.fixture(scope="session")
def scene_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="session")
def backend() -> Backend:
    return some_backend()


@pytest.fixture
def make(scene_folder: Path, tmp_path: Path) -> Make:
    """A configuration that densifies and resets within forty steps."""

    def configuration(name: str = "run", **changes: Any) -> TrainConfig:
        settings: dict[str, Any] = {
            "source_path": scene_folder,
            "model_path": tmp_path / name,
            "eval": True,
            "iterations": 40,
            "test_iterations": (),
            "save_iterations": (),
            "densify_from_iter": 5,
            "densify_until_iter": 35,
            "densification_interval": 10,
            "opacity_reset_interval": 25,
            "max_gaussians": 200,
        }
        return TrainConfig(**(settings | changes))

    return configuration
