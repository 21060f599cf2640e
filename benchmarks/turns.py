"""Whole trainings that take turns: one works for some seconds, then the next, so that the machine's drift
hits all.

    python benchmarks/turns.py --lock FILE --events FILE -- -s SCENE -m OUT ...      our trainer
    python benchmarks/turns.py --lock FILE --yardstick TRAIN_GARDEN.PY -- dens ...   the yardstick's

Whoever holds the lock works. Ours gives it up between steps, where the training clock stands still; the
yardstick has the same rule built in (every 200 s of time.time, which runs faster here: its own clock is
another one).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

YARDSTICK_TURN = 200.0
PAUSE = 1.5
"""Seconds after giving up the lock, so that somebody else gets it."""
LOOK = 5.0


# ---- children ---------------------------------------------------------------------------------------------
def train_in_turns(words: list[str], lock: Path, events: Path, seconds: float, target: float | None) -> None:
    """Our trainer; ends early once an evaluation reaches the target PSNR."""
    from splatmeter.backends.registry import backend
    from splatmeter.cli.train import parse
    from splatmeter.events import Evaluated, to_line
    from splatmeter.train.loop import train

    chosen = parse(words)
    with lock.open("a") as file, events.open("w", buffering=1) as lines:
        running = train(chosen.config(), backend("native", chosen.threads))
        lines.write(to_line(next(running)) + "\n")  # everything is loaded
        fcntl.flock(file, fcntl.LOCK_EX)
        held = time.monotonic()
        for event in running:
            lines.write(to_line(event) + "\n")
            tested = isinstance(event, Evaluated) and event.split == "test"
            if tested and target is not None and event.metrics["psnr"] >= target:
                running.close()
                return
            if time.monotonic() - held > seconds:
                fcntl.flock(file, fcntl.LOCK_UN)
                time.sleep(PAUSE)
                fcntl.flock(file, fcntl.LOCK_EX)
                held = time.monotonic()


def yardstick_in_turns(script: Path, words: list[str], seconds: float) -> None:
    """Its own lock lies in $YARDSTICK_OUT."""
    real, begin = time.time, time.time()
    time.time = lambda: begin + (real() - begin) * YARDSTICK_TURN / seconds
    sys.argv = [str(script), *words]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")


# ---- the parent -------------------------------------------------------------------------------------------
@dataclass
class Watched:
    """How quiet the machine was while the children worked."""

    looks: int = 0
    noisy: int = 0
    codes: dict[str, int] = field(default_factory=dict)

    most_foreign: float = 0.0
    """Share of the processor that others may take in a look."""

    @property
    def said(self) -> str:
        looks = f"{self.noisy} of {self.looks} looks ({LOOK:.0f} s each)"
        return f"foreign CPU was {self.most_foreign:.0%} or more in {looks}"

    @property
    def quiet(self) -> bool:
        return self.noisy <= 0.05 * self.looks


def run_in_turns(
    children: dict[str, Sequence[str]],
    folder: Path,
    environment: dict[str, str],
    interpreters: dict[str, str] | None = None,
) -> Watched:
    """Starts all, lets them begin once all have loaded, waits for all; they print to FOLDER/NAME.log.
    `interpreters`: of children that have another environment than this one."""
    from measuring import MOST_FOREIGN, ForeignCpu  # not above: children may be of another revision

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # the children end with it
    running, watched = {}, Watched(most_foreign=MOST_FOREIGN)
    lock = (folder / "lock").open("a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    for name, words in children.items():
        log = (folder / f"{name}.log").open("w")
        running[name] = subprocess.Popen(
            [(interpreters or {}).get(name, sys.executable), __file__, *words],
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
        )
    try:
        wait_until_idle([child.pid for child in running.values()])
        fcntl.flock(lock, fcntl.LOCK_UN)
        while any(child.poll() is None for child in running.values()):
            alive = [child.pid for child in running.values() if child.poll() is None]
            foreign = ForeignCpu(alive)
            time.sleep(LOOK)
            if all(child.poll() is None for child in running.values() if child.pid in alive):
                watched.looks += 1
                watched.noisy += foreign.share() >= MOST_FOREIGN
    finally:
        for child in running.values():
            if child.poll() is None:
                child.terminate()
    watched.codes = {name: child.returncode for name, child in running.items()}
    for name, code in watched.codes.items():
        if code:
            sys.exit(f"{name} ended with {code}; see {folder / name}.log")
    return watched


def wait_until_idle(children: Sequence[int]) -> None:
    """They wait for the lock: none of them uses the processor any more."""
    processes = [psutil.Process(child) for child in children]
    time.sleep(LOOK)
    while True:
        before = [sum(process.cpu_times()[:2]) for process in processes]
        time.sleep(2.0)
        used = [sum(process.cpu_times()[:2]) for process in processes]
        if all(now - then < 0.05 for now, then in zip(used, before, strict=True)):
            return


def evaluations(events: Path) -> dict[int, dict[str, float]]:
    """Step -> seconds of the training clock, PSNR of the test views (mean, worst), Gaussians."""
    clocks: dict[int, tuple[float, int]] = {}
    found: dict[int, dict[str, float]] = {}
    for line in events.read_text("utf-8").splitlines():
        record = json.loads(line)
        if record["event"] == "progress":
            clocks[record["step"]] = record["clock_seconds"], record["gaussians"]
        elif record["event"] == "evaluated" and record["split"] == "test":
            seconds, gaussians = clocks.get(record["step"], (float("nan"), 0))
            worst = min(view["psnr"] for view in record["per_view"].values())
            entry = {"seconds": seconds, "gaussians": gaussians, "worst": worst}
            found[record["step"]] = {**entry, "psnr": record["metrics"]["psnr"]}
    return found


def main() -> None:
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0, help="of a turn")
    parser.add_argument("--events", type=Path)
    parser.add_argument("--until-psnr", type=float)
    parser.add_argument("--yardstick", type=Path)
    chosen = parser.parse_args(words[:split])
    if chosen.yardstick:
        yardstick_in_turns(chosen.yardstick, words[split + 1 :], chosen.seconds)
    else:
        rest = words[split + 1 :]
        train_in_turns(rest, chosen.lock, chosen.events, chosen.seconds, chosen.until_psnr)


if __name__ == "__main__":
    main()
