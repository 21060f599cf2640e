"""Whatever card this machine has, tests do not use it: only tests/cuda asks for one, and gets a stand-in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def no_card() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("SPLATMETER_LIBCUDA", "/nonexistent/libcuda.so.1")
    yield
    patch.undo()
