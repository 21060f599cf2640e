"""Blocks as jobs of SLURM, or as processes of this machine that live on without us.

A job that dies (its node fails, somebody cancels it, its time is over) is submitted again and goes on from
its last checkpoint. One that ends by itself is not, whatever its exit code says. The one who submitted may
be killed, too: jobs go on without it, and the same command finds them again.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from splatmeter.blocks import runs
from splatmeter.blocks.carrying import BlockCommand, Ended, Interrupted
from splatmeter.jobs.cluster import Cluster
from splatmeter.jobs.crew import Crew, News, Report
from splatmeter.jobs.folder import Task
from splatmeter.shell import command_text
from splatmeter.units import duration_text

JOBS = "jobs"
"""Folder beside the blocks' own; each try at a block has one in it, with what it printed."""
LOOK_EVERY = {"local": 0.2}
"""Seconds between two looks at the jobs, where not 1: a scheduler is not asked more often."""
TELL_EVERY = 30.0
"""Seconds between two lines that say how far blocks are."""
KILLED = -9
"""Exit code that we tell of a job that left none."""

_TOLD = {
    News.SUBMITTED: "is submitted",
    News.FOUND: "is still at work in a job of before",
    News.STARTED: "has started",
    News.ENDED: "has ended",
}


def as_jobs(
    commands: Sequence[BlockCommand],
    cluster: Cluster,
    folder: Path,
    at_once: int = 0,
    say: Callable[[str], None] = print,
) -> list[Ended]:
    """At most `at_once` at the same time; 0: all of them on a cluster, one on this machine."""
    left = list(commands)
    look = LOOK_EVERY.get(cluster.name, 1.0)
    room = at_once or (1 if cluster.name == "local" else len(left))
    waiting = _Waiting(commands, say)
    crew = Crew(
        cluster, folder / JOBS, lambda: _task(left.pop(0)) if left else None, room, look_every=look,
        sleep=waiting.sleep,
    )  # fmt: skip
    ended: list[Ended] = []
    with _stopped_by_signals(), contextlib.closing(crew.reports()) as reports:  # type: ignore[type-var]
        for report in reports:
            say(_line(report))
            if report.news is News.ENDED:
                ended.append(Ended(report.task.name, report.job.code))
            elif report.last:
                ended.append(Ended(report.task.name, KILLED))
    return ended


class _Waiting:
    """Tells now and then how far blocks are, by what their runs leave in their folders."""

    def __init__(self, commands: Sequence[BlockCommand], say: Callable[[str], None]) -> None:
        self.commands, self.say = commands, say
        self._next = time.monotonic() + TELL_EVERY

    def sleep(self, seconds: float) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + TELL_EVERY
            told = [state for command in self.commands if (state := _how_far(command))]
            if told:
                self.say("; ".join(told))
        time.sleep(seconds)


def _how_far(command: BlockCommand) -> str:
    """Empty for a block that is finished, or has not told anything yet."""
    found, config = runs.how_far(command.folder), runs.settings_of(command.folder)
    if found is None or config is None or runs.trained(command.folder) is not None:
        return ""
    (step, seconds), steps = found, config.iterations
    told = f"Block {command.name} at step {step} of {steps}"
    if config.seconds is not None:  # it ends by the clock
        return told
    return f"{told}, about {duration_text(seconds / max(1, step) * (steps - step))} left"


def _task(command: BlockCommand) -> Task:
    words = (sys.executable, "-m", "splatmeter", *command.words)
    return Task(command.name, words, directory=str(Path.cwd()))


def _line(report: Report) -> str:
    name, job = report.task.name, report.job
    if report.news is News.DIED:
        again = "It is not tried any more." if report.last else "It is submitted again and goes on."
        return f"Block {name}: its job {job.number} has died. {again}"
    words = f"Block {name} {_TOLD[report.news]}"
    if report.news is News.SUBMITTED:
        return f"{words}: job {job.number}, which does\n  {command_text(job.read('job')['arguments'][3:])}"
    if report.news is News.STARTED:
        return f"{words} on {job.read('started').get('node', 'some node')} (job {job.number})."
    if report.news is News.ENDED and job.code:
        return f"{words} with code {job.code}: {job.last_words() or 'it left no word'} ({job.path})"
    return f"{words} (job {job.number})."


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """The first one leaves the crew, which asks all its jobs to end; they save what they have. A second one
    leaves at once, and jobs may go on. Only the main thread hears signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        caught.append(number)
        raise Interrupted(number) if len(caught) == 1 else KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
