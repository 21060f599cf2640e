"""Numbers as they stand in prose, with their unit and with how exactly they were written.

A number is the interval of everything that rounds to it; two statements contradict each other only if no pair
of numbers inside their intervals agrees.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {
    "it/s": ("it/s", 1.0),
    "its/s": ("it/s", 1.0),
    "iter/s": ("it/s", 1.0),
    "kb": ("B", 1e3),
    "mb": ("B", 1e6),
    "gb": ("B", 1e9),
    "tb": ("B", 1e12),
    "kib": ("B", 2.0**10),
    "mib": ("B", 2.0**20),
    "gib": ("B", 2.0**30),
    "tib": ("B", 2.0**40),
    "db": ("dB", 1.0),
    "%": ("%", 1.0),
}
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6}
_QUANTITY = re.compile(
    r"(?P<approximate>~|≈|\babout |\baround |\bca\. )?\s?"
    r"(?<![\w.])(?P<sign>[+\-−±])?(?<![\w.])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:(?P<scale>[KkM])(?![A-Za-z]))?\s?"
    r"(?P<unit>(?:it/s|its/s|iter/s|[kKMGT]i?B|dB)(?!\w)|%)?(?![\w]|\.\d|,\d{3})"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """`value` in the base unit (bytes, it/s, dB, %, or none); `half` is half a unit of its last digit."""

    value: float
    unit: str
    half: float
    signed: bool
    approximate: bool
    text: str
    start: int = 0
    end: int = 0

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half

    def agrees(self, other: Quantity) -> bool:
        """Could both be roundings of one number?"""
        return self.low <= other.high * (1 + 1e-12) and other.low <= self.high * (1 + 1e-12)


def quantities(text: str) -> list[Quantity]:
    """All numbers of a plain text in order; those that are part of a word or a version are not numbers."""
    return [_quantity(found) for found in _QUANTITY.finditer(text)]


def first_quantity(text: str, unit: str | None = None) -> Quantity | None:
    return next((q for q in quantities(text) if unit is None or q.unit == unit), None)


def _quantity(found: re.Match[str]) -> Quantity:
    digits = found["number"].replace(",", "")
    unit, factor = _UNITS.get((found["unit"] or "").lower(), ("", 1.0))
    factor *= _SCALES[(found["scale"] or "").lower()]
    sign = -1.0 if found["sign"] in ("-", "−") else 1.0
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2]) if "." in digits or factor > 1 or unit else 0.0
    approximate = bool(found["approximate"])
    text = found.group().strip()
    # "~16.0" promises less than "16.0": a whole unit of its last digit.
    return Quantity(
        sign * float(digits) * factor,
        unit,
        half * factor * (2.0 if approximate else 1.0),
        found["sign"] in ("+", "-", "−"),
        approximate,
        text,
        found.end() - len(found.group().lstrip()),
        found.end(),
    )


def change_percent(before: Quantity, after: Quantity) -> tuple[float, float, float]:
    """Change in percent of `before`, with the least and the most that the roundings allow."""
    corners = [100.0 * (b - a) / a for a in (before.low, before.high) for b in (after.low, after.high) if a]
    middle = 100.0 * (after.value - before.value) / before.value if before.value else float("inf")
    return middle, min(corners, default=middle), max(corners, default=middle)


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.2f} GB"
