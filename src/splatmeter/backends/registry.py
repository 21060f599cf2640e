"""Which backends exist, by name; each is imported when asked for."""

from __future__ import annotations

from typing import Literal, get_args

from splatmeter.backend import Backend
from splatmeter.errors import UsageError

BackendName = Literal["native", "reference"]
NAMES: tuple[str, ...] = get_args(BackendName)


def backend(name: str = "native", threads: int | None = None) -> Backend:
    if name == "native":
        from splatmeter.backends.native import native_backend

        return native_backend(threads)
    if name == "reference":
        from splatmeter.backends.reference import reference_backend

        return reference_backend()
    raise UsageError(f"There is no backend {name!r}; choose one of: {', '.join(NAMES)}.")
