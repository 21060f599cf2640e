"""What a photo's EXIF block says about its lens. Nothing of it reaches the scene but the focal length."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from PIL import Image

ORIENTATION = 0x0112
MAKE, MODEL = 0x010F, 0x0110
EXIF_BLOCK = 0x8769
FOCAL_LENGTH, FOCAL_35MM = 0x920A, 0xA405
PLANE_RESOLUTION, PLANE_UNIT = 0xA20E, 0xA210
PIXELS_ACROSS, PIXELS_DOWN = 0xA002, 0xA003
DIAGONAL_35MM = math.hypot(36.0, 24.0)
UNIT_MILLIMETRES = {2: 25.4, 3: 10.0, 4: 1.0}
PLAUSIBLE = (0.3, 20.0)
"""Focal lengths as a share of the longer side; anything else is a wrong entry."""


@dataclass(frozen=True, slots=True)
class Lens:
    """As far as the file tells."""

    focal: float | None
    """In pixels of the photo as it is stored, before resizing."""
    body: str
    """Equal for photos of one camera at one zoom; a hash, so that no serial number is kept."""
    orientation: int = 1


def read_lens(image: Image.Image) -> Lens:
    """Never fails: an EXIF block that cannot be read says nothing."""
    try:
        block = image.getexif()
        tags: dict[int, object] = {**block, **block.get_ifd(EXIF_BLOCK)}
    except Exception:  # Pillow raises whatever a broken block makes it meet
        return Lens(None, _hashed(()))
    orientation = tags.get(ORIENTATION)
    known = (tags.get(tag) for tag in (MAKE, MODEL, FOCAL_LENGTH, FOCAL_35MM))
    return Lens(
        focal_in_pixels(tags, image.size),
        _hashed(known),
        orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1,
    )


def focal_in_pixels(tags: Mapping[int, object], size: tuple[int, int]) -> float | None:
    """From the 35 mm equivalent, which is defined by the diagonal, or from the sensor's resolution."""
    if _cropped(tags, size):
        return None
    equivalent, millimetres = _number(tags.get(FOCAL_35MM)), _number(tags.get(FOCAL_LENGTH))
    density, unit = _number(tags.get(PLANE_RESOLUTION)), UNIT_MILLIMETRES.get(tags.get(PLANE_UNIT, 2))  # type: ignore[arg-type]
    across = _number(tags.get(PIXELS_ACROSS))
    focal = None
    if equivalent:
        focal = equivalent / DIAGONAL_35MM * math.hypot(*size)
    elif millimetres and density and unit:
        focal = millimetres * density / unit * (size[0] / across if across else 1.0)
    if focal is None or not PLAUSIBLE[0] <= focal / max(size) <= PLAUSIBLE[1]:
        return None
    return focal


def _cropped(tags: Mapping[int, object], size: tuple[int, int]) -> bool:
    """True where the photo no longer has the shape that the camera gave it: its focal length is unknown."""
    across, down = _number(tags.get(PIXELS_ACROSS)), _number(tags.get(PIXELS_DOWN))
    if not across or not down:
        return False
    taken, stored = max(across, down) / min(across, down), max(size) / min(size)
    return abs(taken / stored - 1) > 0.02


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def _hashed(values: object) -> str:
    text = "|".join(str(value).strip() for value in values)  # type: ignore[attr-defined]
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
