"""Our trainer with a monitor inside its loop, as the user's pynvml phase had one: --every N, then the options
of `splatmeter train`.

A sample is what such monitors take: unique and resident memory of the process (a walk over its page tables),
load of every core, and the card where NVML finds one. It is appended to a CSV file beside the model.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from splatmeter.cli import main
from splatmeter.train.step import Step


def card_bytes() -> str:
    """Used on the first card; empty where there is none."""
    with suppress(Exception):
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)
    return ""


def monitored(every: int, file: Path) -> Any:
    original = Step.__call__
    process = psutil.Process()

    def step(self: Step, state: Any) -> Any:
        loss = original(self, state)
        if state.step % every == 0:
            memory = process.memory_full_info()
            cores = " ".join(f"{share:.0f}" for share in psutil.cpu_percent(percpu=True))
            with file.open("a", encoding="utf-8") as lines:
                lines.write(f"{state.step},{memory.rss},{memory.uss},{cores},{card_bytes()}\n")
        return loss

    return step


if __name__ == "__main__":
    words = sys.argv[1:]
    place = words.index("--every")
    every = int(words[place + 1])
    words = words[:place] + words[place + 2 :]
    output = Path(words[words.index("-m") + 1])
    Step.__call__ = monitored(every, output.with_name("monitor.csv"))
    sys.exit(main.main(["train", *words]))
