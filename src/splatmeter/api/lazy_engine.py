"""The engine of a model, made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from splatmeter.api.passed_options import in_python
from splatmeter.backend import Backend
from splatmeter.backends.registry import backend


def engine_of(threads: int | None, device: str) -> Callable[[], Backend]:
    """Whoever only reads arrays or saves files needs none."""

    @cache
    def engine() -> Backend:
        with in_python():
            return backend(threads=threads, device=device)

    return engine
