"""Commands as a person can paste them: every word quoted for the shell of this system."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence


def command_text(words: Sequence[str]) -> str:
    """`splatmeter` and the words after it, on one line whatever the names of files hold."""
    if os.name == "nt":
        return subprocess.list2cmdline(["splatmeter", *words])
    return " ".join(["splatmeter", *map(quoted, words)])


def quoted(word: str) -> str:
    """Line feeds, escape codes and bytes that are no text as $'\\n': bash, zsh and ksh understand that."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(_escaped(character) for character in word) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))
