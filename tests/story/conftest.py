from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from tiny_scene import some_backend, write_tiny_scene

from splatmeter.backend import Backend


@pytest.fixture(scope="session")
def scene_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="session")
def backend() -> Backend:
    return some_backend()
