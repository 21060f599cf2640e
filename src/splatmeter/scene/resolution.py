"""The size photos are trained at, from the --resolution option."""

from __future__ import annotations

from splatmeter.errors import UsageError
from splatmeter.photos.photo import LARGEST_PHOTO_PIXELS

DIVISORS = (1, 2, 4, 8, 16, 32, 64)
AUTOMATIC = -1
AUTOMATIC_WIDTH = 1600
"""Photos wider than this are shrunk to it unless a resolution is asked for."""
WIDEST = 2**17


def target_size(width: int, height: int, resolution: int) -> tuple[int, int]:
    """A divisor rounds (halves to even, as Python does); -1 and a target width truncate.

    The truncation is the original's: int(w / (w / 1600)) is 1599 for 560 of the widths from 1601 to 11999.
    """
    if resolution in DIVISORS:
        size = round(width / resolution), round(height / resolution)
    elif resolution == AUTOMATIC:
        size = _truncated(width, height, AUTOMATIC_WIDTH if width > AUTOMATIC_WIDTH else width)
    elif 0 < resolution <= WIDEST:
        size = _truncated(width, height, resolution)
    else:
        raise UsageError(
            f"--resolution {resolution} makes no sense. Use a divisor ({', '.join(map(str, DIVISORS))}), "
            f"a width in pixels, or {AUTOMATIC} for at most {AUTOMATIC_WIDTH} pixels."
        )
    if size[0] * size[1] > LARGEST_PHOTO_PIXELS:
        raise UsageError(
            f"--resolution {resolution} would enlarge a {width}x{height} photo beyond all measure."
        )
    return size


def remarks_on(resolution: int, photo: tuple[int, int]) -> tuple[str, ...]:
    """Widths that were hardly meant as one: `-r 3` is three pixels, not a third."""
    if resolution <= 0 or resolution in DIVISORS:
        return ()
    width, height = target_size(*photo, resolution)
    if resolution < DIVISORS[-1]:
        near = " or ".join(str(divisor) for divisor in _neighbours(resolution))
        return (
            f"--resolution {resolution} is a width: photos of {photo[0]}x{photo[1]} are trained at "
            f"{width}x{height}. To shrink them by a factor, use {near}.",
        )
    if width > photo[0]:
        return (f"--resolution {resolution} enlarges photos of {photo[0]}x{photo[1]}: it adds no detail.",)
    return ()


def _neighbours(resolution: int) -> tuple[int, int]:
    above = next(divisor for divisor in DIVISORS if divisor > resolution)
    return above // 2, above


def _truncated(width: int, height: int, target: int) -> tuple[int, int]:
    scale = width / target
    return int(width / scale), int(height / scale)
