"""Listens to the Windows counters while a run lasts: pdh.dll asked by a thread or, from WSL2, one long-lived
helper process read by a thread.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from splatmeter.lab.monitor.pdh import PdhError, PdhQuery, open_query
from splatmeter.lab.monitor.windows import (
    AdapterMemory,
    TypeperfParser,
    cim_command,
    cim_line,
    is_wsl,
    typeperf_command,
)


class AdapterCounters:
    """Samples of all adapters, about one a second; `samples` stays empty where nothing can be observed."""

    caveat = ""
    """What the user must know of figures that came this way."""

    def __init__(self) -> None:
        self.samples: list[AdapterMemory] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def start(self) -> AdapterCounters:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stopping.set()
        self._interrupt()
        self._thread.join(5.0)

    def wait_for_the_first(self, seconds: float = 4.0) -> None:
        """Until a sample came: what is read before a program starts is the level at rest."""
        end = time.perf_counter() + seconds
        while not self.samples and self._thread.is_alive() and time.perf_counter() < end:
            time.sleep(0.02)

    def _heard(self, samples: Iterable[AdapterMemory]) -> None:
        now = time.perf_counter()
        self.samples += [replace(sample, seconds=now) for sample in samples]

    def _listen(self) -> None:
        """Fills `samples` until told to stop."""
        raise NotImplementedError

    def _interrupt(self) -> None:
        """Ends a wait of `_listen`."""

    def busiest(self) -> list[AdapterMemory]:
        """The samples of the adapter that used most: the one that trains, not the one that draws the
        desktop.
        """
        totals: dict[str, int] = {}
        for sample in self.samples:
            totals[sample.adapter] = max(totals.get(sample.adapter, 0), sample.dedicated or 0)
        chosen = max(totals, key=lambda adapter: totals[adapter], default="")
        return [sample for sample in self.samples if sample.adapter == chosen]


class PdhCounters(AdapterCounters):
    """On Windows itself."""

    caveat = "read through pdh.dll by code that was tested with a stand-in and has never run on Windows"

    def __init__(self, query: PdhQuery, seconds: float = 1.0) -> None:
        super().__init__()
        self._query = query
        self._seconds = seconds

    def _listen(self) -> None:
        """A sample that fails is left out: the card may be gone for a moment, as after a driver's restart."""
        while True:
            with contextlib.suppress(PdhError):
                self._heard(self._query.sample())
            if self._stopping.wait(self._seconds):
                return self._query.close()


class HelperCounters(AdapterCounters):
    """From WSL2, and on Windows where pdh.dll cannot be asked."""

    caveat = "read through Windows' typeperf or PowerShell by code that was tested with printed lines only"

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        super().__init__()
        self._commands = [tuple(command) for command in commands]
        self._process: subprocess.Popen[str] | None = None

    def _interrupt(self) -> None:
        process = self._process
        if process:
            with contextlib.suppress(OSError):
                process.kill()

    def _listen(self) -> None:
        """typeperf first; where its names are translated it is useless, and the next command takes over."""
        for command in self._commands:
            if self._stopping.is_set() or not self._follow(command):
                return

    def _follow(self, command: tuple[str, ...]) -> bool:
        """True if the next command should be tried."""
        parser = TypeperfParser()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
            )
        except OSError:
            return True
        with process:
            self._process = process
            assert process.stdout is not None
            for line in process.stdout:
                self._heard(cim_line(line) if line.lstrip().startswith(("{", "[")) else parser.line(line))
                if parser.localised or self._stopping.is_set():
                    process.kill()
        return not self.samples


def adapter_counters() -> AdapterCounters | None:
    """None where there are no such counters: everywhere but on Windows and WSL2."""
    if sys.platform != "win32" and not is_wsl():
        return None
    query = open_query()
    if query is not None:
        return PdhCounters(query)
    commands = [command for command in (typeperf_command(), cim_command()) if shutil.which(command[0])]
    return HelperCounters(commands) if commands else None
