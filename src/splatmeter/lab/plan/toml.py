"""Just enough TOML to write plans that people edit; reading is the standard library's."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, MissingFile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def value(item: Any) -> str:
    """One TOML value. JSON strings are TOML basic strings, once DEL and lone surrogates are out of the
    way.
    """
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, (int, float)):
        return repr(item)
    if isinstance(item, Mapping):
        return (
            "{ " + ", ".join(f"{_text(str(k))} = {value(v)}" for k, v in item.items()) + " }"
            if item
            else "{}"
        )
    if isinstance(item, Sequence) and not isinstance(item, str):
        return "[" + ", ".join(value(part) for part in item) + "]"
    return _text(str(item))


def _text(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise MissingFile(f"{path} does not exist; `splatmeter lab init` makes a new lab") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(
            f"{path} is not valid TOML: {problem}. Correct it by hand; nothing was changed"
        ) from None
