"""Learning rates over the steps: the position's falls exponentially, the others stay unless told to fall."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from splatmeter.ops import Rates

HARMONICS_INTERVAL = 1000
"""One more degree of harmonics every so many steps: colour first, view dependence once shapes exist."""

REST_DIVISOR, LEAST_REST_DIVISOR = 20.0, 5.0
"""Coefficients above degree 0 learn this much slower than the colour; the second, where photos decide."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rates as the original's flags give them; `extent` scales what is a length in the world."""

    extent: float
    position_first: float = 0.00016
    position_last: float = 0.0000016
    position_steps: int = 30_000
    harmonics: float = 0.0025
    rest_divisor: float = REST_DIVISOR
    opacity: float = 0.05
    scale: float = 0.005
    rotation: float = 0.001
    last_share: float = 1.0
    """What is left of the rates other than the position's after `position_steps`."""
    planned: Callable[[int], float] | None = None
    """Share of the fall that a step has done, where a plan says it instead of `position_steps`."""

    def rates(self, step: int) -> Rates:
        """The rates for the step with this number, counted from 1."""
        left = self.last_share ** self._done(step)  # exactly 1 where nothing falls
        return Rates(
            mean=self.position(step),
            harmonics_dc=left * self.harmonics,
            harmonics_rest=left * self.harmonics / self.rest_divisor,
            opacity=left * self.opacity,
            scale=left * self.scale,
            rotation=left * self.rotation,
        )

    def position(self, step: int) -> float:
        """Log-linear from first to last over `position_steps`, constant afterwards."""
        if self.position_first <= 0 or self.position_last <= 0:
            return 0.0  # the original treats a rate of zero as "positions do not move"
        done = self._done(step)
        rate = math.exp((1 - done) * math.log(self.position_first) + done * math.log(self.position_last))
        return rate * self.extent

    def _done(self, step: int) -> float:
        if self.planned is not None:
            return self.planned(step)
        return min(max(step / self.position_steps, 0.0), 1.0)


def position_scale(pixels: float, first: float, pixels_per_extent: float) -> float:
    """By which positions' rates are multiplied so that the first moves a Gaussian by so many pixels. Their
    unit is the extent of a scene: a long lens shows it larger, and a city's is far larger than what one photo
    shows. 0: rates stay as they are."""
    return pixels / (first * pixels_per_extent) if pixels and first and pixels_per_extent else 1.0


def rest_divisor(enough: int, photos: int) -> float:
    """How much slower higher harmonics learn, with so many photos to learn from. They are a colour for each
    direction: seen from few directions they are soon known by heart, and where there are `enough` they are
    most of what is left to learn. Never slower than as published, nor where `enough` is 0: 26 photos of a
    courtyard lost half a dB by that, most of it in the sky."""
    if not enough or not photos:
        return REST_DIVISOR
    return min(REST_DIVISOR, LEAST_REST_DIVISOR * max(1.0, enough / photos) ** 2)


def next_degree(degree: int, step: int, limit: int, interval: int = HARMONICS_INTERVAL) -> int:
    """Active degree of harmonics at a step, given the degree of the step before."""
    return min(limit, degree + 1) if step % interval == 0 else min(limit, degree)
