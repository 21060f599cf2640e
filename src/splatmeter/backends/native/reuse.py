"""Image arrays that are handed out again as soon as nobody holds them: a steady training allocates none."""

from __future__ import annotations

import sys

import numpy as np

from splatmeter.ops import F32

MOST_KEPT = 12
"""A step holds three images; views of other sizes bring their own."""


class ImagePool:
    """Whoever still refers to an array, or to a view into it, keeps it from being handed out."""

    def __init__(self) -> None:
        self._arrays: list[F32] = []

    def empty(self, shape: tuple[int, ...]) -> F32:
        """An array of this shape with any content."""
        for index in range(len(self._arrays)):
            if self._arrays[index].shape == shape and _references(self._arrays, index) == _FREE:
                return self._arrays[index]
        array = np.empty(shape, np.float32)
        self._arrays = [*self._arrays[-MOST_KEPT + 1 :], array]
        return array


def _references(arrays: list[F32], index: int) -> int:
    return sys.getrefcount(arrays[index])


_FREE = _references([np.empty(0, np.float32)], 0)
"""Counted rather than known: what a call itself holds differs between versions of Python."""
