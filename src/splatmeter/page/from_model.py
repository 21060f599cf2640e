"""A page from a table of Gaussians and the cameras that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splatmeter.errors import InputError
from splatmeter.ops import MEANS, RasterSettings, Table
from splatmeter.page import html_file, viewpoints
from splatmeter.page.viewpoints import Viewpoint
from splatmeter.units import count_text

MOST_GAUSSIANS = 4_000_000
"""More do not fit the textures of every graphics card, nor the strings of a browser."""


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    html: str
    count: int
    degree: int
    gaussians: html_file.Gaussians
    settings: RasterSettings
    views: Sequence[Viewpoint]


def made(
    table: Table,
    degree: int,
    settings: RasterSettings,
    views: Sequence[Viewpoint],
    title: str,
    psnr: float | None = None,
) -> Made:
    """`psnr`: on held-out photos, where it is known."""
    views = viewpoints.evenly(views)
    packed = html_file.packed_text(table, degree)
    count = packed.packed.count
    if not count:
        raise InputError(f"{title} holds no Gaussians to show.")
    content = html_file.Content(
        title=title,
        gaussians=packed,
        settings=settings,
        views=views,
        surroundings=viewpoints.surroundings(views, table.geometry[:, MEANS].astype(np.float64)),
        facts=_facts(count, psnr),
        details=_details(count, settings, degree, views, psnr),
    )
    return Made(html_file.page(content), count, degree, packed, settings, views)


def _facts(count: int, psnr: float | None) -> list[str]:
    told = [] if psnr is None else [f"{psnr:.2f} dB on held-out photos"]
    return [f"{count_text(count)} Gaussians", *told]


def _details(
    count: int, settings: RasterSettings, degree: int, views: Sequence[Viewpoint], psnr: float | None
) -> list[tuple[str, str]]:
    held = sum(view.held_out for view in views)
    filtered = f"{settings.kernel_size:g} px²" + (", opacity compensated" if settings.compensate else "")
    told = [("Gaussians", f"{count:,}"), ("Colour", f"harmonics to degree {degree}"), ("2D filter", filtered)]
    if views:
        told.append(("Views", f"{len(views)}" + (f", {held} of them held out" if held else "")))
    if psnr is not None:
        told.append(("PSNR", f"{psnr:.2f} dB on the photos held out"))
    return told
