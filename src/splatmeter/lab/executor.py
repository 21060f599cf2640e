"""Starts one fresh process per run and listens: output lines become events, each with the time it arrived."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from splatmeter.errors import MissingFile
from splatmeter.events import Event, Failed, Finished
from splatmeter.lab.patience import Patience
from splatmeter.lab.trainers.adapter import Adapter

GRACE_SECONDS = 5.0
"""How long a trainer may take to save its checkpoint after SIGTERM."""


@dataclass(frozen=True, slots=True)
class Command:
    """An argument list, never a shell string, and what surrounds it."""

    arguments: tuple[str, ...]
    directory: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    terminal: bool = False
    """Give it a pseudo-terminal: only for trainers that hide their progress bar without one."""
    limit_seconds: float = 0.0
    """When it is ended as hanging; 0: never."""
    silence_seconds: float = 0.0
    """How long it may print nothing; 0: as long as it likes."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event and when it came, in seconds since the start of the process."""

    seconds: float
    event: Event


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    code: int
    seconds: float
    cpu_seconds: float = 0.0
    largest_resident_bytes: int = 0
    """ru_maxrss of the largest process of the tree that was waited for; 0 where the system does not tell."""
    page_faults: int = 0
    disk_faults: int = 0
    """Pages that had to be read from the disk."""
    pushed_aside: int = 0
    """How often the system gave its processor to somebody else."""


@dataclass(slots=True)
class Hooks:
    """Who wants to know the process id when it starts, and how it ended."""

    started: Callable[[int], None] = lambda pid: None
    ended: Callable[[ProcessEnd], None] = lambda outcome: None


class Executor(Protocol):
    def run(
        self, command: Command, adapter: Adapter, capture: Path | None, hooks: Hooks
    ) -> Iterator[Arrival]: ...


class Scripted:
    """Replays arrivals with invented times, so that the whole lab is tested without a clock or a trainer."""

    def __init__(self, script: Callable[[Command], Iterable[Arrival]]) -> None:
        self.script = script
        self.commands: list[Command] = []

    def run(
        self, command: Command, adapter: Adapter, capture: Path | None, hooks: Hooks
    ) -> Iterator[Arrival]:
        self.commands.append(command)
        last, code = 0.0, 1
        for arrival in self.script(command):
            last = arrival.seconds
            code = 0 if isinstance(arrival.event, Finished) else 1
            yield arrival
        hooks.ended(ProcessEnd(code, last, last))


@dataclass(frozen=True, slots=True)
class _Chunk:
    seconds: float
    stream: str
    data: bytes
    """Empty: the stream has ended."""


class ChildProcess:
    """One child per run, in its own process group; leaving the iteration ends the group."""

    def run(
        self, command: Command, adapter: Adapter, capture: Path | None, hooks: Hooks
    ) -> Iterator[Arrival]:
        with contextlib.ExitStack() as stack:
            child = stack.enter_context(_Child(command, capture))
            hooks.started(child.pid)
            splitters = {"stdout": LineSplitter(), "stderr": LineSplitter()}
            said_end = False
            patience = Patience(command.limit_seconds, command.silence_seconds)
            for chunk in child.chunks(patience):
                splitter = splitters[chunk.stream]
                for line in splitter.feed(chunk.data) if chunk.data else splitter.rest():
                    for event in adapter.line(chunk.stream, line, chunk.seconds):
                        said_end = said_end or isinstance(event, (Finished, Failed))
                        patience.event(chunk.seconds)
                        yield Arrival(chunk.seconds, event)
            outcome = child.outcome()
            hooks.ended(outcome)
            if child.hung:
                step = max((getattr(e, "step", 0) for e in adapter.end(1, outcome.seconds)), default=0)
                yield Arrival(outcome.seconds, Failed(step, f"it was ended: {child.hung}"))
            elif not said_end:
                for event in adapter.end(outcome.code, outcome.seconds):
                    yield Arrival(outcome.seconds, event)


class LineSplitter:
    r"""Cuts at \n and at \r, so that each frame of a progress bar is a line of its own."""

    LONGEST = 1 << 24

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> Iterator[str]:
        *whole, self._kept = (self._kept + data).replace(b"\r", b"\n").split(b"\n")
        if len(self._kept) > self.LONGEST:
            whole.append(self._kept)
            self._kept = b""
        for line in whole:
            if line:
                yield line.decode("utf-8", "replace")

    def rest(self) -> Iterator[str]:
        yield from self.feed(b"\n")


