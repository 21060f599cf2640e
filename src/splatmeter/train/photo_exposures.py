"""Exposures of the training photos in a run: how fast they learn, how checkpoints keep them.

`first_look.py` says how they begin. They belong to photos by name, so that a checkpoint goes on with another
split. They are no part of the model: what is rendered, evaluated and exported has the scene's own colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Backend, Exposures, ExposureStep
from splatmeter.errors import CardUnavailable
from splatmeter.ops import F64
from splatmeter.train.config import TrainConfig

FIRST_RATE = 0.003
"""The first look has found them; what is left is to refine. Every visit of a photo moves its transform to and
fro by about this much, and everything else has to live with that."""
LAST_SHARE = 0.1

PREFIX = "exposure_"
_ARRAYS = ("transforms", "first", "second", "visits")


def require(config: TrainConfig, backend: Backend) -> None:
    """Refused rather than left out or done elsewhere in silence."""
    if config.exposure != "none" and not backend.exposes:
        raise CardUnavailable(
            f"--exposure {config.exposure} is not there yet on a card ({backend.facts.device}): "
            "use --device cpu."
        )


@dataclass(frozen=True, slots=True)
class ExposureRates:
    """Falls over the steps over which the positions' rate falls."""

    first: float
    steps: int
    pull: float

    def step(self, number: int, photo: int) -> ExposureStep:
        """For the step with this number, counted from 1."""
        done = min(number / self.steps, 1.0)
        return ExposureStep(photo, self.first * LAST_SHARE**done, self.pull)


def rates(config: TrainConfig) -> ExposureRates | None:
    """None where exposures are not learned."""
    if config.exposure == "none":
        return None
    first = FIRST_RATE if config.exposure_lr is None else config.exposure_lr
    return ExposureRates(first, config.position_lr_max_steps, config.exposure_reg)


def begun(photos: int) -> Exposures:
    """Every photo as the scene is."""
    shape = (photos, 3, 4)
    identity: F64 = np.broadcast_to(np.eye(3, 4), shape).copy()
    return Exposures(identity, np.zeros(shape), np.zeros(shape), np.zeros(photos))


# ---- in a checkpoint --------------------------------------------------------------------------------------
def arrays_of(exposures: Exposures | None) -> dict[str, NDArray[Any]]:
    if exposures is None:
        return {}
    return {PREFIX + name: getattr(exposures, name) for name in _ARRAYS}


def restored(
    arrays: Mapping[str, NDArray[Any]], before: Sequence[str], now: Sequence[str]
) -> Exposures | None:
    """By the photos' names; None where the checkpoint has none, ValueError where they are garbled."""
    if not any(name.startswith(PREFIX) for name in arrays):
        return None
    exposures = begun(len(now))
    places = {name: row for row, name in enumerate(before)}
    rows = [row for row, name in enumerate(now) if name in places]
    sources = [places[now[row]] for row in rows]
    for name in _ARRAYS:
        array, target = arrays.get(PREFIX + name), getattr(exposures, name)
        if array is None or array.shape != (len(before), *target.shape[1:]) or array.dtype != np.float64:
            raise ValueError(PREFIX + name)
        target[rows] = array[sources]
    return exposures


def advice(config: TrainConfig, tested: bool) -> tuple[str, ...]:
    """Pictures have the mean exposure: against photos that have another one they must look wrong."""
    if config.exposure == "none" or config.exposure_protocol != "none" or not tested:
        return ()
    return (
        "Exposures are learned, but test views are judged as they are: where they differ in exposure too, "
        "their metrics fall. Judge them with --exposure-protocol left-half.",
    )
