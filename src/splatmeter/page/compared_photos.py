"""The photos a visitor may compare with: fewer and smaller than they were, and nothing but pixels."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from splatmeter.page.viewpoints import Viewpoint
from splatmeter.photos.photo import read
from splatmeter.scene.scene import View

LONGEST_SIDE = 960
QUALITY = 82
MOST_PHOTOS = 48


def encoded(view: View) -> str:
    """The photo as it was trained on, encoded anew: no EXIF, no thumbnail, no name. A data address."""
    image = Image.fromarray(np.ascontiguousarray(read(view.photo).transpose(1, 2, 0)))
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"


def viewpoints(views: Sequence[View], held_out: Sequence[bool], with_photos: bool) -> list[Viewpoint]:
    """In the order given; photos for those held out first, then evenly for others, MOST_PHOTOS at most."""
    shown = chosen(held_out) if with_photos else set()
    return [
        Viewpoint(view.camera, held, encoded(view) if number in shown else "")
        for number, (view, held) in enumerate(zip(views, held_out, strict=True))
    ]


def chosen(held_out: Sequence[bool]) -> set[int]:
    """Which views get their photo."""
    first = _spread([number for number, held in enumerate(held_out) if held], MOST_PHOTOS)
    others = [number for number, held in enumerate(held_out) if not held]
    return {*first, *_spread(others, MOST_PHOTOS - len(first))}


def _spread(numbers: list[int], most: int) -> list[int]:
    if len(numbers) <= most:
        return numbers
    return [numbers[round(place)] for place in np.linspace(0, len(numbers) - 1, most)] if most else []
