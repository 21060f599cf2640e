"""Judging a model view by view, with one photo and one render in memory at a time.

The multi-scale protocol renders with the camera scaled down and compares with averages of the full-size photo
(composited, averaged in floating point, then rounded half up to 8 bits like the render). Rows and columns
that do not fill a whole block are left out of both.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from splatmeter.evaluate.exposure_fit import NONE, fitted, judged
from splatmeter.evaluate.metrics import Pixels, SimilarityFunction, measure
from splatmeter.ops import F32
from splatmeter.photos.cache import PhotoCache
from splatmeter.render.pictures import box_average, shrunk, to_8bit
from splatmeter.scene.scene import View

TRAIN_VIEWS = 5

Render = Callable[[View], F32]
Perceptual = Callable[[Pixels, Pixels], float]
Observer = Callable[[int, View, Pixels, Pixels], None]
"""(number of the view from 0, view, render, photo), the pictures being [3, H, W]."""


@dataclass(frozen=True, slots=True)
class Report:
    """`means` over the views of what `per_view` tells of each: l1, psnr, ssim and, if asked for, lpips."""

    means: Mapping[str, float]
    per_view: Mapping[str, Mapping[str, float]]
    scale: int = 1
    exposure: str = NONE
    """The rule of exposure (exposure.py) that the figures follow."""

    @property
    def worst(self) -> str:
        """The view with the lowest PSNR; empty if there is none."""
        return min(self.per_view, key=lambda name: self.per_view[name]["psnr"], default="")


def evaluate_views(
    views: Iterable[View],
    render: Render,
    photos: PhotoCache,
    similarity: SimilarityFunction,
    *,
    scale: int = 1,
    perceptual: Perceptual | None = None,
    observe: Observer | None = None,
    exposure: str = NONE,
) -> Report:
    """The next photo is decoded while this view is rendered; observers get whole pictures."""
    per_view: dict[str, Mapping[str, float]] = {}
    following = pairwise(chain(views, [None]))
    for number, (view, successor) in enumerate(following):
        assert view is not None
        if successor is not None:
            photos.prefetch(successor.photo)
        pictures = _pictures(view, render, photos, scale, exposure)
        looked_at = (judged(pictures[0], exposure), judged(pictures[1], exposure))
        found = dict(measure(*looked_at, similarity))
        if perceptual is not None:
            found["lpips"] = perceptual(*looked_at)
        if observe is not None:
            observe(number, view, *pictures)
        per_view[_distinct(view.name, per_view)] = found
    return Report(means_of(per_view.values()), per_view, scale, exposure)


def _pictures(
    view: View, render: Render, photos: PhotoCache, scale: int, exposure: str
) -> tuple[Pixels, Pixels]:
    """Render and photo at the scale, 8-bit [3, H, W]."""
    photo = photos.load(view.photo)
    if scale > 1:
        view = dataclasses.replace(view, camera=shrunk(view.camera, scale))
        photo = to_8bit(box_average(photo, scale))
    color = render(view)
    return to_8bit(color if exposure == NONE else fitted(color, photo)), photo


def _distinct(name: str, taken: Mapping[str, object]) -> str:
    """Photos of different folders may share a name; each still gets its own line."""
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name} ({number})", number + 1
    return candidate


def means_of(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Arithmetic mean over the views of each metric; empty without views."""
    table = list(rows)
    return {name: math.fsum(row[name] for row in table) / len(table) for name in (table[0] if table else ())}


def evenly(views: Sequence[View], count: int = TRAIN_VIEWS) -> list[View]:
    """At most `count` views, spread over the whole list, always the same ones."""
    if count >= len(views):
        return list(views)
    return [views[(2 * index + 1) * len(views) // (2 * count)] for index in range(count)]
