"""How near a render is to its photo, both as the 8-bit pictures that would be written to disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.ops import F32, Similarity

Pixels = NDArray[np.uint8]
SimilarityFunction = Callable[[F32, Pixels], Similarity]


def psnr(render: Pixels, photo: Pixels) -> float:
    """20 log10(1 / sqrt(MSE)) over all pixels and channels; infinite for equal pictures."""
    squared = sum(int(np.square(part).sum(dtype=np.int64)) for part in _differences(render, photo))
    if not squared:
        return math.inf
    return -10 * math.log10(squared / (255.0**2 * render.size))


def l1(render: Pixels, photo: Pixels) -> float:
    """Mean absolute difference, 1 being black against white."""
    total = sum(int(np.abs(part).sum(dtype=np.int64)) for part in _differences(render, photo))
    return total / render.size / 255


def _differences(render: Pixels, photo: Pixels) -> Iterator[NDArray[np.int32]]:
    """Channel by channel: integers of a whole picture would take four times its memory."""
    for one, other in zip(render, photo, strict=True):
        yield np.subtract(one, other, dtype=np.int32)  # [H, W]


def measure(render: Pixels, photo: Pixels, similarity: SimilarityFunction) -> Mapping[str, float]:
    """l1, psnr and ssim of two pictures [3, H, W]."""
    if render.shape != photo.shape:
        raise InputError(
            f"A render of {render.shape[2]}x{render.shape[1]} cannot be compared with a photo of "
            f"{photo.shape[2]}x{photo.shape[1]}."
        )
    as_color = np.divide(np.ascontiguousarray(render), 255, dtype=np.float32)  # [3, H, W]
    structural = similarity(as_color, np.ascontiguousarray(photo)).ssim
    return {"l1": l1(render, photo), "psnr": psnr(render, photo), "ssim": float(structural)}
