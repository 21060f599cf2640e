"""A run of the quick demo scene for those tests that look at a trained model, made once in each process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from splatmeter import api


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Workers share the demo scene: it appears whole or not at all."""
    pytest.importorskip("splatmeter._native", reason="the native engine is not built: api not checked")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "library-cache"
    patch = pytest.MonkeyPatch()
    patch.setenv("SPLATMETER_CACHE", str(folder))
    yield folder
    patch.undo()


@pytest.fixture(scope="session")
def garden(cache: Path) -> Path:
    return api.demo_scene(quick=True)


@pytest.fixture(scope="session")
def run(garden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The garden trained for 100 steps."""
    folder = tmp_path_factory.mktemp("garden") / "output" / "model"
    for _ in api.train(garden, folder, eval=True, iterations=100, device="cpu"):
        pass
    return folder
