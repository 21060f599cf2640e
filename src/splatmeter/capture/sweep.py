"""How far away a photo's pixels are, from photos beside it whose places are known.

For every distance of a list the neighbours' photos are warped to where they would lie; where windows agree
(normalised correlation), the distance is right. Coarse first, then finer around what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F32, F64, Pinhole

RADIUS = 2
"""How far the compared windows reach from their middle, in pixels: they are 5x5."""
PLANES = 72
"""Distances tried at the coarse size, evenly in 1 / depth: the picture moves evenly with it."""
AROUND = (-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75)
"""Tried at the finer size, in steps between coarse distances."""
AGREEING = 2
"""Neighbours that must see the same: the best ones count, others may have something in between."""
PLAIN = 4.0
"""Variance of grey values (0 to 255) in a window below which there is nothing to compare."""
ALMOST_ZERO = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Grey:
    """A photo at a size for comparing, and its camera at that size."""

    camera: Pinhole
    pixels: F32  # [h, w], 0 to 255


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """1 / depth along the axis of view for every pixel, and how well windows agree there (-1 to 1)."""

    inverse: F32  # [h, w]
    score: F32  # [h, w]


def sweep(photo: Grey, beside: Sequence[Grey], nearest: float, farthest: float) -> Near:
    """The best of PLANES distances between `nearest` and `farthest` (as 1 / depth)."""
    steps = np.linspace(farthest, nearest, PLANES).astype(np.float32)
    return _best(photo, beside, [np.full(photo.pixels.shape, step, np.float32) for step in steps])


def refine(photo: Grey, beside: Sequence[Grey], coarse: F32, step: float) -> Near:
    """Around the distances `coarse` [h, w], which were found in steps of `step` in 1 / depth."""
    smallest = np.float32(step * 1e-3)
    tried = [np.maximum(coarse + np.float32(step * share), smallest) for share in AROUND]
    return _best(photo, beside, tried)


def _best(photo: Grey, beside: Sequence[Grey], tried: Sequence[F32]) -> Near:
    window, warps = _Window(photo.pixels), [_Warp(photo, other) for other in beside]
    scores = np.empty((len(tried), *photo.pixels.shape), np.float32)  # [D, h, w]
    for place, inverse in enumerate(tried):
        each = np.stack([window.agreement(warp(inverse)) for warp in warps])  # [N, h, w]
        several = min(AGREEING, len(each))
        if several < len(each):
            each = np.partition(each, len(each) - several, axis=0)[-several:]
        scores[place] = each.mean(axis=0)
    best = scores.argmax(axis=0)  # [h, w]
    found = np.take_along_axis(np.stack(tried), best[None], 0)[0]
    score = np.take_along_axis(scores, best[None], 0)[0]
    return Near(found + _between(scores, tried, best), score)


def _between(scores: F32, tried: Sequence[F32], best: NDArray[np.intp]) -> F32:
    """To the top of the parabola through the best score and its two neighbours; 0 at the ends."""
    inner = np.clip(best, 1, len(tried) - 2)
    below, top, above = (np.take_along_axis(scores, (inner + by)[None], 0)[0] for by in (-1, 0, 1))
    bend = below - 2 * top + above
    shift = np.where(bend < -ALMOST_ZERO, 0.5 * (below - above) / np.minimum(bend, -ALMOST_ZERO), 0)
    step = tried[1] - tried[0]
    return np.where(inner == best, np.clip(shift, -0.5, 0.5) * step, 0).astype(np.float32)


class _Window:
    """Windows around all pixels of one photo, ready to be compared with those of others."""

    def __init__(self, pixels: F32) -> None:
        self._pixels = pixels - pixels.mean()
        self._mean = box(self._pixels)
        self._variance = box(self._pixels**2) - self._mean**2

    def agreement(self, other: F32) -> F32:
        """Normalised correlation [h, w]; -1 where one shows nothing (NaN: outside of its photo)."""
        outside = np.isnan(other)
        other = np.where(outside, np.float32(0), other - np.float32(128))
        mean = box(other)
        variance = box(other * other) - mean * mean
        both = box(self._pixels * other) - self._mean * mean
        result = both / np.sqrt(np.maximum(self._variance * variance, PLAIN))
        result[outside | (variance < PLAIN) | (self._variance < PLAIN)] = -1
        return np.clip(result, -1, 1).astype(np.float32)


class _Warp:
    """Where pixels of one photo lie in another, for any distance."""

    def __init__(self, photo: Grey, other: Grey) -> None:
        rays = rays_of(photo.camera)  # [h, w, 3]
        turn = other.camera.rotation @ photo.camera.rotation.T
        lens = np.array(
            [[other.camera.fx, 0, other.camera.cx], [0, other.camera.fy, other.camera.cy], [0, 0, 1]]
        )
        self._ahead = np.moveaxis(rays @ (lens @ turn).T, -1, 0).astype(np.float32)  # [3, h, w]
        self._shift = (lens @ (other.camera.translation - turn @ photo.camera.translation)).astype(np.float32)
        self._pixels = other.pixels

    def __call__(self, inverse: F32) -> F32:
        """The other photo as seen from this one, NaN where it does not show it. [h, w]"""
        x, y, depth = (self._ahead[axis] + inverse * self._shift[axis] for axis in range(3))
        depth[depth <= ALMOST_ZERO] = np.nan
        return sampled(self._pixels, x / depth, y / depth)


def rays_of(camera: Pinhole) -> F64:
    """Through the middle of each pixel, in camera axes, with depth 1. [h, w, 3]"""
    y, x = np.mgrid[0 : camera.height, 0 : camera.width] + 0.5
    return np.stack([(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, np.ones_like(x)], axis=-1)


def sampled(pixels: F32, x: F32, y: F32) -> F32:
    """Between the four nearest pixels, whose middles lie at 0.5; NaN outside."""
    height, width = pixels.shape
    x, y = x - np.float32(0.5), y - np.float32(0.5)
    inside = (x >= 0) & (y >= 0) & (x < width - 1) & (y < height - 1)  # False for NaN too
    x, y = np.where(inside, x, 0), np.where(inside, y, 0)
    left, top = x.astype(np.int32), y.astype(np.int32)
    x, y = x - left, y - top
    first = top * width + left
    flat = pixels.ravel()
    above = flat.take(first) * (1 - x) + flat.take(first + 1) * x
    below = flat.take(first + width) * (1 - x) + flat.take(first + width + 1) * x
    return np.where(inside, above * (1 - y) + below * y, np.nan).astype(np.float32)


def box(pixels: F32) -> F32:
    """The mean of each window; beyond the border the nearest pixel counts."""
    for axis in (0, 1):
        wide = np.pad(pixels, [(RADIUS, RADIUS) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
        count = pixels.shape[axis]
        parts = [wide[s : s + count] if axis == 0 else wide[:, s : s + count] for s in range(2 * RADIUS + 1)]
        pixels = np.add.reduce(parts).astype(np.float32) / np.float32(2 * RADIUS + 1)
    return pixels
