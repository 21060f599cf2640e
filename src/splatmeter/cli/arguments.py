"""Command lines into dataclasses: both spellings of an option, the original's short flags, short errors."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from typing import TypeVar

from splatmeter.cli.complaints import complaint
from splatmeter.errors import UsageError

Configuration = TypeVar("Configuration")

IGNORED_SWITCHES = ("--convert-shs-python", "--compute-cov3d-python", "--debug", "--detect-anomaly")
IGNORED_VALUES = ("--ip", "--port", "--debug-from", "--data-device")
"""The original's flags that have no meaning here: accepted, so that its command lines keep working."""


def parse(
    cls: type[Configuration],
    prog: str,
    argv: Sequence[str],
    description: str,
    short: Mapping[str, str] | None = None,
) -> Configuration:
    """`cls` filled from `argv`; UsageError (exit code 64) with one sentence when that is impossible.

    `short` maps other spellings to options: {'-s': '--source', '--source_path': '--source'}.
    """
    import tyro

    aliases = {_dashed(name): _dashed(option) for name, option in (short or {}).items()}
    words = normalise(argv, aliases)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return tyro.cli(cls, prog=prog, args=words, description=description + _listing(aliases))
    except SystemExit as ending:
        if not ending.code:
            raise
        raise UsageError(f"{complaint(cls, words, aliases)} See {prog} --help") from None


def without_ignored(words: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        name, equals, _ = word.partition("=")
        known = name.lower()
        if skip:
            skip = False
        elif known in IGNORED_VALUES:
            skip = not equals
        elif known not in IGNORED_SWITCHES:
            kept.append(word)
    return kept


def normalise(argv: Sequence[str], aliases: Mapping[str, str]) -> list[str]:
    """`--white_background` as `--white-background`, `-s x`, `-sx` and `-s=x` as `--source x`."""
    words: list[str] = []
    for word in argv:
        name, equals, value = word.partition("=")
        name = _dashed(name)
        if name in aliases:
            words += [aliases[name], *([value] if equals else [])]
        elif word[:2] in aliases and not word.startswith("--"):
            words += [aliases[word[:2]], word[2:]]
        else:
            words.append(name + equals + value)
    return words


def joined(argv: Sequence[str], option: str) -> list[str]:
    """`--box -1,0 2` as `--box=-1,0,2`: numbers that begin with a minus would be taken for options."""
    words: list[str] = []
    gathering = False
    for word in argv:
        gathering = gathering and all(map(_is_number, word.split(",")))
        if gathering:
            words[-1] += ("=" if words[-1] == option else ",") + word
        else:
            words.append(word)
            gathering = word == option
    return words


def _is_number(word: str) -> bool:
    try:
        float(word or "0")
    except ValueError:
        return False
    return True


def _dashed(name: str) -> str:
    return "--" + name[2:].replace("_", "-") if name.startswith("--") else name


def _listing(aliases: Mapping[str, str]) -> str:
    flags = [f"{name} {option}" for name, option in aliases.items() if not name.startswith("--")]
    return "\n\nShort forms: " + ", ".join(flags) + "." if flags else ""


def options_of(values: object, defaults: Mapping[str, object]) -> list[str]:
    """The words of a command line that say what in `values` is not as in `defaults`."""
    words: list[str] = []
    for name, default in defaults.items():
        value, option = getattr(values, name), "--" + name.replace("_", "-")
        if value != default:
            words += [option] if value is True else [option, str(value)]
    return words
