"""How training photos were exposed: one step of learning a photo's 3x4 colour transform.

native/exposure.cpp is the same in C++, for steps that are one call. Each photo has an Adam of its own, which
counts the photo's visits: momentum that went on while others are seen would move it by nothing it was told.

Adam takes steps of one size along every coordinate, whatever it is worth. Red, green and blue of a photo rise
and fall together, so entries of the transform itself are bad coordinates: a gain is three of them, and a tint
is a small difference of two. Steps are taken along FEATURES of a colour instead, which are about of size one
and go their own ways; moments are kept along these.

The scene's colours and all transforms can change together without changing any picture. What one photo's
transform moves is therefore taken from all of them, so that their mean stays the identity, where it began:
else the scene would drift to colours that no transform belongs to, and new views would have them.
"""

from __future__ import annotations

import numpy as np

from splatmeter.backend import Exposures, ExposureStep
from splatmeter.backends.lazy_adam import BETA1, BETA2, EPSILON
from splatmeter.ops import F64

IDENTITY: F64 = np.eye(3, 4)

FEATURES: F64 = np.array(
    [
        [2 / 3, 2 / 3, 2 / 3, 0.0],  # brightness, about 0.5: cameras change it first of all
        [10.0, -10.0, 0.0, 0.0],  # two tints, with spreads of 0.1 and 0.2
        [5.0, 5.0, -10.0, 0.0],
        [0.0, 0.0, 0.0, 0.25],  # a constant, which cameras hardly add
    ]
)  # [4, 4] times (red, green, blue, 1), as photos mostly have them


def learn(exposures: Exposures, step: ExposureStep, gradient: F64) -> None:
    """In place; `gradient` [3, 4] is of the loss by the photo's transform."""
    photo = step.photo
    exposures.visits[photo] += 1
    visit = float(exposures.visits[photo])
    transform, first, second = (
        array[photo] for array in (exposures.transforms, exposures.first, exposures.second)
    )  # views [3, 4]
    pulled = _product(gradient + 2 * step.pull * (transform - IDENTITY), FEATURES.T)  # [3, 4] by feature
    first[:] = BETA1 * first + (1 - BETA1) * pulled
    second[:] = BETA2 * second + (1 - BETA2) * (pulled * pulled)
    unbiased = step.rate * (first / (1 - BETA1**visit))
    moved = unbiased / (np.sqrt(second / (1 - BETA2**visit)) + EPSILON)
    moved = _product(moved, FEATURES)
    transform -= moved
    exposures.transforms[:] += moved / exposures.count


def _product(rows: F64, matrix: F64) -> F64:
    """Of [3, 4] and [4, 4], term by term in the order of the engine: a library's product has other bits."""
    total = np.zeros((3, 4))
    for term in range(4):
        total = total + rows[:, term, None] * matrix[term]
    return total
