"""What training minimises: (1 - w) L1 + w (1 - SSIM), value and gradient in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F32, Backend, Similarity


@dataclass(frozen=True, slots=True)
class LossValue:
    total: float
    similarity: Similarity


class ImageLoss:
    """The photometric loss with its weight; the render goes in unclamped, as in the original."""

    def __init__(self, backend: Backend, ssim_weight: float) -> None:
        self.backend = backend
        self.ssim_weight = ssim_weight

    def value_and_gradient(self, color: F32, photo: NDArray[np.uint8]) -> tuple[LossValue, F32]:
        """Both images [3, H, W]; the gradient is with respect to `color`."""
        similarity, gradient = self.backend.image_loss(color, photo, self.ssim_weight)
        return LossValue(similarity.loss(self.ssim_weight), similarity), gradient
