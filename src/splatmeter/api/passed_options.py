"""What is passed from Python: options by name and kind, and errors that spell them as Python does."""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from splatmeter.errors import SplatmeterError, UsageError
from splatmeter.typed_fields import Unfit, fitting, flags_as_names, suggestion

_RENAMED = {"source_path": "the folder", "model_path": "output"}


@contextmanager
def in_python() -> Iterator[None]:
    """Errors that name options as the command line spells them name them as Python does."""
    try:
        yield
    except SplatmeterError as problem:
        problem.args = (flags_as_names(str(problem), _RENAMED),)
        raise


def folder_given(path: object, what: str) -> Path:
    """Text or a path; UsageError for anything else, which would be a folder of an odd name."""
    if not isinstance(path, (str, Path)) or not str(path):
        raise UsageError(f"{what} must be a path, as text or pathlib.Path, but is {path!r}.")
    return Path(path).expanduser()


def settings(cls: type, options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Options of a dataclass with known names and fitting values; lists as tuples, text as paths."""
    hints = typing.get_type_hints(cls)
    for name in options:
        if name not in known:
            raise UsageError(f"There is no option {name}.{suggestion(name, known)}")
    return {name: _value(name, value, hints[name]) for name, value in options.items()}


def _value(name: str, value: Any, hint: Any) -> Any:
    try:
        return fitting(value, hint)
    except Unfit as problem:
        raise UsageError(f"{name} {problem}.") from None