class _Child:
    """The process, two threads that stamp what it prints, and one that waits for its end."""

    def __init__(self, command: Command, capture: Path | None) -> None:
        self._queue: queue.SimpleQueue[_Chunk] = queue.SimpleQueue()
        self._outcome: ProcessEnd | None = None
        self._ended = threading.Event()
        self.hung = ""
        self._files: list[BinaryIO] = []
        self._readers: list[threading.Thread] = []
        self._start = time.perf_counter()
        channels = [_channel(command.terminal) for _ in range(2)]
        try:
            self._process = _start(command, channels[0][1], channels[1][1])
        except BaseException:
            for reading, _ in channels:
                os.close(reading)
            raise
        finally:
            for _, writing in channels:
                os.close(writing)
        self.pid = self._process.pid
        for (reading, _), name in zip(channels, ("stdout", "stderr"), strict=True):
            file = (capture / f"{name}.txt").open("wb", buffering=0) if capture else None
            self._files += [file] if file else []
            self._readers.append(threading.Thread(target=self._read, args=(reading, name, file), daemon=True))
        self._waiter = threading.Thread(target=self._wait, daemon=True)

    def __enter__(self) -> _Child:
        for thread in (*self._readers, self._waiter):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended.is_set():
            end_group(self.pid, self._ended)
        self._waiter.join()
        for reader in self._readers:
            reader.join(GRACE_SECONDS)  # a grandchild in a session of its own may hold the pipe for ever
        for file in self._files:
            file.close()

    def chunks(self, patience: Patience) -> Iterator[_Chunk]:
        open_streams = len(self._readers)
        while open_streams:
            if not self.hung and (reason := patience.over(time.perf_counter() - self._start)):
                self.hung = reason
                end_group(self.pid, self._ended)
            try:
                chunk = self._queue.get(timeout=GRACE_SECONDS if self._ended.is_set() else 0.5)
            except queue.Empty:
                if self._ended.is_set() and self._queue.empty():
                    return
                continue
            open_streams -= not chunk.data
            patience.heard(chunk.seconds)
            yield chunk

    def outcome(self) -> ProcessEnd:
        self._ended.wait()
        assert self._outcome is not None
        return self._outcome

    def _read(self, descriptor: int, name: str, file: BinaryIO | None) -> None:
        data = b"."
        while data:
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:  # a pseudo-terminal ends with EIO
                data = b""
            self._queue.put(_Chunk(time.perf_counter() - self._start, name, data))
            if file and data:
                with contextlib.suppress(OSError, ValueError):
                    file.write(data)
        os.close(descriptor)

    def _wait(self) -> None:
        code, told = _reap(self._process)
        self._outcome = ProcessEnd(code, time.perf_counter() - self._start, **told)
        self._ended.set()
        signal_group(self.pid, "SIGKILL")  # whatever it left behind must not disturb the next run


def _channel(terminal: bool) -> tuple[int, int]:
    if terminal and os.name == "posix":
        import pty

        return pty.openpty()
    return os.pipe()


def _start(command: Command, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"} | dict(command.environment)
    try:
        return subprocess.Popen(
            (*_dies_with_us(command), *command.arguments),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=command.directory,
            env=environment,
            start_new_session=True,
        )
    except FileNotFoundError:
        missing = (
            command.directory
            if command.directory and not command.directory.is_dir()
            else command.arguments[0]
        )
        raise MissingFile(
            f"{missing} does not exist; correct the command of the phase or protocol."
        ) from None
    except OSError as problem:
        raise MissingFile(
            f"{command.arguments[0]} cannot be started: {problem.strerror};"
            " correct the command of the phase or protocol."
        ) from None


def _dies_with_us(command: Command) -> tuple[str, ...]:
    """Linux ends the child when this process is killed, even one that slices have stopped.

    Elsewhere an orphan ends at its next print, or when the session is resumed.
    """
    tool = shutil.which("setpriv") if sys.platform.startswith("linux") else None
    name = command.arguments[0]
    found = shutil.which(str((command.directory or Path()) / name) if os.sep in name else name)
    return (tool, "--pdeathsig", "KILL", "--") if tool and found else ()


def _reap(process: subprocess.Popen[bytes]) -> tuple[int, dict[str, Any]]:
    """The exit code, and what the system counted for the process; wait4 tells what Popen.wait does not."""
    if not hasattr(os, "wait4"):
        return process.wait(), {}
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    return process.returncode, {
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "largest_resident_bytes": usage.ru_maxrss * unit,
        "page_faults": usage.ru_minflt,
        "disk_faults": usage.ru_majflt,
        "pushed_aside": usage.ru_nivcsw,
    }


def signal_group(leader: int, name: str) -> None:
    """Sends a signal by name to a process group we started; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(leader, getattr(signal, name))
        elif name != "SIGCONT":
            os.kill(leader, signal.SIGTERM)


def end_group(leader: int, ended: threading.Event) -> None:
    """Politely first: a trainer saves its checkpoint on SIGTERM. A stopped one is woken to hear it."""
    signal_group(leader, "SIGTERM")
    signal_group(leader, "SIGCONT")
    if not ended.wait(GRACE_SECONDS):
        signal_group(leader, "SIGKILL")
        ended.wait(GRACE_SECONDS)
