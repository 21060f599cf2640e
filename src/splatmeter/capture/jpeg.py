"""A JPEG without EXIF, GPS, comments, previews and whatever was appended, and with exactly its pixels."""

from __future__ import annotations

START, END, SCAN = 0xD8, 0xD9, 0xDA
COMMENT = 0xFE
APPLICATION = range(0xE0, 0xF0)
ALONE = frozenset((0x01, *range(0xD0, 0xD8)))
"""Markers without a length."""


def stripped(data: bytes) -> bytes | None:
    """None where the file's structure is not understood: then it must be written anew."""
    if data[:2] != bytes((0xFF, START)):
        return None
    kept, at = [data[:2]], 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # filling
            at += 1
            continue
        if marker == END:
            return b"".join([*kept, data[at : at + 2]])
        length = 2 if marker in ALONE else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        end = _end_of_scan(data, at + length) if marker == SCAN else at + length
        if end > len(data):
            return None
        if marker in ALONE or marker == SCAN or _needed(marker, data[at + 4 : at + 18]):
            kept.append(data[at:end])
        at = end
    return b"".join([*kept, data[at : at + 2]]) if data[at : at + 2] == bytes((0xFF, END)) else None


def _needed(marker: int, head: bytes) -> bool:
    """JFIF, colour profile and Adobe's colour transform say what the pixels mean; the rest is chatter."""
    if marker == COMMENT:
        return False
    if marker in APPLICATION:
        return head.startswith((b"JFIF\0", b"ICC_PROFILE\0", b"Adobe"))
    return True


def _end_of_scan(data: bytes, at: int) -> int:
    """Where coded pixels end: at the next marker that is neither stuffing nor a restart."""
    while True:
        at = data.find(b"\xff", at)
        if at < 0 or at + 1 >= len(data):
            return len(data) + 1
        if data[at + 1] == 0 or data[at + 1] == 0xFF or data[at + 1] in ALONE:
            at += 1
            continue
        return at
