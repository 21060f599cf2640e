"""Numbers as they stand in prose, with their unit and with how exactly they were written.

A number is the interval of everything that rounds to it; two statements contradict each other only if no pair
of numbers inside their intervals agrees.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_UNITS = {
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
    "percent": ("%", 1.0),
    "prozent": ("%", 1.0),
    "x": ("x", 1.0),
    "×": ("x", 1.0),
    "fach": ("x", 1.0),
    "fold": ("x", 1.0),
    "times": ("x", 1.0),
    "mal": ("x", 1.0),
}
_DURATIONS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "mio": 1e6, "mill": 1e6, "tsd": 1e3, "thou": 1e3}
_STEP = r"(?:iterations?|iterationen|iters?|its?|steps?|schritte?n?)"
_PER_SECOND = (
    rf"{_STEP}\s?(?:/|per\s|pro\s|je\s|a\s|each\s|in der\s|die\s)\s?(?:seconds?|sekunde|sec|sek|s)(?!\w)"
)
_PER_STEP = (
    rf"(?:ms|µs|us|s|secs?|sek|seconds?|millise[ck]\w{{2,5}}|sekunden?)\s?(?:/|per\s|pro\s|"
    rf"je\s)\s?{_STEP}(?!\w)"
)
_TIME = r"(?:hours?|stunden?|std|hrs?|h|minutes?|minuten?|mins?|m|seconds?|sekunden?|secs?|s|ms)(?![\w/])"
_QUANTITY = re.compile(
    r"(?P<approximate>~|≈|\babout |\baround |\bca\. |\brund |\betwa )?\s?"
    r"(?<![\w.])(?P<sign>[+\-−–±])?(?<![\w.])"
    r"(?P<number>\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,12})?|\d{1,15}(?:\.\d{1,12})?(?:e[+-]?\d{1,2}(?!\w))?)"
    r"(?:\s?(?P<scale>[Kk](?![A-Za-z])|M(?![A-Za-z])|(?:million|mio|mill|thousand|tsd)(?:en|"
    r"\.)?(?!\w)))?[\s-]?"
    rf"(?P<unit>{_PER_SECOND}|{_PER_STEP}|[kKMGT]i?B(?!\w)|dB(?!\w)|%|(?:percent|prozent|fold|fach|times|"
    rf"mal)(?!\w)|[x×](?![\w(])|"
    rf"{_TIME})?(?![\w]|\.\d|,\d{{3}})",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?<![\d:.])(\d{1,3}):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:\s?(h|min|std)\b)?")
_LONG_DURATION = re.compile(
    r"(?<![\w.])(?:(\d{1,3})\s?(?:hours?|stunden?|std\.?|hrs?|h)[\s,]{0,2}(?:and |und )?)?"
    r"(\d{1,3})\s?(?:minutes?|minuten|mins?|min|m)[\s,]{0,2}(?:and |und )?(\d{1,2})\s?(?:seconds?|sekunden|"
    r"secs?|s)(?!\w)"
    r"|(?<![\w.])(\d{1,3})\s?(?:hours?|stunden?|std\.?|hrs?|h)[\s,]{0,2}(?:and |und )?"
    r"(\d{1,2})\s?(?:minutes?|minuten|mins?|min|m)(?!\w)",
    re.IGNORECASE,
)
DATE = re.compile(
    r"(?<!\d)(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})(?!\d)"
    r"|(?<!\w)\d{1,2}(?:\.|st|nd|rd|th)?\s(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|"
    r"de[cz])\w{0,7}\.?,?\s\d{4}"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w{0,7}\.?\s\d{1,2}(?:st|nd|rd|th)?,?\s\d{4}",
    re.IGNORECASE,
)
LONGEST_TEXT = 6000
"""Nobody's sentence; what stands behind it is not read."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """`value` in the base unit (bytes, it/s, dB, %, x, s, or none); `half` is half of its last digit."""

    value: float
    unit: str
    half: float
    signed: bool
    approximate: bool
    text: str
    start: int = 0
    end: int = 0
    bounds: tuple[float, float] | None = None
    """Least and most of a number that was turned over: 0.02 s/it is not 50 it/s ± something."""
    per_step: bool = False
    """Written as time per iteration."""

    @property
    def low(self) -> float:
        return self.bounds[0] if self.bounds else self.value - self.half

    @property
    def high(self) -> float:
        return self.bounds[1] if self.bounds else self.value + self.half

    def agrees(self, other: Quantity) -> bool:
        """Could both be roundings of one number?"""
        slack = 1e-12 * max(abs(self.value), abs(other.value))
        return self.low <= other.high + slack and other.low <= self.high + slack


def quantities(text: str) -> list[Quantity]:
    """All numbers of a plain text in order; parts of a word, a date or a version are not numbers."""
    text = text[:LONGEST_TEXT]
    taken = [(found.start(), found.end()) for found in DATE.finditer(text)]
    result: list[Quantity] = []
    for pattern, read in ((_LONG_DURATION, _long_duration), (_CLOCK, _clock)):
        for found in pattern.finditer(text):
            if not _overlaps(found, taken):
                result.append(read(found))
                taken.append((found.start(), found.end()))
    for found in _QUANTITY.finditer(text):
        if not _overlaps(found, taken):
            result.append(_quantity(found))
    return sorted(result, key=lambda quantity: quantity.start)


