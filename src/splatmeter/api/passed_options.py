"""What is passed from Python: options by name and kind, and errors that spell them as Python does."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from splatmeter.errors import SplatmeterError, UsageError

_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9_-]*)")
_RENAMED = {"source_path": "the folder", "model_path": "output"}


@contextmanager
def in_python() -> Iterator[None]:
    """Errors that name options as the command line spells them name them as Python does."""
    try:
        yield
    except SplatmeterError as problem:
        problem.args = (_FLAG.sub(_spelled, str(problem)),)
        raise


def _spelled(flag: re.Match[str]) -> str:
    name = flag[1].replace("-", "_")
    return _RENAMED.get(name, name)


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
            raise UsageError(f"There is no option {name}.{_suggestion(name, known)}")
    return {name: _value(name, value, hints[name]) for name, value in options.items()}


def _suggestion(name: str, known: Collection[str]) -> str:
    begun = sorted((other for other in known if len(name) > 3 and other.startswith(name)), key=len)
    nearest = begun or difflib.get_close_matches(name, sorted(known), 1)
    return f" Did you mean {nearest[0]}?" if nearest else ""


def _value(name: str, value: Any, hint: Any) -> Any:
    """NumPy's numbers become Python's, since settings are written as JSON."""
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
    for kind in typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,):
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if kind is Path and isinstance(value, str):
            return Path(value)
        if typing.get_origin(kind) is tuple and isinstance(value, (list, tuple, range)):
            return tuple(_value(name, item, int) for item in value)
        if _is(value, kind):
            return value
    raise UsageError(f"{name} is {value!r}, but must be {_told(hint)}.")


def _is(value: Any, kind: Any) -> bool:
    if typing.get_origin(kind) is Literal:
        return value in typing.get_args(kind)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(kind, type) and isinstance(value, kind)


def _told(hint: Any) -> str:
    if isinstance(hint, types.UnionType):
        return " or ".join(_told(kind) for kind in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(hint)))
    if typing.get_origin(hint) is tuple:
        return "a list of whole numbers"
    plain = {int: "a whole number", float: "a number", str: "text", bool: "True or False", Path: "a path"}
    return plain.get(hint, "None")
