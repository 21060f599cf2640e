"""JSON files that are either whole or not there, whatever is killed in between."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splatmeter.errors import OutputError
from splatmeter.files import atomic


def write_text(path: Path, text: str) -> None:
    """Into a folder that exists: the lab makes its own folders, and a mistyped path of others is refused."""
    if not path.parent.is_dir():
        raise OutputError(f"Cannot write {path}: there is no folder {path.parent}. Make it first.")
    atomic.write_text(path, text)


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
