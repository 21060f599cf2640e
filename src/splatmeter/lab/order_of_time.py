"""What came before what. Clocks step back, people travel, summer time ends: times are kept in UTC, and order
comes from numbers that only grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

_BEFORE_ALL_NUMBERS = 1e12


def utc_now() -> str:
    """2026-11-16T14:15:22.123456Z"""
    return _text(datetime.now(timezone.utc))


def utc_text(seconds: float) -> str:
    return _text(datetime.fromtimestamp(seconds, timezone.utc))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    """Seconds since 1970; a time without a zone (older files) is taken as UTC, nonsense as 0."""
    head = text.split(" ")[0].replace("Z", "+00:00")
    if len(head) > 5 and head[-5] in "+-" and head[-4:].isdigit():
        head = f"{head[:-2]}:{head[-2:]}"  # Python 3.10 reads +01:00 and not +0100
    try:
        moment = datetime.fromisoformat(head)
    except ValueError:
        return 0.0
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return zoned.timestamp()


def place_in_order(session: Mapping[str, Any]) -> float:
    """By sequence number; sessions of older versions have none and come first, by their time in UTC."""
    number = session.get("sequence")
    if isinstance(number, int) and number > 0:
        return float(number)
    return seconds_of(str(session.get("created", ""))) - _BEFORE_ALL_NUMBERS
