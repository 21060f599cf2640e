"""One photo: its size without decoding it, and its pixels at the size it is trained at.

Pixels are what the file says: no gamma, no colour profile and no EXIF rotation, because COLMAP looks at them
the same way. JPEGs are decoded at full size: decoding at 1/2 or 1/4 is faster, but gives other pixels than
the bicubic resize that published results are made with.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from splatmeter.errors import InputError, MissingFile, SplatmeterError

LARGEST_PHOTO_PIXELS = 178_956_970
"""Above this a file is taken for a decompression bomb; it is also where Pillow refuses."""

Color = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Photo:
    """Where the pixels are and how they are to be shown; equal descriptions give equal pixels."""

    path: Path
    width: int
    """It is resized to; the file may be larger."""
    height: int
    mask: Path | None = None
    """An image of the same shape, 255 = object, that takes the place of the photo's alpha."""
    background: Color = (0, 0, 0)
    """Shown where alpha or mask let it through."""
    divisor: int = 1
    """After that, blocks of so many by so many pixels become their mean; what fills no block is cut off."""

    @property
    def nbytes(self) -> int:
        """Size of the decoded photo."""
        return 3 * (self.width // self.divisor) * (self.height // self.divisor)


def size_of(path: Path) -> tuple[int, int]:
    """(width, height) from the header alone."""
    with opened(path) as image:
        return image.size


def read(photo: Photo) -> NDArray[np.uint8]:
    """Decodes, lays over the background, resizes (bicubic), then averages blocks: [3, H, W]."""
    with opened(photo.path) as image:
        pixels, alpha = color_and_alpha(image, photo.path)  # [h, w, 3], [h, w] or None
    if photo.mask is not None:
        alpha = _read_mask(photo.mask, (pixels.shape[1], pixels.shape[0]))
    if alpha is not None:
        pixels = over_background(pixels, alpha, photo.background)
    if pixels.shape[:2] != (photo.height, photo.width):
        size = (photo.width, photo.height)
        pixels = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC))  # [H, W, 3]
    if photo.divisor != 1:
        pixels = _block_means(pixels, photo.divisor)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))  # [3, H, W]


def over_background(
    pixels: NDArray[np.uint8], alpha: NDArray[np.uint8], background: Color
) -> NDArray[np.uint8]:  # [h, w, 3], [h, w] -> [h, w, 3]
    """Straight alpha, truncated to 8 bits as the original does; opaque pixels stay exactly as they are."""
    pairs = (alpha.astype(np.uint16) << 8)[..., None] | pixels  # [h, w, 3] places in the table
    result = np.empty_like(pixels)
    for channel, value in enumerate(background):
        result[..., channel] = _blend_table(value)[pairs[..., channel]]
    return result


def _block_means(pixels: NDArray[np.uint8], divisor: int) -> NDArray[np.uint8]:
    """Means over blocks, rounded half up: [H, W, 3] -> [H // divisor, W // divisor, 3]."""
    height, width = pixels.shape[0] // divisor * divisor, pixels.shape[1] // divisor * divisor
    return np.asarray(Image.fromarray(pixels).reduce(divisor, (0, 0, width, height)))


@functools.lru_cache(maxsize=8)
def _blend_table(background: int) -> NDArray[np.uint8]:
    """Every (alpha, value) pair once, in float64 and in this order of operations: [65536].

    An exact integer floor would differ from the original in 306 of the 131,072 cases for black and white.
    """
    share = np.arange(256)[:, None] / 255.0  # [256, 1] alpha
    value = np.arange(256)[None, :] / 255.0  # [1, 256]
    return ((value * share + (background / 255.0) * (1 - share)) * 255.0).astype(np.uint8).ravel()


def color_and_alpha(
    image: Image.Image, path: Path
) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:  # [h, w, 3], [h, w]
    """Palette, 1-bit, grey, CMYK and 16-bit grey files become RGB; alpha is kept wherever a file has any."""
    if image.mode == "F":
        raise InputError(f"{path} holds floating-point pixels. Convert it to an 8-bit PNG or JPEG.")
    if image.mode.startswith("I"):  # 16-bit grey; Pillow's own conversion would clip it at 255
        grey = (np.clip(np.asarray(image), 0, 65535) >> 8).astype(np.uint8)  # [h, w]
        return np.repeat(grey[..., None], 3, axis=2), None
    if image.has_transparency_data:
        both = np.asarray(image.convert("RGBA"))  # [h, w, 4]
        return both[..., :3], both[..., 3]
    return np.asarray(image.convert("RGB")), None


def _read_mask(path: Path, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Grey values as alpha [h, w]; brought to the photo's size where only the photo was shrunk."""
    with opened(path) as image:
        if not same_shape(image.size, size):
            raise InputError(
                f"The mask {path} is {image.size[0]}x{image.size[1]}, its photo {size[0]}x{size[1]}. "
                "A mask must show the same frame as its photo: recreate it, or pass another --masks folder."
            )
        grey = image.convert("L")
        if grey.getextrema()[1] == 1:
            raise InputError(f"The mask {path} holds only 0 and 1. Write the object as 255.")
        if grey.size != size:
            grey = grey.resize(size, Image.Resampling.BILINEAR)
        return np.asarray(grey)


def same_shape(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """True where one size is the other scaled, up to a pixel of rounding or 2 % (cropped to even sizes)."""
    (w, h), (v, g) = one, other
    ratio = (w * g) / (h * v)
    slack = 0.02 + 1 / w + 1 / h + 1 / v + 1 / g
    return abs(ratio - 1) <= slack


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """An image whose every failure, now or while decoding, says which file it is and what to do."""
    try:
        with Image.open(path) as image:
            width, height = image.size
            if min(width, height) < 1:
                raise UnidentifiedImageError
            if width * height > LARGEST_PHOTO_PIXELS:
                raise Image.DecompressionBombError
            yield image
    except SplatmeterError:
        raise
    except FileNotFoundError:
        raise MissingFile(f"The photo {path} does not exist. Restore it, or pass another --images.") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise InputError(
            f"{path} claims to have more than {LARGEST_PHOTO_PIXELS // 10**6} million pixels. "
            "Shrink it, or check that it is the photo it should be."
        ) from None
    except UnidentifiedImageError:
        raise InputError(
            f"{path} is not a readable image. Replace it with a JPEG or PNG, or remove it from the scene."
        ) from None
    except MemoryError:
        raise InputError(f"{path} is too large for this machine's memory. Shrink it.") from None
    except Exception as problem:  # Pillow's decoders raise whatever a broken file makes them meet
        raise InputError(
            f"{path} cannot be decoded ({problem}); it may be cut off. Copy or download it again."
        ) from problem
