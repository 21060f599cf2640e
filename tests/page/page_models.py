"""Gaussians of every kind (needles, specks, giants, faint and dense ones) and cameras around them."""

from __future__ import annotations

import dataclasses

import numpy as np

from splatmeter.ops import (
    F64,
    FILTER_3D,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    Pinhole,
    RasterSettings,
    Table,
    empty_table,
)
from splatmeter.page.html_file import Content, packed_text, page
from splatmeter.page.viewpoints import Viewpoint, surroundings

SETTINGS = RasterSettings(3, 0.1, True)


def mixed_table(count: int, degree: int = 3, seed: int = 3) -> Table:
    generator = np.random.default_rng(seed)
    table = empty_table(count, trainable=False)
    table.geometry[:, MEANS] = generator.normal(size=(count, 3)) * [1.0, 0.6, 1.0]
    table.geometry[:, LOG_SCALES] = generator.normal(-4.3, 0.7, (count, 3))
    table.geometry[::7, LOG_SCALES.start] += 2.0  # needles
    table.geometry[::50, LOG_SCALES] += 2.5  # giants
    table.geometry[:, ROTATIONS] = generator.normal(size=(count, 4))
    table.geometry[:, OPACITY_LOGITS] = generator.normal(0.5, 2.5, count)
    table.geometry[:, FILTER_3D] = generator.uniform(0, 0.01, count)
    table.harmonics[:, :3] = generator.normal(0, 0.8, (count, 3))
    shining = generator.normal(0, 0.15, (count, 3 * (degree + 1) ** 2 - 3))
    shining[generator.uniform(size=count) < 0.8] *= 0.03  # most things are dull
    table.harmonics[:, 3 : 3 * (degree + 1) ** 2] = shining
    return table


def looking(position: F64, target: F64, up: F64, **lens: float) -> Pinhole:
    ahead = (target - position) / np.linalg.norm(target - position)
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(ahead, right), ahead])
    whole = Pinhole(rotation, -rotation @ position, 240.0, 250.0, 130.0, 84.0, 240, 180)
    return dataclasses.replace(whole, **lens)


def ring(count: int = 6, up: tuple[float, float, float] = (0.0, -1.0, 0.0)) -> list[Pinhole]:
    """Around the origin, a little from above, with principal points off the centre."""
    vertical = np.array(up)
    aside = np.cross(vertical, [0.3, 0.2, 1.0])
    aside /= np.linalg.norm(aside)
    other = np.cross(vertical, aside)
    turns = np.linspace(0, 2 * np.pi, count, endpoint=False)
    places = [4 * (np.cos(t) * aside + np.sin(t) * other) + 1.2 * vertical for t in turns]
    return [looking(place, np.zeros(3), vertical) for place in places]


def page_of(table: Table, degree: int = 3, views: list[Viewpoint] | None = None, **changes: object) -> str:
    views = (
        [Viewpoint(camera, held_out=k == 1) for k, camera in enumerate(ring())] if views is None else views
    )
    means = table.geometry[:, MEANS].astype(np.float64)
    content = Content(
        "A test", packed_text(table, degree), SETTINGS, views, surroundings(views, means), ["some facts"]
    )
    return page(dataclasses.replace(content, **changes))  # type: ignore[arg-type]
