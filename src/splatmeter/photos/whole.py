"""Are the photos whole? Their last bytes tell, so that a cut-off file is met before training, not in it.

Only the ends of files are read. What they make suspect is decoded: a photo is refused for nothing but what
training would stumble over, however odd the camera that wrote it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from PIL import Image

from splatmeter.errors import InputError
from splatmeter.photos.photo import Photo, opened

TAIL = 64 * 2**10
"""Some cameras write notes behind the image: its end is searched for in this many last bytes."""
_BLOCK = 2**20
_JPEG_END = b"\xff\xd9"
_PNG_END = b"IEND\xae\x42\x60\x82"
_MARKERS_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))
_SCAN = 0xDA
_STRIPS, _STRIPS_BYTES, _TILES, _TILES_BYTES = 273, 279, 324, 325


def require_whole(photos: Sequence[Photo]) -> None:
    """InputError that counts the photos and masks that cannot be decoded to their end."""
    paths = [path for photo in photos for path in (photo.path, photo.mask) if path is not None]
    broken = [path for path in dict.fromkeys(paths) if not looks_whole(path) and not _decodes(path)]
    if len(broken) == 1:
        raise InputError(f"{broken[0]} is cut off. Copy it again, then run the same command again.")
    if broken:
        raise InputError(
            f"{len(broken)} of {len(paths)} photos and masks are cut off (first: {broken[0]}). "
            "Copy them again, then run the same command again."
        )


def looks_whole(path: Path) -> bool:
    """False where a file lacks the end its format promises; formats that promise none look whole."""
    try:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(32)
            check = next((check for magic, check in _CHECKS.items() if head.startswith(magic)), None)
            return check is None or check(file, size, head)
    except OSError:
        return True  # whoever opens it says why it cannot be read


def _decodes(path: Path) -> bool:
    try:
        with opened(path) as image:
            image.load()
    except InputError:
        return False
    return True


def _jpeg(file: BinaryIO, size: int, _: bytes) -> bool:
    """Compressed data never holds the end marker, so one behind their beginning is the image's own end; films
    and second pictures that phones append come after it."""
    file.seek(max(0, size - 2))
    if file.read(2) == _JPEG_END:
        return True
    start = _first_scan(file, size)
    if start is None:
        return False
    return _holds(file, _JPEG_END, max(start, size - TAIL)) or _holds(file, _JPEG_END, start)


def _first_scan(file: BinaryIO, size: int) -> int | None:
    """Where compressed data begin: segments before, which may hold whole thumbnails, are stepped over."""
    offset = 2
    while offset + 4 <= size:
        file.seek(offset)
        marker = file.read(4)
        if marker[0] != 0xFF:
            return None
        if marker[1] == 0xFF or marker[1] in _MARKERS_ALONE:
            offset += 1 if marker[1] == 0xFF else 2
            continue
        offset += 2 + int.from_bytes(marker[2:], "big")
        if marker[1] == _SCAN:
            return offset
    return None


def _png(file: BinaryIO, size: int, _: bytes) -> bool:
    return _holds(file, _PNG_END, max(0, size - TAIL))


def _riff(_: BinaryIO, size: int, head: bytes) -> bool:
    """WebP says how long it is."""
    return size >= 8 + int.from_bytes(head[4:8], "little")


def _bmp(_: BinaryIO, size: int, head: bytes) -> bool:
    return size >= int.from_bytes(head[2:6], "little")


def _gif(file: BinaryIO, size: int, _: bytes) -> bool:
    file.seek(max(0, size - 1))
    return file.read(1) == b";"


def _jpeg_2000(file: BinaryIO, size: int, _: bytes) -> bool:
    file.seek(max(0, size - 2))
    return file.read(2) == _JPEG_END


def _tiff(file: BinaryIO, size: int, _: bytes) -> bool:
    """Its header says where strips or tiles of pixels lie."""
    file.seek(0)
    try:
        with Image.open(file, formats=["TIFF"]) as image:
            tags = dict(getattr(image, "tag_v2", {}))
            places = tags[_STRIPS if _STRIPS in tags else _TILES]
            lengths = tags[_STRIPS_BYTES if _STRIPS in tags else _TILES_BYTES]
            return all(a + b <= size for a, b in zip(places, lengths, strict=True))
    except Exception:  # whatever a broken header makes the decoder meet: decoding will tell
        return False


_CHECKS: dict[bytes, Callable[[BinaryIO, int, bytes], bool]] = {
    b"\xff\xd8\xff": _jpeg,
    b"\x89PNG": _png,
    b"RIFF": _riff,
    b"BM": _bmp,
    b"GIF8": _gif,
    b"\0\0\0\x0cjP  ": _jpeg_2000,
    b"\xff\x4f\xff\x51": _jpeg_2000,
    b"II*\0": _tiff,
    b"MM\0*": _tiff,
}


def _holds(file: BinaryIO, mark: bytes, start: int) -> bool:
    """Whether the mark lies behind this place."""
    file.seek(start)
    before = b""
    while block := file.read(_BLOCK):
        if mark in before + block:
            return True
        before = block[-len(mark) + 1 :]
    return False
