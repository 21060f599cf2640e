"""Who carries out the commands of blocks. A command is the words after `splatmeter`; any machine that sees
the output folder can carry it out. Given again, it goes on where it was; once finished it does nothing.

An executor takes all commands and returns when none is under way any more. Whoever asks it looks for results
in the blocks' folders and not in what it returns: a process that was killed in its last moment may well have
left a whole model, and one that ended well may have done so elsewhere.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from splatmeter.shell import command_text

PARENT = "SPLATMETER_ENDS_WITH"
"""Process whose end is the child's end too."""


@dataclass(frozen=True, slots=True)
class BlockCommand:
    name: str
    words: tuple[str, ...]
    """After `splatmeter`."""
    folder: Path
    """Where the block's run lies; `runs.trained` tells whether it is finished."""


@dataclass(frozen=True, slots=True)
class Ended:
    name: str
    code: int
    """0, the exit code of a failure, or minus the signal that ended it."""


Executor = Callable[[Sequence[BlockCommand]], Sequence[Ended]]


class Interrupted(Exception):
    """Somebody asked us to stop; `number` is the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def one_after_the_other(commands: Sequence[BlockCommand], say: Callable[[str], None] = print) -> list[Ended]:
    """Each in a process of its own, so that all memory comes back between blocks. A block that fails does not
    keep the others from being trained."""
    ended: list[Ended] = []
    for number, command in enumerate(commands, start=1):
        say(f"\n[{number}/{len(commands)}] Block {command.name}\n  {command_text(command.words)}")
        code, stopped = _process([sys.executable, "-m", "splatmeter", *command.words])
        if stopped:
            raise Interrupted(stopped)
        ended.append(Ended(command.name, code))
    return ended


def _process(words: Sequence[str]) -> tuple[int, int]:
    """Its exit code, and the signal that we were asked to stop by, 0 for none.

    The child has a session of its own: Ctrl-C reaches us alone, and it gets the signal from us, once.
    """
    posix = os.name == "posix"
    child = subprocess.Popen(
        list(words), env={**os.environ, PARENT: str(os.getpid())}, start_new_session=posix
    )
    with _passed_on(child) as caught:
        try:
            code = child.wait()
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    return code, caught[0] if caught else 0


@contextmanager
def _passed_on(child: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    caught: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        caught.append(number)
        child.send_signal(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_with_parent() -> None:
    """For a child: when the process that started it is killed, it gets SIGTERM, saves and ends. Where the
    system cannot do that the child trains on, and the same command says which process it is."""
    parent = os.environ.pop(PARENT, "")
    if not parent.isdecimal() or not sys.platform.startswith("linux"):
        return
    import ctypes

    set_signal_of_parents_death = 1
    ctypes.CDLL(None).prctl(set_signal_of_parents_death, int(signal.SIGTERM))
    if os.getppid() != int(parent):  # it was killed before we asked
        os.kill(os.getpid(), signal.SIGTERM)
