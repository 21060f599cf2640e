"""What comes out of a camera: the 8-bit picture of a rendering, and the same camera at a lower resolution."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import UsageError
from splatmeter.ops import F32, Pinhole


def to_8bit(color: F32) -> NDArray[np.uint8]:
    """Rounds half up and clamps, as the original writes its PNGs; what is no number becomes black."""
    scaled = color * np.float32(255)  # the only copy: evaluation must not need more than a training step
    scaled += np.float32(0.5)
    np.fmax(scaled, 0, out=scaled)  # unlike maximum, fmax prefers a number to NaN
    return np.fmin(scaled, 255, out=scaled).astype(np.uint8)  # same shape


def shrunk(camera: Pinhole, divisor: int) -> Pinhole:
    """The camera of the image averaged over blocks of divisor x divisor; what fills no block is cut off."""
    width, height = camera.width // divisor, camera.height // divisor
    if divisor < 1 or not width or not height:
        raise UsageError(
            f"A scale of {divisor} leaves nothing of {camera.width}x{camera.height} pixels; choose another."
        )
    return dataclasses.replace(
        camera,
        fx=camera.fx / divisor,
        fy=camera.fy / divisor,
        cx=camera.cx / divisor,
        cy=camera.cy / divisor,
        width=width,
        height=height,
    )


def box_average(photo: NDArray[np.uint8], divisor: int) -> F32:
    """Means over blocks in [0, 1], not rounded: [3, H, W] -> [3, H // divisor, W // divisor]."""
    height, width = photo.shape[1] // divisor, photo.shape[2] // divisor
    cropped = photo[:, : height * divisor, : width * divisor]
    blocks = cropped.reshape(3, height, divisor, width, divisor)
    sums = blocks.sum(axis=(2, 4), dtype=np.uint32)  # [3, H', W'] exact
    return (sums / (255.0 * divisor * divisor)).astype(np.float32)
