"""The native engine, where it is built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from splatmeter.ops import Backend

REASON = "splatmeter._native is not built (pip install -e . builds it): the native engine was not checked"


@pytest.fixture(scope="session")
def native_with() -> Callable[[int], Backend]:
    """The native backend for a number of threads."""
    pytest.importorskip("splatmeter._native", reason=REASON)
    from splatmeter.backends.registry import backend

    return lambda threads: backend("native", threads=threads)


@pytest.fixture(scope="session")
def native(native_with: Callable[[int], Backend]) -> Backend:
    return native_with(2)
