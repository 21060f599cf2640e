"""Listens to the Windows counters while a run lasts: one long-lived helper process, read by a thread."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence

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

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        self.samples: list[AdapterMemory] = []
        self._commands = [tuple(command) for command in commands]
        self._process: subprocess.Popen[str] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def start(self) -> AdapterCounters:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stopping.set()
        process = self._process
        if process:
            with contextlib.suppress(OSError):
                process.kill()
        self._thread.join(5.0)

    def busiest(self) -> list[AdapterMemory]:
        """The samples of the adapter that used most: the one that trains, not the one that draws the
        desktop.
        """
        totals: dict[str, int] = {}
        for sample in self.samples:
            totals[sample.adapter] = max(totals.get(sample.adapter, 0), sample.dedicated or 0)
        chosen = max(totals, key=lambda adapter: totals[adapter], default="")
        return [sample for sample in self.samples if sample.adapter == chosen]

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
    commands = [command for command in (typeperf_command(), cim_command()) if shutil.which(command[0])]
    return AdapterCounters(commands) if commands else None
