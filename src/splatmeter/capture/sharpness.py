"""How sharp a picture is, and how far two frames are apart: two numbers from small grey copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

JUDGED_AT = 512
"""Pixels of the longer side at which sharpness is judged, so that photo sizes do not decide."""
THUMBNAIL = 48
"""Pixels of both sides of the copies whose difference is taken for motion."""


def sharpness(grey: NDArray[np.uint8]) -> float:  # [h, w]
    """Variance of the Laplacian: blur takes it away. Comparable between photos of one scene only."""
    if min(grey.shape) < 3:
        return 0.0
    values = grey.astype(np.float32)
    laplacian = (
        values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:] - 4 * values[1:-1, 1:-1]
    )  # [h - 2, w - 2]
    return float(laplacian.var())


def judged(image: Image.Image) -> float:
    """Sharpness at the common size."""
    scale = JUDGED_AT / max(image.size)
    size = tuple(max(3, round(side * min(scale, 1.0))) for side in image.size)
    grey = image.convert("L").resize((size[0], size[1]), Image.Resampling.BILINEAR)
    return sharpness(np.asarray(grey))


def motion(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> float:  # [n, n] each
    """Mean difference of two thumbnails in grey values, without what a change of exposure does."""
    one, other = before.astype(np.float32), after.astype(np.float32)
    return float(np.abs((one - one.mean()) - (other - other.mean())).mean())
