"""Front-to-back blending of depth-sorted ellipses, every pixel against every ellipse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ...ops import RasterSettings
from .projection import FAINTEST

OPAQUE = 1e-4
"""A Gaussian that would leave no more light than this ends its pixel and is not blended itself; unless there
is a light cut, which ends a pixel where no more than that is left."""

PAIRS_AT_ONCE = 1_000_000
"""Pixels times ellipses held in memory at a time; a dozen arrays of this size exist during backward."""


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """Visible ellipses, nearest first; the four arrays that gradients flow into."""

    center: Tensor  # [M, 2]
    conic: Tensor  # [M, 3]
    alpha: Tensor  # [M]
    color: Tensor  # [M, 3]


def pixel_chunks(width: int, height: int, ellipses: Sorted) -> Iterator[tuple[slice, Tensor]]:
    """Ranges of the flattened image and their pixel centres [P, 2]."""
    count = max(1, PAIRS_AT_ONCE // max(1, len(ellipses.alpha)))
    for start in range(0, width * height, count):
        index = torch.arange(start, min(start + count, width * height))  # [P]
        centres = torch.stack([index % width, index // width], dim=-1) + 0.5  # [P, 2]
        yield slice(start, start + len(index)), centres.to(ellipses.center.dtype)


def offsets(pixels: Tensor, ellipses: Sorted) -> Tensor:
    """Pixel centre minus ellipse centre [P, M, 2]; its gradient is minus the centre's, pixel by pixel."""
    return pixels[:, None, :] - ellipses.center[None, :, :]


def blend(offset: Tensor, ellipses: Sorted, settings: RasterSettings) -> tuple[Tensor, Tensor]:
    """-> colours with background [P, 3] and final transmittances [P]."""
    dx, dy = offset.unbind(-1)  # [P, M] each
    xx, xy, yy = ellipses.conic.unbind(-1)  # [M] each
    power = -0.5 * (xx * dx * dx + yy * dy * dy) - xy * dx * dy  # [P, M]
    value = ellipses.alpha * power.exp()  # [P, M]
    # clamp's derivative is 0 beyond the cap: the true one, unlike the original's
    alpha = torch.where(value >= FAINTEST, value.clamp(max=settings.max_alpha), 0)
    with torch.no_grad():
        ended = _ended(torch.cumprod(1 - alpha, dim=1), settings.light_cut)  # [P, M]
    alpha = torch.where(ended, 0, alpha)
    first = alpha.new_ones(len(alpha), 1)  # [P, 1] nothing is in front of the nearest
    before = torch.cat([first, torch.cumprod(1 - alpha, dim=1)], dim=1)  # [P, M + 1]
    transmittance = before[:, -1]  # [P]
    color = (alpha * before[:, : alpha.shape[1]]) @ ellipses.color  # [P, 3]
    background = torch.tensor(settings.background, dtype=color.dtype)  # [3]
    return color + transmittance[:, None] * background, transmittance


def _ended(left: Tensor, light_cut: float) -> Tensor:
    """Where a pixel takes no more [P, M], from the light behind each ellipse if all of them were blended."""
    if light_cut == 0:
        return left <= OPAQUE  # this one and all behind it
    before = torch.cat([left.new_ones(len(left), 1), left[:, :-1]], dim=1)  # [P, M]
    return before[:, : left.shape[1]] <= light_cut
