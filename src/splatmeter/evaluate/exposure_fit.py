"""How evaluations treat exposure: pictures as they are, or corrected by a fit on the half that is not judged.

How a held-out photo was exposed cannot be known from other photos. `left-half` fits a 3x4 colour transform by
least squares on the left half of the photo and judges the right half alone: nothing that is judged was
fitted. Pixels of which a channel is clipped (0 or 255) tell only a bound and are left out of the fit.
Figures of different rules tell different things and are never compared.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from splatmeter.evaluate.metrics import Pixels
from splatmeter.ops import F32, F64

ExposureProtocol = Literal["none", "left-half"]
NONE: ExposureProtocol = "none"
PROTOCOLS: dict[str, str] = {
    "none": "none (pictures are judged as they are)",
    "left-half": "left-half (fitted on the left half of each photo, judged on the right one)",
}
"""In words."""

RIDGE = 1e-6
"""Weight of staying as it is, for each pixel: it decides where a picture has one colour only."""


def fitted(render: F32, photo: Pixels) -> F32:
    """The render with the exposure of the photo's left half."""
    half = photo.shape[2] // 2
    transform = fit(np.clip(render[:, :, :half], 0, 1), photo[:, :, :half])
    return apply(transform, np.clip(render, 0, 1))


def fit(render: F32, photo: Pixels) -> F64:
    """(A | b) [3, 4] with the least sum of (A render + b - photo)^2 over pixels that are not clipped."""
    told = ((photo > 0) & (photo < 255)).all(axis=0)  # [H, W]
    colors = np.ones((4, np.count_nonzero(told)))  # [4, pixels]
    colors[:3] = render[:, told]
    wanted = photo[:, told] / 255.0  # [3, pixels]
    ridge = RIDGE * max(1, colors.shape[1]) * np.eye(4)
    moments = colors @ colors.T + ridge  # [4, 4]
    products = wanted @ colors.T + ridge[:3]  # [3, 4]
    return np.linalg.solve(moments, products.T).T


def apply(transform: F64, render: F32) -> F32:
    mixed = np.tensordot(transform[:, :3].astype(np.float32), render, 1)  # [3, H, W]
    return mixed + transform[:, 3, None, None].astype(np.float32)


def judged(pixels: Pixels, protocol: str) -> Pixels:
    """What of a picture [3, H, W] the protocol looks at."""
    return pixels if protocol == NONE else np.ascontiguousarray(pixels[:, :, pixels.shape[2] // 2 :])
