"""Git and other programs asked for an answer, with their complaint as one sentence."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from splatmeter.errors import InputError, MissingFile


def git(directory: Path, *arguments: str, text: str | None = None) -> str:
    return call(("git", *arguments), directory, text).strip()


def asked(directory: Path, *arguments: str) -> str | None:
    """What git answers, or None where it refuses."""
    try:
        return git(directory, *arguments)
    except (InputError, MissingFile):
        return None


def call(arguments: tuple[str, ...], directory: Path, text: str | None = None) -> str:
    """An empty input rather than the terminal's, and no prompt: nothing here may wait for a person."""
    try:
        answer = subprocess.run(
            arguments,
            cwd=directory,
            env=os.environ | {"GIT_TERMINAL_PROMPT": "0"},
            input=text or "",
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as problem:
        raise MissingFile(
            f"{arguments[0]} cannot be started in {directory}: {problem.strerror};"
            " install it, or correct the path."
        ) from None
    if answer.returncode:
        last = (answer.stderr or answer.stdout).strip().splitlines()[-1:] or ["no message"]
        raise InputError(f"`{' '.join(arguments[:6])}` failed in {directory}: {last[0].rstrip('.')}.")
    return answer.stdout
