"""Every name that a command line may hold: commands, their parts, and options, as --help tells them."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from splatmeter.cli.main import COMMANDS, main

KEPT = Path(__file__).parent / "kept" / "0.1.0"
SCENE_ACTIONS = ("from-photos", "undistort", "info", "demo", "city")
_LISTED = re.compile(r"^(?:│ |  )(-[\w-]+(?:, -[\w-]+)*)", re.MULTILINE)
_SHORT = re.compile(r"^Short forms: (.+)\.$", re.MULTILINE)


def names_of_today() -> dict[str, list[str]]:
    """'train' -> ['--eval', ...]; 'lab run' -> [...]; 'scene undistort' -> [...]"""
    found = {name: _options(_help(name)) for name in COMMANDS if name != "lab"}
    found |= {f"scene {action}": _options(_help("scene", action)) for action in SCENE_ACTIONS}
    return dict(sorted([*found.items(), *_of_the_lab()]))


def _options(text: str) -> list[str]:
    """Where options stand in the listing, not where sentences mention them."""
    words = ", ".join([*_LISTED.findall(text), *_SHORT.findall(text)]).replace(",", " ").split()
    return sorted({word for word in words if word.startswith("-")})


def _help(*words: str) -> str:
    told = io.StringIO()
    wide = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    with mock.patch.dict(os.environ, wide), contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return re.sub(r"\x1b\[[0-9;]*m", "", told.getvalue())


def _of_the_lab() -> Iterator[tuple[str, list[str]]]:
    from splatmeter.cli.lab import parser

    def walk(name: str, one: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
        yield name, sorted(one._option_string_actions)
        for action in one._actions:
            if isinstance(action, argparse._SubParsersAction):
                for part, below in action.choices.items():
                    yield from walk(f"{name} {part}", below)

    yield from walk("lab", parser())
