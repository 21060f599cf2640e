"""Where does the noise between whole runs of the trainer come from: the process, or the minute it ran in?

    python benchmarks/noise_of_a_run.py SCENE --start CHECKPOINT --processes 4 --rounds 12

Several runs of one command are kept alive and take turns, a few seconds each, while the others are stopped.
What belongs to a process (memory layout, huge pages, page faults at its start) stays with it over all turns;
what belongs to the machine's minute goes through all of them. Between the turns stand two controls without
our engine: bare multiply-adds in registers, and copying of memory, on as many threads.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from splatmeter.backends.native import native_engine
from splatmeter.backends.native.limits import measured_flops

REST = 0.5
"""Of a turn's steps as many are not measured before it, because the run was stopped in one of them."""
CONTROL_SECONDS = 1.0
A_TURN = "a turn against its neighbours"


class Trainer:
    """A training process that runs only while it is asked for seconds per step."""

    def __init__(self, command: list[str], folder: Path, steps: int) -> None:
        run = [*command, "-m", str(folder), "--overwrite"]
        self.process = subprocess.Popen(run, stdout=subprocess.PIPE, text=True)
        self.cpu: list[float] = []
        self.steps, self.next = steps, self.after(self.progress()[0] + 2 * steps)[0]
        self.process.send_signal(signal.SIGSTOP)

    def progress(self) -> tuple[int, float]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if '"progress"' in line:
                event = json.loads(line)
                return event["step"], event["clock_seconds"]
        raise SystemExit("The training ended before the last turn: give it more --iterations.")

    def after(self, step: int) -> tuple[int, float]:
        while (now := self.progress())[0] < step:
            pass
        return now

    def turn(self) -> float:
        self.process.send_signal(signal.SIGCONT)
        # Every run measures the same steps: views differ by more than the noise.
        self.next += round(REST * self.steps)
        first, before = self.after(self.next), cpu_seconds(self.process.pid)
        self.next += self.steps
        last, after = self.after(self.next), cpu_seconds(self.process.pid)
        self.process.send_signal(signal.SIGSTOP)
        steps = last[0] - first[0]
        self.cpu.append(math.log((after - before) / steps))
        return (last[1] - first[1]) / steps


def arithmetic(threads: int) -> Callable[[], float]:
    engine = native_engine(threads)
    return lambda: repeated(lambda: measured_flops(engine))


def copying(threads: int) -> Callable[[], float]:
    pairs = [(np.zeros(1 << 25, np.float32), np.ones(1 << 25, np.float32)) for _ in range(threads)]

    def once() -> None:
        workers = [threading.Thread(target=np.copyto, args=pair) for pair in pairs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    once()  # the first one meets untouched pages
    return lambda: repeated(once)


def repeated(body: Callable[[], object]) -> float:
    start, count = time.perf_counter(), 0
    while time.perf_counter() < start + CONTROL_SECONDS:
        body()
        count += 1
    return (time.perf_counter() - start) / count


def cpu_seconds(pid: int) -> float:
    """Of a process and all its threads; time that the host stole from this machine is not in it."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def stolen_seconds() -> float:
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")


def rounds_of(
    turns: dict[str, Callable[[], float]], rounds: int
) -> tuple[dict[str, list[float]], list[float]]:
    """Logarithms of what each turn took, round by round, and the share of time stolen in every round."""
    taken: dict[str, list[float]] = {name: [] for name in turns}
    stolen = []
    for number in range(rounds):
        names = list(turns) if number % 2 == 0 else list(turns)[::-1]
        start, before = time.perf_counter(), stolen_seconds()
        for name in names:
            taken[name].append(math.log(turns[name]()))
        share = (stolen_seconds() - before) / (time.perf_counter() - start) / (os.cpu_count() or 1)
        stolen.append(share)
        row = "  ".join(f"{name} {1e3 * math.exp(values[-1]):.2f}" for name, values in taken.items())
        print(f"{number + 1}/{rounds}  {row}  stolen {share:.1%}", flush=True)
    return taken, stolen


def spreads(trainers: list[list[float]]) -> dict[str, float]:
    """Two-way analysis: processes against rounds."""
    table = np.array(trainers)
    processes, rounds = table.shape
    left = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    turn = math.sqrt(float((left**2).sum()) / ((processes - 1) * (rounds - 1)))
    found = float(table.mean(1).var(ddof=1)) - turn**2 / rounds
    return {
        A_TURN: turn,
        "rounds": float(table.mean(0).std(ddof=1)),
        "processes, as seen": float(table.mean(1).std(ddof=1)),
        "processes, expected from turns alone": turn / math.sqrt(rounds),
        "processes, what is left": math.sqrt(max(found, 0.0)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scene")
    parser.add_argument("--start", required=True, help="checkpoint to start from")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument(
        "--steps", type=int, default=20, help="measured steps a turn, some two seconds' worth"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    never = "1000000"
    command = [sys.executable, "-m", "splatmeter", "train", "-s", chosen.scene, "-r", "1", "--eval"]
    command += ["--start_checkpoint", chosen.start, "--iterations", never, "--threads", str(chosen.threads)]
    command += ["--test_iterations", never, "--save_iterations", never, "--checkpoint-minutes", "0"]
    command += ["--densify-until-iter", "0", "--device", "cpu", "--events-stdout", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        trainers = [Trainer(command, Path(folder) / str(i), chosen.steps) for i in range(chosen.processes)]
        turns = {f"run {i + 1}": trainer.turn for i, trainer in enumerate(trainers)}
        turns |= {"arithmetic": arithmetic(chosen.threads), "copying": copying(chosen.threads)}
        taken, stolen = rounds_of(turns, chosen.rounds)
        for trainer in trainers:
            trainer.process.kill()
            trainer.process.wait()
    runs = [values for name, values in taken.items() if name.startswith("run")]
    for name, value in spreads(runs).items():
        print(f"| {name} | {value:.2%} |")
    print(f"| a turn's CPU time against its neighbours | {spreads([t.cpu for t in trainers])[A_TURN]:.2%} |")
    means = np.mean(runs, axis=0)
    for name in ("arithmetic", "copying"):
        spread, together = statistics.stdev(taken[name]), np.corrcoef(means, taken[name])[0, 1]
        print(f"| {name}, from round to round | {spread:.2%}; goes with the runs by {together:+.2f} |")
    print(f"| stolen, from round to round | goes with the runs by {np.corrcoef(means, stolen)[0, 1]:+.2f} |")


if __name__ == "__main__":
    main()
