"""What is said from outside (a call from Python, a file) as the fields of a dataclass want it, or why it does
not fit.
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9_-]*)")


class Unfit(ValueError):
    """A value that a field cannot have, and what it wants instead, in words."""

    def __init__(self, value: Any, wanted: str) -> None:
        super().__init__(f"is {value!r}, but must be {wanted}")
        self.value, self.wanted = value, wanted


def fitting(value: Any, hint: Any) -> Any:
    """Lists become tuples, text paths, and NumPy's numbers Python's, since settings are written as JSON."""
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
    for kind in typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,):
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return _as_float(value, hint)
        if kind is Path and isinstance(value, str):
            return Path(value)
        if typing.get_origin(kind) is tuple and isinstance(value, (list, tuple, range)):
            return tuple(fitting(item, int) for item in value)
        if _is(value, kind):
            return value
    raise Unfit(value, wanted(hint))


def _as_float(value: int, hint: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise Unfit(value, wanted(hint)) from None


def _is(value: Any, kind: Any) -> bool:
    if typing.get_origin(kind) is Literal:
        return value in typing.get_args(kind)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(kind, type) and isinstance(value, kind)


def wanted(hint: Any) -> str:
    """What a field of this type may be, in words."""
    if isinstance(hint, types.UnionType):
        return " or ".join(wanted(kind) for kind in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(hint)))
    if typing.get_origin(hint) is tuple:
        return "a list of whole numbers"
    plain = {int: "a whole number", float: "a number", str: "text", bool: "True or False", Path: "a path"}
    return plain.get(hint, "None")


def suggestion(name: str, known: Collection[str]) -> str:
    """A sentence, with a space before it, where a known name is near; else nothing."""
    begun = sorted((other for other in known if len(name) > 3 and other.startswith(name)), key=len)
    nearest = begun or difflib.get_close_matches(name, sorted(known), 1)
    return f" Did you mean {nearest[0]}?" if nearest else ""


def flags_as_names(text: str, renamed: Mapping[str, str]) -> str:
    """A message that names options as the command line spells them, with the names of fields instead."""

    def spelled(flag: re.Match[str]) -> str:
        name = flag[1].replace("-", "_")
        return renamed.get(name, name)

    return _FLAG.sub(spelled, text)
