"""How far a rendering is from its photo: L1 and SSIM, the gradient by autograd."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...ops import F32, F64, Similarity

WINDOW = 11
SIGMA = 1.5
C1 = 0.01**2
C2 = 0.03**2


def window(dtype: torch.dtype) -> Tensor:
    """Outer product of a normalised Gaussian with itself, one copy per channel [3, 1, 11, 11]."""
    distance = torch.arange(WINDOW, dtype=dtype) - WINDOW // 2  # [11]
    weights = (-distance.square() / (2 * SIGMA**2)).exp()
    weights = weights / weights.sum()
    return (weights[:, None] * weights[None, :]).expand(3, 1, WINDOW, WINDOW)


def ssim(image: Tensor, other: Tensor) -> Tensor:
    """Mean over all pixels and channels; beyond the border both images count as black (zero padding)."""
    kernel = window(image.dtype)

    def blur(values: Tensor) -> Tensor:  # [3, H, W] -> [3, H, W]
        return torch.nn.functional.conv2d(values, kernel, padding=WINDOW // 2, groups=3)

    mean1, mean2 = blur(image), blur(other)
    variance1 = blur(image * image) - mean1 * mean1
    variance2 = blur(other * other) - mean2 * mean2
    covariance = blur(image * other) - mean1 * mean2
    luminance = (2 * mean1 * mean2 + C1) / (mean1 * mean1 + mean2 * mean2 + C1)
    structure = (2 * covariance + C2) / (variance1 + variance2 + C2)
    return (luminance * structure).mean()


def compare(rendered: Tensor, photo: NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
    target = torch.as_tensor(photo).to(rendered.dtype) / 255  # [3, H, W]
    return (rendered - target).abs().mean(), ssim(rendered, target)


def image_loss(
    rendered: F32, photo: NDArray[np.uint8], ssim_weight: float, *, dtype: torch.dtype
) -> tuple[Similarity, F32]:
    """Where rendering and photo agree exactly, L1's gradient is 0 (sign(0) = 0)."""
    leaf = torch.tensor(rendered, dtype=dtype, requires_grad=True)  # [3, H, W]
    l1, similar = compare(leaf, photo)
    loss = (1 - ssim_weight) * l1 + ssim_weight * (1 - similar)
    (gradient,) = torch.autograd.grad(loss, leaf)
    return Similarity(l1.item(), similar.item()), gradient.numpy()


def exposed_loss(
    rendered: F32, photo: NDArray[np.uint8], ssim_weight: float, transform: F64, *, dtype: torch.dtype
) -> tuple[Similarity, F32, F64]:
    """The same of A rendered + b; the transform [3, 4] is (A | b)."""
    leaf = torch.tensor(rendered, dtype=dtype, requires_grad=True)  # [3, H, W]
    matrix = torch.tensor(transform, dtype=dtype, requires_grad=True)  # [3, 4]
    exposed = torch.einsum("cd,dhw->chw", matrix[:, :3], leaf) + matrix[:, 3, None, None]
    l1, similar = compare(exposed, photo)
    loss = (1 - ssim_weight) * l1 + ssim_weight * (1 - similar)
    gradient, of_transform = torch.autograd.grad(loss, (leaf, matrix))
    return Similarity(l1.item(), similar.item()), gradient.numpy(), of_transform.double().numpy()


def similarity(rendered: F32, photo: NDArray[np.uint8], *, dtype: torch.dtype) -> Similarity:
    with torch.no_grad():
        l1, similar = compare(torch.tensor(rendered, dtype=dtype), photo)
    return Similarity(l1.item(), similar.item())
