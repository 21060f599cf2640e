"""Listens to the Windows counters while a run lasts: pdh.dll asked by a thread or, from WSL2, one long-lived
helper process read by a thread.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence

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

    def __init__(self, query: PdhQuery, seconds: float = 1.0) -> None:
        super().__init__()
        self._query = query
        self._seconds = seconds

    def _listen(self) -> None:
        """A sample that fails is left out: the card may be gone for a moment, as after a driver's restart."""
        while True:
            with contextlib.suppress(PdhError):
                self.samples += self._query.sample()
            if self._stopping.wait(self._seconds):
                return self._query.close()


class HelperCounters(AdapterCounters):
    """From WSL2, and on Windows where pdh.dll cannot be asked."""

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
                self.samples += cim_line(line) if line.lstrip().startswith(("{", "[")) else parser.line(line)
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
