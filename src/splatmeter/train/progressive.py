"""Coarse to fine: the first steps see photos averaged over blocks, which cost a fraction and tell as much.

A stage depends on the number of the step alone, so that a resumed run is the run that never stopped. Only
what a step renders and compares is smaller: the 3D filter, evaluations and models know the full size only.
The loss (a mean over pixels) and the statistics of densification (in units of half the image) mean the same
at every size, so thresholds stay as they are; what an average hides asks for no Gaussians yet.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from splatmeter.errors import UsageError
from splatmeter.render.pictures import shrunk
from splatmeter.scene.scene import View

NONE = "none"
STANDARD = "standard"
STANDARD_STAGES = "4:200,2:800"
SMALLEST_SIDE = 8
"""Pixels; less than that is smaller than the window of SSIM is useful for."""

_STAGE = re.compile(r"(\d{1,3}):(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Stage:
    divisor: int
    last: int
    """The last step at this size."""


def parse(text: str) -> tuple[Stage, ...]:
    """'none', 'standard', or divisor:last step with commas between; afterwards comes the full size."""
    if text == NONE:
        return ()
    parts = (STANDARD_STAGES if text == STANDARD else text).split(",")
    found = [_STAGE.fullmatch(part.strip()) for part in parts]
    stages = tuple(Stage(int(match[1]), int(match[2])) for match in found if match)
    coarser = all(one.divisor > two.divisor for one, two in pairwise(stages))
    later = all(one.last < two.last for one, two in pairwise(stages))
    if len(stages) < len(found) or not coarser or not later or any(stage.divisor < 2 for stage in stages):
        raise UsageError(
            f"--progressive {text!r} makes no sense. Use none, standard, or stages of divisor:last step, "
            f"each finer and later than the one before, such as {STANDARD_STAGES}."
        )
    return stages


def text(stages: tuple[Stage, ...]) -> str:
    """What `parse` reads."""
    return ",".join(f"{stage.divisor}:{stage.last}" for stage in stages) or NONE


def pixels_of(views: Sequence[View]) -> float:
    """Of a photo, on average."""
    return sum(view.photo.width * view.photo.height for view in views) / max(1, len(views))


class Stages:
    """The training views at the size each step sees them."""

    def __init__(self, views: tuple[View, ...], stages: tuple[Stage, ...] = ()) -> None:
        self._full = views
        self._mean_pixels = pixels_of(views)
        self._divisors = [(stage.last, stage.divisor) for stage in stages]
        self._coarse = [
            (stage.last, tuple(_smaller(view, stage.divisor) for view in views)) for stage in stages
        ]

    def at(self, step: int) -> tuple[View, ...]:
        """The views for the step with this number, counted from 1."""
        return next((views for last, views in self._coarse if step <= last), self._full)

    def smaller_at(self, step: int) -> bool:
        return self._divisor(step) > 1

    def pixels(self, step: int) -> float:
        """Pixels of the photos at that step, on average."""
        return self._mean_pixels / self._divisor(step) ** 2

    def _divisor(self, step: int) -> int:
        return next((divisor for last, divisor in self._divisors if step <= last), 1)


def _smaller(view: View, divisor: int) -> View:
    width, height = view.photo.width // divisor, view.photo.height // divisor
    if min(width, height) < SMALLEST_SIDE:
        raise UsageError(
            f"--progressive would train {view.name} at {width}x{height} pixels; at least {SMALLEST_SIDE} are "
            f"needed. Begin with a divisor below {divisor}."
        )
    photo = dataclasses.replace(view.photo, divisor=divisor)
    return dataclasses.replace(view, camera=shrunk(view.camera, divisor), photo=photo)
