"""JSON files that are either whole or not there, whatever is killed in between."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splatmeter.files.atomic import write_text as write_text


def write_json(path: Path, record: Any) -> None:
    write_text(path, json.dumps(finite(record), ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def read_json(path: Path) -> Any:
    """None for a file that is missing or not whole: evidence that was never finished."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def finite(value: Any) -> Any:
    """JSON has no NaN: not-a-number becomes null rather than an unreadable file."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)
