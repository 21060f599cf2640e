"""Which photo saw which point, as COLMAP found by matching: unlike a projection it knows what is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.errors import InputError
from splatmeter.ops import F64
from splatmeter.scene import colmap, colmap_binary, colmap_text
from splatmeter.scene.frames import read_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    positions: F64  # [P, 3] world
    points: NDArray[np.int64]  # [M] row of positions, for each time that a photo saw a point
    images: NDArray[np.int64]  # [M] COLMAP's number of that photo


def read_tracks(source: Path) -> tuple[Tracks, dict[int, str]] | None:
    """Tracks, and the photos' names by COLMAP's numbers. None where the model has none: other programs write
    models without them."""
    sparse = colmap.sparse_folder(source)
    for ending, parser, tracks_of in (
        (".bin", colmap_binary, colmap_binary.parse_tracks),
        (".txt", colmap_text, colmap_text.parse_tracks),
    ):
        points, images = sparse / f"points3D{ending}", sparse / f"images{ending}"
        if points.is_file() and images.is_file():
            try:
                positions, rows, numbers = tracks_of(read_bytes(points), points)
            except InputError:  # whoever starts from these points hears of it; here it is only a help
                return None
            named = {image.number: image.name for image in parser.parse_images(read_bytes(images), images)}
            return (Tracks(positions, rows, numbers), named) if len(rows) else None
    return None


def by_photo(tracks: Tracks, named: dict[int, str], names: Sequence[str]) -> list[NDArray[np.int64]]:
    """For each of the names the rows of points it saw."""
    places = {name: place for place, name in enumerate(names)}
    order = np.argsort(tracks.images, kind="stable")
    images, points = tracks.images[order], tracks.points[order]
    numbers, starts = np.unique(images, return_index=True)
    found: list[NDArray[np.int64]] = [np.empty(0, np.int64) for _ in names]
    for number, begin, end in zip(numbers, starts, [*starts[1:], len(images)], strict=True):
        place = places.get(named.get(int(number), "").removeprefix("./"))
        if place is not None:
            found[place] = np.unique(points[begin:end])
    return found
