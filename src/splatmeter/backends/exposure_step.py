"""How training photos were exposed: one step of learning a photo's 3x4 colour transform.

native/exposure.cpp is the same in C++, for steps that are one call. Each photo has an Adam of its own, which
counts the photo's visits: momentum that went on while others are seen would move it by nothing it was told.

The scene's colours and all transforms can change together without changing any picture. What one photo's
transform moves is therefore taken from all of them, so that their mean stays the identity, where it began:
else the scene would drift to colours that no transform belongs to, and new views would have them.
"""

from __future__ import annotations

import numpy as np

from splatmeter.backend import Exposures, ExposureStep
from splatmeter.backends.lazy_adam import BETA2, EPSILON
from splatmeter.ops import F64

IDENTITY: F64 = np.eye(3, 4)
BETA1 = 0.9
"""Whatever --momentum says of Gaussians."""


def learn(exposures: Exposures, step: ExposureStep, gradient: F64) -> None:
    """In place; `gradient` [3, 4] is of the loss by the photo's transform."""
    photo = step.photo
    exposures.visits[photo] += 1
    visit = float(exposures.visits[photo])
    transform, first, second = (
        array[photo] for array in (exposures.transforms, exposures.first, exposures.second)
    )  # views [3, 4]
    pulled = gradient + 2 * step.pull * (transform - IDENTITY)
    first[:] = BETA1 * first + (1 - BETA1) * pulled
    second[:] = BETA2 * second + (1 - BETA2) * (pulled * pulled)
    unbiased = step.rate * (first / (1 - BETA1**visit))
    moved = unbiased / (np.sqrt(second / (1 - BETA2**visit)) + EPSILON)
    transform -= moved
    exposures.transforms[:] += moved / exposures.count
