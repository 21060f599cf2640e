"""One photo as reconstruction and training want it: upright, 8 bits, not too large, without EXIF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from splatmeter.capture.exif import Lens, read_lens
from splatmeter.capture.jpeg import stripped
from splatmeter.capture.sharpness import judged
from splatmeter.errors import InputError, SplatmeterError
from splatmeter.photos.photo import color_and_alpha, opened, same_shape

JPEG_QUALITY = 95
SMALLEST_SIDE = 200
"""Pixels of the longer side below which a photo is a thumbnail: too little to find its place by."""
WIDEST = 2.6
"""Longer side by shorter; beyond that a photo was swept or stitched, and no single lens saw it."""
PANORAMA = "It is a panorama, which no single lens saw"
PANORAMA_MARK = b"GPano:ProjectionType"
PLAIN = 8.0
"""Grey levels by which an edge varies at most that shows nothing."""
HEAD_BYTES = 2**18
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class Unusable(Exception):
    """One photo cannot be used; the others may do. Carries reason and advice."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.reason, self.advice = reason, advice


@dataclass(frozen=True, slots=True)
class Clean:
    """What was written and what was learned on the way."""

    file: str
    width: int
    height: int
    sharpness: float
    lens: Lens
    mask: bool
    hidden: bool


def prepare(
    path: Path, mask: Path | None, folder: Path, number: int, max_size: int, *, turn: bool = True
) -> Clean:
    """Writes folder/photos/NUMBER.jpg or .png, and folder/masks/NUMBER.png where there is a mask.

    A JPEG that needs no change keeps its pixels to the last bit. Without `turn` the EXIF orientation is
    ignored, as COLMAP and the trainer do with scenes that exist already.
    """
    if turn:
        check_plausible(path)
    try:
        with opened(path) as image:
            lens = read_lens(image)
            turned = _TURNS.get(lens.orientation) if turn else None
            as_it_is = image.format in ("JPEG", "MPO") and image.mode in ("RGB", "L") and turned is None
            jpeg, full = image.format in ("JPEG", "MPO"), image.size
            if max(full) > max_size and jpeg:
                image.draft(None, _at_least(full, max_size))  # decodes at 1/2, 1/4: less time and memory
            pixels, alpha = color_and_alpha(image, path)  # [h, w, 3], [h, w] or None
    except SplatmeterError as problem:
        raise Unusable(_reason(str(problem), path), "Copy it again, or leave it out") from None
    if turn and wraps_around(pixels):
        raise Unusable(PANORAMA, "Use ordinary photos")
    photo = _shaped(Image.fromarray(pixels), full, turned, max_size)
    file = f"{number:06d}{'.jpg' if jpeg else '.png'}"
    _write_photo(photo, folder / "photos" / file, path if as_it_is and photo.size == full else None)
    shown = None
    hidden = alpha is not None and int(alpha.min()) < 255 and mask is None
    if mask is not None:
        shown = _mask(mask, photo.size, turned)
    elif hidden and alpha is not None:
        shown = _shaped(Image.fromarray(alpha), full, turned, max_size)
    if shown is not None:
        shown.save(folder / "masks" / f"{number:06d}.png")
    scale = max(photo.size) / max(full)
    lens = Lens(lens.focal * scale if lens.focal else None, lens.body, lens.orientation)
    return Clean(file, photo.width, photo.height, judged(photo), lens, shown is not None, hidden)


def check_plausible(path: Path) -> None:
    """From the header alone: thumbnails, panoramas, files that are no pictures."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        with opened(path) as image:
            longer, shorter = max(image.size), min(image.size)
    except OSError as problem:
        raise Unusable(f"It cannot be read ({problem.strerror})", "Check its permissions") from None
    except SplatmeterError as problem:
        huge = "million pixels" in str(problem)
        advice = "Shrink it, or leave it out" if huge else "Replace it with a JPEG or PNG, or leave it out"
        raise Unusable(_reason(str(problem), path), advice) from None
    if longer < SMALLEST_SIDE:
        raise Unusable(f"It is a thumbnail of {longer} pixels", "Use the photo as the camera stored it")
    if longer / shorter > WIDEST or PANORAMA_MARK in head:
        raise Unusable(PANORAMA, "Use ordinary photos")


def wraps_around(pixels: NDArray[np.uint8]) -> bool:
    """Twice as wide as high, the right edge goes on at the left one, and the top is one point of the sky.

    All three, because phones make photos of 2:1 as well. Edges of one colour say nothing: things on white.
    """
    height, width = pixels.shape[:2]
    if abs(width - 2 * height) > 2 or height < 16:
        return False
    grey = pixels.astype(np.float32).mean(axis=2)  # [h, w]
    left = grey[:, 0]
    across, beside = (float(np.abs(left - grey[:, k]).mean()) for k in (-1, 1))
    elsewhere = float(np.abs(left - grey[:, width // 2]).mean())
    continued = left.std() > PLAIN and across <= 3 * beside + 2 and across < elsewhere / 3
    return bool(continued) and float(grey[0].std()) < float(grey[height // 2].std()) / 3


def blank_mask(folder: Path, number: int, size: tuple[int, int]) -> None:
    """All object: for photos without a mask in a scene that has masks."""
    Image.new("L", size, 255).save(folder / "masks" / f"{number:06d}.png")


def _at_least(size: tuple[int, int], longer: int) -> tuple[int, int]:
    scale = longer / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _shaped(
    image: Image.Image, full: tuple[int, int], turned: Image.Transpose | None, max_size: int
) -> Image.Image:
    """At its final size and upright; `full` is the size in the file, which decoding may have divided."""
    size = _at_least(full, max_size) if max(full) > max_size else full
    if image.size != size:
        image = image.resize(size, Image.Resampling.LANCZOS)
    return image.transpose(turned) if turned is not None else image


def _write_photo(photo: Image.Image, target: Path, unchanged: Path | None) -> None:
    """`unchanged` names the JPEG whose pixels these are."""
    if unchanged is not None:
        data = stripped(unchanged.read_bytes())
        if data is not None:
            target.write_bytes(data)
            return
    if target.suffix == ".jpg":
        photo.save(target, quality=JPEG_QUALITY, subsampling=0)
    else:
        photo.save(target, compress_level=3)


def _mask(path: Path, size: tuple[int, int], turned: Image.Transpose | None) -> Image.Image:
    """Made for the upright photo, or for the stored one: its shape tells."""
    with opened(path) as image:
        grey = ImageOps.exif_transpose(image).convert("L")
    if not same_shape(grey.size, size) and turned is not None:
        grey = grey.transpose(turned)
    if not same_shape(grey.size, size):
        raise InputError(
            f"The mask {path} is {grey.size[0]}x{grey.size[1]}, its photo {size[0]}x{size[1]}. "
            "A mask must show the same frame as its photo: make it anew, or take the masks away."
        )
    values = np.asarray(grey)
    if values.max() == 1:
        raise InputError(f"The mask {path} holds only 0 and 1. Write the object as 255.")
    return grey if grey.size == size else grey.resize(size, Image.Resampling.BILINEAR)


def _reason(problem: str, path: Path) -> str:
    """The first sentence of a message about a file, without the file's place on this machine."""
    said = problem.replace(str(path), "It").split(". ")[0].rstrip(".")
    return said if said.startswith("It") else f"It cannot be read ({said})"
