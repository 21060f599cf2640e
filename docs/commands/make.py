"""Writes one page per command from its own --help: `python docs/commands/make.py`; a test compares."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
WIDTH = 110
SCENE_ACTIONS = ("from-photos", "undistort", "info", "demo", "city")


def help_of(*words: str) -> str:
    """As a plain terminal of fixed width shows it."""
    plain = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    said = subprocess.run(
        [sys.executable, "-m", "splatmeter", *words, "--help"],
        env={**os.environ, **plain},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        stdin=subprocess.DEVNULL,
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", said.stdout)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def pages() -> dict[str, str]:
    """File name -> content, for every command that can explain itself."""
    from splatmeter.cli.main import COMMANDS

    made: dict[str, str] = {}
    index = ["# Commands", "", "Made from `--help` by `python docs/commands/make.py`.", ""]
    for name, (module, text) in COMMANDS.items():
        if not (FOLDER.parents[1] / "src" / "splatmeter" / "cli" / f"{module}.py").exists():
            continue
        parts = [help_of(name), *(lab_parts() if name == "lab" else [])]
        parts += [help_of(name, action) for action in SCENE_ACTIONS if name == "scene"]
        blocks = "\n\n".join(f"```text\n{part}\n```" for part in parts)
        made[f"{name}.md"] = f"# splatmeter {name}\n\n{blocks}\n"
        index.append(f"- [{name}]({name}.md): {text}")
    made["README.md"] = "\n".join(index) + "\n"
    return made


def lab_parts() -> list[str]:
    """The lab's own commands, straight from its parser."""
    import argparse

    from splatmeter.cli.lab import parser

    os.environ["COLUMNS"] = str(WIDTH)
    actions = parser()._actions
    listed = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
    return [added.format_help().strip() for added in listed.choices.values()]


def main() -> None:
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
