from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "parity"))  # its scenes visit every branch of the rasterizer

from standin import Standin, built
from twins import CardTwin, NativeTwin

USUAL = {"seed": 0, "preempt": 0, "checks": 1, "memory": 16 << 30, "foreign": 0, "capability": 120}
USUAL |= {"allocations": -1, "launches": -1, "devices": 1, "wander": 0}


@pytest.fixture(scope="module")
def standin() -> Iterator[Standin]:
    """In force for the tests of one file only: elsewhere there is no card."""
    library = built()
    patch = pytest.MonkeyPatch()
    patch.setenv("SPLATMETER_LIBCUDA", str(library))
    yield Standin(library)
    patch.undo()


@pytest.fixture
def schedule(standin: Standin) -> Iterator[Standin]:
    """Whatever a test turns is turned back."""
    yield standin
    standin.forget_error()
    for name, value in USUAL.items():
        standin.option(name, value)


@pytest.fixture(scope="module")
def card(standin: Standin) -> CardTwin:
    return CardTwin()


@pytest.fixture(scope="session")
def cpu() -> NativeTwin:
    return NativeTwin()
