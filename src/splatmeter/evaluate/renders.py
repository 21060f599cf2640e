"""Pictures on disk: renders and photos in the original's folders, and a sheet to look at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from splatmeter.evaluate.metrics import Pixels
from splatmeter.files.atomic import replacing

DIFFERENCE_GAIN = 4
"""Differences are shown four times as bright: 1/4 of the range is white."""


def write_png(path: Path, pixels: Pixels) -> None:
    """[3, H, W]; quick rather than small."""
    with replacing(path) as stream:
        Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0))).save(stream, "PNG", compress_level=1)


class RenderFolder:
    """`<split>/ours_<step>/test_preds_<r>/00000.png` and `gt_<r>`, r being the resolution argument."""

    def __init__(self, model: Path, split: str, step: int, resolution: int | str) -> None:
        self.folder = model / split / f"ours_{step}"
        self.resolution = resolution

    def render_path(self, number: int) -> Path:
        return self.folder / f"test_preds_{self.resolution}" / f"{number:05d}.png"

    def photo_path(self, number: int) -> Path:
        return self.folder / f"gt_{self.resolution}" / f"{number:05d}.png"

    def write(self, number: int, render: Pixels, photo: Pixels | None) -> None:
        write_png(self.render_path(number), render)
        if photo is not None:
            write_png(self.photo_path(number), photo)


class ContactSheet:
    """One row a view: photo, render, difference. Keeps thumbnails only."""

    def __init__(self, column_width: int = 320, rows: int = 12) -> None:
        self.column_width = column_width
        self.most_rows = rows
        self._rows: list[Image.Image] = []

    def add(self, render: Pixels, photo: Pixels) -> None:
        """Views after the last row that fits are left out."""
        if len(self._rows) >= self.most_rows:
            return
        distance = np.abs(render.astype(np.int16) - photo) * DIFFERENCE_GAIN  # [3, H, W]
        pictures = [photo, render, np.minimum(distance, 255).astype(np.uint8)]
        height, width = photo.shape[1:]
        column = min(self.column_width, width)
        size = (column, max(1, round(height * column / width)))
        row = Image.new("RGB", (3 * size[0], size[1]))
        for index, pixels in enumerate(pictures):
            image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
            row.paste(image.resize(size, Image.Resampling.BOX), (index * size[0], 0))
        self._rows.append(row)

    def write(self, path: Path) -> None:
        if not self._rows:
            return
        sheet = Image.new(
            "RGB", (max(row.width for row in self._rows), sum(row.height for row in self._rows))
        )
        top = 0
        for row in self._rows:
            sheet.paste(row, (0, top))
            top += row.height
        with replacing(path) as stream:
            sheet.save(stream, "PNG")
