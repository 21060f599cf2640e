"""The native engine, where it is built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from splatmeter.backends.kernels import Kernels

REASON = "splatmeter._native is not built (pip install -e . builds it): the native engine was not checked"


@pytest.fixture(scope="session")
def native_with() -> Callable[[int], Kernels]:
    """The native engine's operations for a number of threads."""
    pytest.importorskip("splatmeter._native", reason=REASON)
    from splatmeter.backends.native import native_kernels

    return lambda threads: native_kernels(threads)


@pytest.fixture(scope="session")
def native(native_with: Callable[[int], Kernels]) -> Kernels:
    return native_with(2)
