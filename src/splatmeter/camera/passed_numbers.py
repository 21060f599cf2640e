"""Numbers that people pass: taken where they can be read, refused by name where they cannot."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatmeter.errors import UsageError

F64 = NDArray[np.float64]

FARTHEST = 1e15
"""Where squares of distances still are numbers in single precision."""


def number(name: str, value: float) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {kind(value)}, but must be a number.") from None
    if not abs(found) < FARTHEST:
        raise UsageError(f"{name} is {found}, but must be a finite number.")
    return found


def numbers(name: str, values: ArrayLike) -> F64:
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"{name} is {kind(values)}, which cannot be read as an array of numbers.") from None


def require_finite(name: str, values: F64) -> None:
    if not (np.abs(values) < FARTHEST).all():
        bad = "NaN" if np.isnan(values).any() else "infinite or enormous"
        raise UsageError(f"{name} has a value that is {bad}; all of them must be finite numbers.")


def vector(name: str, values: ArrayLike) -> F64:
    found = numbers(name, values)
    if found.shape != (3,):
        raise UsageError(f"{name} has the shape {found.shape}, but must be three numbers.")
    require_finite(name, found)
    return found


def kind(thing: object) -> str:
    """What something is, for a sentence about it."""
    shape = getattr(thing, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    return repr(thing) if isinstance(thing, (str, int, float)) else f"of type {type(thing).__name__}"
