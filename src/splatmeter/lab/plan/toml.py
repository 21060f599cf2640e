"""Plans that people edit: read by the standard library, written so that their comments and order stay."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit

from splatmeter.errors import InputError, MissingFile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def toml_value(item: Any) -> str:
    """One value as TOML spells it."""
    return _item(item).as_string()


def edited(text: str, record: Mapping[str, Any]) -> str:
    """The text of a file with these values at its top level; what did not change stays as it was typed."""
    document = tomlkit.parse(text)
    before = document.unwrap()
    for key in before.keys() - record.keys():
        del document[key]
    for key, value in record.items():
        if key not in before or before[key] != _plain(value):
            document[key] = _item(value)
    return tomlkit.dumps(document)


def _item(item: Any) -> Any:
    if isinstance(item, Mapping):
        table = tomlkit.inline_table()
        table.update({_clean(str(key)): _item(value) for key, value in item.items()})
        return table
    return tomlkit.item(_plain(item))


def _plain(item: Any) -> Any:
    """As TOML knows it: lists instead of tuples, and text without lone surrogates."""
    if isinstance(item, Mapping):
        return {_clean(str(key)): _plain(value) for key, value in item.items()}
    if isinstance(item, Sequence) and not isinstance(item, str):
        return [_plain(part) for part in item]
    return item if isinstance(item, (bool, int, float)) else _clean(str(item))


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise MissingFile(f"{path} does not exist; `splatmeter lab init` makes a new lab.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(
            f"{path} is not valid TOML: {problem}. Correct it by hand; nothing was changed."
        ) from None
