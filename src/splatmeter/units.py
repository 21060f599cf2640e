"""Quantities as people read and write them: bytes, durations, rates."""

from __future__ import annotations

_BINARY = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def bytes_text(count: float) -> str:
    """1536 -> '1.5 KiB'; the unit grows until the number fits three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} TiB"


def parse_bytes(text: str) -> int:
    """'4G', '512MiB', '1.5 gb' and plain numbers; units are powers of 1024."""
    cleaned = text.strip().upper().replace(" ", "")
    digits = cleaned.rstrip("KMGTIB")
    suffix = cleaned[len(digits) :].replace("IB", "").replace("B", "")
    if suffix not in _BINARY:
        raise ValueError(f"{text!r} is not a size; write for example 4G or 512M")
    try:
        value = float(digits)
    except ValueError:
        raise ValueError(f"{text!r} is not a size; write for example 4G or 512M") from None
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text!r} is not a size; write for example 4G or 512M")
    return int(value * _BINARY[suffix])


def duration_text(seconds: float) -> str:
    """'8.3 s', '2 min 05 s', '1 h 02 min': what a person would say."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count_text(count: int) -> str:
    """1411234 -> '1.41 M', 138766 -> '138.8 k'."""
    if count < 10_000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.1f} k"
    return f"{count / 1e6:.2f} M"