def first_quantity(text: str, unit: str | None = None) -> Quantity | None:
    return next((q for q in quantities(text) if unit is None or q.unit == unit), None)


def with_unit(quantity: Quantity, written: str) -> Quantity:
    """A bare number that stands under a heading such as 'ms/it' or 'peak MiB'."""
    made = first_quantity(f"{quantity.text} {written}")
    return replace(made, start=quantity.start, end=quantity.end) if made and made.unit else quantity


def written_like(quantity: Quantity, other: Quantity) -> Quantity:
    """'2.05 instead of 2.41 million', '62 to 104 it/s': one unit, one scale for both."""
    suffix = re.sub(r"^[^A-Za-z%µ]*", "", other.text)
    made = first_quantity(f"{quantity.text} {suffix}") if suffix else None
    return replace(made, start=quantity.start, end=quantity.end) if made else quantity


def _overlaps(found: re.Match[str], taken: list[tuple[int, int]]) -> bool:
    start, end = found.start("number") if "number" in found.groupdict() else found.start(), found.end()
    return any(start < stop and begin < end for begin, stop in taken)


def _long_duration(found: re.Match[str]) -> Quantity:
    hours, minutes, seconds, other_hours, other_minutes = (int(group or 0) for group in found.groups())
    value = 3600 * (hours + other_hours) + 60 * (minutes + other_minutes) + seconds
    half = 0.5 if found[3] else 30.0
    return Quantity(float(value), "s", half, False, False, found.group(), found.start(), found.end())


def _clock(found: re.Match[str]) -> Quantity:
    first, second, third = (int(group or 0) for group in found.groups()[:3])
    of_hours = found[3] is not None or found[4] in ("h", "std")
    value = 3600 * first + 60 * second + third if of_hours else 60 * first + second
    half = 30.0 if of_hours and found[3] is None else 0.5
    return Quantity(float(value), "s", half, False, False, found.group(), found.start(), found.end())


def _quantity(found: re.Match[str]) -> Quantity:
    digits = found["number"].replace(",", "")
    written = re.sub(r"\s", "", (found["unit"] or "").lower())
    unit, factor, turned = _unit(written)
    factor *= _SCALES.get((found["scale"] or "").lower().rstrip(".")[:4].removesuffix("e"), 1.0)
    sign = -1.0 if found["sign"] in ("-", "−", "–") else 1.0
    decimals, _, exponent = digits.lower().partition(".")[2].partition("e")
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(decimals)) if "." in digits or factor > 1 or unit else 0.0
    approximate = bool(found["approximate"])
    # "~16.0" promises less than "16.0": a whole unit of its last digit.
    half *= factor * (2.0 if approximate else 1.0)
    made = Quantity(
        sign * float(digits) * factor,
        unit,
        half,
        found["sign"] in ("+", "-", "−", "–"),
        approximate,
        found.group().strip(),
        found.end() - len(found.group().lstrip()),
        found.end(),
    )
    return _turned(made) if turned else made


def _unit(written: str) -> tuple[str, float, bool]:
    """Its name, its size, and whether it is time per step."""
    if written in _UNITS:
        return (*_UNITS[written], False)
    if not written:
        return "", 1.0, False
    per_step = re.match(r"(ms|millise|µs|us|s|sec|sek)\w*?(?:/|per|pro|je)(?:it|st|sch)", written)
    if per_step:
        return "it/s", {"ms": 1e-3, "millise": 1e-3, "µs": 1e-6, "us": 1e-6}.get(per_step[1], 1.0), True
    if re.match(r"(?:it|st(?!u|d)|sch)\w*(?:/|per|pro|je|a|each|inder|die)s", written):
        return "it/s", 1.0, False
    return (
        "s",
        _DURATIONS["ms" if written == "ms" else written[0] if not written.startswith("st") else "h"],
        False,
    )


def _turned(quantity: Quantity) -> Quantity:
    """Time per step as steps per time; a difference of such times stays what it is, in seconds."""
    if quantity.signed or quantity.value <= 0:
        return replace(quantity, unit="s/it", per_step=True)
    low = 1 / (quantity.value + quantity.half)
    high = 1 / max(quantity.value - quantity.half, quantity.value / 1e6)
    value = 1 / quantity.value
    return replace(quantity, value=value, half=(high - low) / 2, bounds=(low, high), per_step=True)


def change_percent(before: Quantity, after: Quantity) -> tuple[float, float, float]:
    """Change in percent of `before`, with the least and the most that the roundings allow."""
    corners = [100.0 * (b - a) / a for a in (before.low, before.high) for b in (after.low, after.high) if a]
    middle = 100.0 * (after.value - before.value) / before.value if before.value else float("inf")
    return middle, min(corners, default=middle), max(corners, default=middle)


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.2f} GB"
