"""`splatmeter --help` answers at once: nothing heavy is imported before a command is chosen."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

HEAVY = {"numpy", "torch", "tyro", "rich", "PIL", "scipy", "psutil", "safetensors"}


def imported(*words: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "splatmeter", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = re.findall(r"^import time:.*\|\s+(\S+)$", ended.stderr, re.MULTILINE)
    assert lines, "Python told no import times"
    return {line.partition(".")[0] for line in lines}


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["lab", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    assert not imported(*words) & HEAVY


def test_help_names_every_command() -> None:
    from splatmeter.cli.main import COMMANDS, parser

    text = parser().format_help()
    assert all(re.search(rf"^  {name} ", text, re.MULTILINE) for name in COMMANDS)
