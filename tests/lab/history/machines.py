"""Sessions on machines that are not there: what `environment` would have seen on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from splatmeter.lab import environment
from splatmeter.lab.session import session_plan as plans

CPU = {"model": "Test processor", "logical": 8, "physical": 4, "caches": {}, "memory_bytes": 16 << 30}


@contextlib.contextmanager
def machine(name: str, model: str = "Test processor", usable: int = 8) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (environment, plans):
            patch.setattr(module, "machine_identity", lambda: name)
        patch.setattr(environment, "cpu", lambda: {**CPU, "model": model})
        patch.setattr(environment, "limits", lambda: {"usable_cpus": usable})
        yield
