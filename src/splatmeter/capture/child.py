"""Starts the child process, passes on what it tells, and ends it with us: the library in it may abort."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splatmeter import errors
from splatmeter.capture.work import Work
from splatmeter.units import bytes_text

Hear = Callable[[dict[str, Any]], None]

SECONDS_TO_END = 5.0
LITTLE_ROOM = 16 * 2**20
"""Bytes free on a disk below which it counts as full."""


class ChildDied(errors.InputError):
    """It did not say why: the library aborted, or somebody ended it. What it finished is worth keeping."""


def run_child(task: str, work: Work, hear: Hear, command: list[str] | None = None) -> None:
    """Returns when the child has finished its task; its expected failures become ours.

    `command` replaces the program, for tests. Ctrl-C reaches us alone: the child has a session of its own.
    """
    program = command or [sys.executable, "-m", "splatmeter.capture.worker"]
    with work.log.open("ab") as log:
        child = subprocess.Popen(
            [*program, task, str(work.root)],
            stdin=subprocess.PIPE,  # held open: its end tells the child that we are gone
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=os.name == "posix",
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    stage, failure = "", None
    try:
        assert child.stdout is not None
        for line in child.stdout:
            message = _parsed(line)
            stage = message.get("stage", stage)
            if "error" in message:
                failure = message
            elif message:
                hear(message)
        code = child.wait()
    finally:
        _end(child)
    if failure is not None:
        raise _expected(failure)
    if code:
        raise ChildDied(_died(code, stage, work.log))


def _parsed(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _expected(failure: dict[str, Any]) -> errors.SplatmeterError:
    kind = getattr(errors, str(failure["error"]), errors.InputError)
    if (
        not (isinstance(kind, type) and issubclass(kind, errors.SplatmeterError))
        or kind is errors.MissingExtra
    ):
        kind = errors.InputError
    return kind(str(failure["message"]))


def _died(code: int, stage: str, log: Path) -> str:
    what = f"was ended by signal {-code} ({_signal_name(-code)})" if code < 0 else f"ended with code {code}"
    return (
        f"The process that does the work {what} during {stage or 'its start'}.{_likely(code, log)} "
        f"Run the same command again to go on; what it said last is in {log}."
    )


def _likely(code: int, log: Path) -> str:
    """The library aborts where it cannot write, and says nothing that a person could use."""
    free = shutil.disk_usage(log.parent).free
    if free < LITTLE_ROOM:
        return f" Only {bytes_text(free)} are free on that disk: make room."
    return " Memory may have run out." if code == -9 else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _end(child: subprocess.Popen[str]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
