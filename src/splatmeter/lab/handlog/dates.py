"""Days as people write them, the impossible ones too."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from splatmeter.lab.handlog.quantities import DATE

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_OTHER_MONTHS = {"mär": 3, "mae": 3, "mai": 5, "okt": 10, "dez": 12}


@dataclass(frozen=True, slots=True)
class Day:
    text: str
    start: int
    day: datetime.date | None
    """None if the calendar has no such day."""


def days_in(text: str) -> list[Day]:
    return [Day(found.group(), found.start(), _day(found.group())) for found in DATE.finditer(text[:20_000])]


def _day(text: str) -> datetime.date | None:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if len(numbers) == 3:
        for year, month, day in _readings(text, numbers):
            if (made := _date(year, month, day)) is not None:
                return made
        return None
    name = re.search(r"[a-zäö]{3}", re.sub(r"(?<=\d)(?:st|nd|rd|th)", "", text.lower()))
    spoken = name.group() if name else ""
    month = _OTHER_MONTHS.get(spoken) or (_MONTHS.index(spoken) + 1 if spoken in _MONTHS else 0)
    return _date(numbers[-1], month, numbers[0])


def _readings(text: str, numbers: list[int]) -> list[tuple[int, int, int]]:
    """Year, month, day; 03/04/2026 may be either, and only what is none of them is impossible."""
    a, b, c = numbers
    if len(re.split(r"\D", text)[0]) == 4:
        return [(a, b, c)]
    year = c if c > 99 else 2000 + c
    return [(year, b, a), *([(year, a, b)] if "/" in text else [])]


def _date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except (ValueError, OverflowError):
        return None
