"""How a file says by which 2D filter its Gaussians are to be drawn.

Ours is exact: `kernel_size 0.1 compensated`. Beside it stand, or are understood, the marks of others, which
know only two ways: brush's `SplatRenderMode: default|mip` and Postshot's `antialiased 0|1`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from splatmeter.ops import RasterSettings

PLAIN_KERNEL_SIZE = 0.3
"""What plain 3DGS adds to every projected variance, in squared pixels, without compensation."""

MIP = RasterSettings()
PLAIN = RasterSettings(kernel_size=PLAIN_KERNEL_SIZE, compensate=False)

_FOREIGN = {
    ("splatrendermode:", "mip"): MIP,
    ("splatrendermode:", "default"): PLAIN,
    ("antialiased", "1"): MIP,
    ("antialiased", "0"): PLAIN,
}


def written(settings: RasterSettings | None) -> list[str]:
    """The comments that say it, to us and to others; none where nobody knows."""
    if settings is None:
        return []
    way = "compensated" if settings.compensate else "plain"
    mode = "mip" if settings.compensate else "default"
    return [f"kernel_size {settings.kernel_size:g} {way}", f"SplatRenderMode: {mode}"]


def told(comments: Sequence[str], sh_degree: int) -> RasterSettings | None:
    """What comments say; ours is believed before the others', which are less exact."""
    words = [comment.split() for comment in comments]
    for found in (*map(_ours, words), *map(_others, words)):
        if found is not None:
            return dataclasses.replace(found, sh_degree=sh_degree)
    return None


def held(settings: RasterSettings | None) -> bool:
    """Whether a mark that knows only two ways tells these settings without loss."""
    return settings is None or any(
        (settings.kernel_size, settings.compensate) == (way.kernel_size, way.compensate)
        for way in (MIP, PLAIN)
    )


def _ours(words: list[str]) -> RasterSettings | None:
    if len(words) != 3 or words[0] != "kernel_size" or words[2] not in ("compensated", "plain"):
        return None
    try:
        size = float(words[1])
    except ValueError:
        return None
    return RasterSettings(kernel_size=size, compensate=words[2] == "compensated") if 0 <= size < 100 else None


def _others(words: list[str]) -> RasterSettings | None:
    return _FOREIGN.get((words[0].lower(), words[1].lower())) if len(words) == 2 else None
