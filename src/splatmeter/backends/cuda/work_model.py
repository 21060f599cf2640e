"""What the kernels of a step must move and issue, by a model: bytes and instructions a row, pair or pixel.

Not measured. Bytes are those of a card whose caches hold what is read twice in one kernel and nothing from
one kernel to the next; what is read at random counts in sectors of 32 bytes. Instructions are those of whole
warps, counted in machine code for sm_120 (native/cuda/pair_instructions.py and estimate.py); of kernels that
only move numbers none are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SECTOR = 32
TILE = 16
SUBTILES = 2.86
"""How many of a tile's eight a pair reaches: counted in a garden of 2 M Gaussians at 1297x840."""

PAIR_INSTRUCTIONS = {
    "blend_forward": (47.1, 17.0),
    "blend_backward": (116.4, 32.1),
    "blend_backward_absolute": (118.1, 42.4),
}
"""A pair, and each subtile it reaches."""
PIXEL_INSTRUCTIONS = {"loss_values": 50.1, "loss_gradient": 39.4}
ROW_INSTRUCTIONS = {"project": (4.0, 30.0), "update": (0.0, 109.0)}
"""A row, and a visible one; in the update with 2.4 pairs each."""

TABLE_ROW = 736  # geometry 64, harmonics 192, its moments 96, theirs 192 and 192
GEOMETRY, HARMONICS, GEOMETRY_MOMENTS = 64, 192, 96
SPLAT, SPLAT_AT_RANDOM, SLOT = 48, 2 * SECTOR, 48
DEPTH_DIGITS, DIGIT_BITS = 3, 9


@dataclass(frozen=True, slots=True)
class Counts:
    """What one step has to do."""

    rows: float
    visible: float
    seen: float
    """Rows with a pixel that saw them: those that learn."""
    pairs: float
    width: int
    height: int
    subtiles: float = SUBTILES

    @property
    def pixels(self) -> int:
        return self.width * self.height

    @property
    def tiles(self) -> int:
        return math.ceil(self.width / TILE) * math.ceil(self.height / TILE)


@dataclass(frozen=True, slots=True)
class Work:
    bytes: float
    instructions: float = 0.0
    """Instructions that warps issue; 0 where none are counted."""


def work_of(c: Counts) -> dict[str, Work]:
    """By kernel; one that is missing moves next to nothing."""
    found = {name: Work(total) for name, total in _bytes(c).items()}
    for name, (always, if_visible) in ROW_INSTRUCTIONS.items():
        found[name] = Work(found[name].bytes, c.rows * always + c.visible * if_visible)
    for name, (a_pair, a_subtile) in PAIR_INSTRUCTIONS.items():
        found[name] = Work(found[name].bytes, c.pairs * (a_pair + a_subtile * c.subtiles))
    for name, a_pixel in PIXEL_INSTRUCTIONS.items():
        found[name] = Work(found[name].bytes, c.pixels * a_pixel)
    return found


def _bytes(c: Counts) -> dict[str, float]:
    tile_digits = math.ceil(c.tiles.bit_length() / DIGIT_BITS)  # and one tile behind the last
    # A digit's counts are 512 numbers for each 2048 elements: one byte an element.
    counts = DEPTH_DIGITS * c.rows + tile_digits * c.pairs
    sorted_items = DEPTH_DIGITS * c.visible + tile_digits * c.pairs
    first_values = 4 * c.pairs  # the pairs' first digit reads no values: they are the numbers themselves
    a_pair = 4 + SECTOR + SPLAT_AT_RANDOM  # its number in the tile's order, its row, its splat
    backward = c.pairs * (a_pair + SLOT + 1) + c.pixels * 24
    catching_up = GEOMETRY_MOMENTS / 2 + HARMONICS  # first moments
    learning = 2 * (TABLE_ROW - 4)
    return {
        "project": c.rows * (GEOMETRY + 4) + c.visible * (HARMONICS + catching_up + SPLAT + 8),
        "count_rows": 8 * c.rows,
        "compact": 8 * c.rows + 8 * c.visible,
        "radix_count": 4 * sorted_items + counts,
        "radix_scatter": 16 * sorted_items - first_values + counts,
        "scan_sums": counts + 8 * c.visible,
        "scan_apply": 2 * counts + 12 * c.visible,
        "emit": c.visible * (16 + SPLAT_AT_RANDOM) + 8 * c.pairs,
        "tile_begins": 4 * c.pairs + 4 * c.tiles,
        "blend_forward": c.pairs * a_pair + c.pixels * 16,
        "loss_values": c.pixels * (15 + 36),
        "loss_gradient": c.pixels * (36 + 15 + 12),
        "blend_backward": backward,
        "blend_backward_absolute": backward,
        "update": c.visible * (12 + SECTOR) + c.pairs * (SLOT + 1) + c.seen * learning,
    }
