"""Focal lengths, angles and the sizes of pictures."""

from __future__ import annotations

import math
from typing import TypedDict

from splatmeter.camera.passed_numbers import number
from splatmeter.errors import UsageError

LARGEST_SIDE = 32_768
"""Pixels: more than any picture, and less than the engines can count."""


class Intrinsics(TypedDict):
    """A camera's lens at the size of its picture, all in pixels; pass it on as ``**camera.intrinsics``."""

    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int


def lens(
    width: int,
    height: int,
    fx: float | None = None,
    fy: float | None = None,
    cx: float | None = None,
    cy: float | None = None,
    field_of_view: float | None = None,
) -> Intrinsics:
    """What is not given follows from the rest; UsageError where it cannot, or makes no sense."""
    across, down = side("width", width), side("height", height)
    if field_of_view is not None:
        if fx is not None or fy is not None:
            raise UsageError("fx and field_of_view both say how wide the lens is: leave one of them out.")
        fx = _focal("field_of_view", field_of_view, across)
    if fx is None:
        raise UsageError("How wide is the lens? Pass fx in pixels, or field_of_view in degrees.")
    return Intrinsics(
        fx=_positive("fx", fx),
        fy=_positive("fy", fx if fy is None else fy),
        cx=across / 2 if cx is None else number("cx", cx),
        cy=down / 2 if cy is None else number("cy", cy),
        width=across,
        height=down,
    )


def side(name: str, value: int) -> int:
    found = number(name, value)
    if found != int(found) or not 1 <= found <= LARGEST_SIDE:
        raise UsageError(f"{name} is {value}, but must be a whole number from 1 to {LARGEST_SIDE}.")
    return int(found)


def _focal(name: str, degrees: float, width: int) -> float:
    angle = number(name, degrees)
    if not 0 < angle < 180:
        raise UsageError(f"{name} is {angle:g}, but must be degrees between 0 and 180.")
    return width / (2 * math.tan(math.radians(angle) / 2))


def _positive(name: str, value: float) -> float:
    found = number(name, value)
    if found <= 0:
        raise UsageError(f"{name} is {found:g}, but a focal length is above 0 pixels.")
    return found
