"""A session whose blocks are jobs: one job is one whole block on one node. This process submits and waits.

What it knows it reads from the session's folder, which all nodes share. It may be killed at any moment: jobs
that go on without it are found again by `lab resume`, and blocks that are done are done.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from splatmeter.errors import SplatmeterError
from splatmeter.jobs.cluster import Cluster, Standing
from splatmeter.jobs.crew import Crew, News, Report
from splatmeter.jobs.folder import JobFolder, Task, tries
from splatmeter.lab.executor import ChildProcess
from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.record.lab import Lab, locked
from splatmeter.lab.record.result import RunResult, result_from
from splatmeter.lab.record.run_folder import end_orphan, remove_output
from splatmeter.lab.session.blocks import attempts, done_blocks, repetitions
from splatmeter.lab.session.session import Beat, Session, now
from splatmeter.lab.session.session_plan import SessionPlan

LOOK_EVERY = {"local": 0.2}
_STAGES = {News.SUBMITTED: "waiting", News.FOUND: "found", News.STARTED: "started", News.DIED: "died"}


class JobSession:
    """`beats()` as of a Session; closing it ends all its jobs."""

    def __init__(self, lab: Lab, plan: SessionPlan, cluster: Cluster) -> None:
        self.lab, self.plan, self.cluster = lab, plan, cluster
        self._session = Session(lab, plan, ChildProcess())
        self.protocol, self.folder = self._session.protocol, self._session.folder
        self._left: deque[int] = deque()
        self._problem = ""

    @property
    def predicted(self) -> dict[str, int]:
        return self._session.predicted

    @property
    def at_once(self) -> int:
        """One after the other on this machine, and where a look after each block decides whether to go on:
        blocks that end first must not be looked at first because they were quick.
        """
        if self.plan.until_decided:
            return 1
        return self.plan.jobs.get("at_once") or (1 if self.cluster.name == "local" else self.plan.blocks)

    def beats(self, decided: Callable[[], bool] = lambda: False) -> Generator[Beat, None, None]:
        """`decided` is asked after each block of a session that runs until decided."""
        with locked(self.folder / ".lock", f"session {self.plan.session}"):
            self._session.make_ready(runs_here=self.cluster.name == "local")
            self._clear_away()
            done = done_blocks(self.folder)
            self._left = deque(block for block in range(self.plan.blocks) if block not in done)
            look = LOOK_EVERY.get(self.cluster.name, 1.0)
            crew = Crew(self.cluster, self.folder / "jobs", self._next, self.at_once, look_every=look)
            with contextlib.closing(crew.reports()) as reports:  # type: ignore[type-var]
                for report in reports:
                    yield from self._told(report, crew)
                    over = report.news is News.ENDED and self.plan.until_decided
                    if over and not self._problem and self._left and decided():
                        self._left.clear()
            if self._problem:
                raise SplatmeterError(self._problem)
            write_json(self.folder / "ended.json", {"time": now(), "blocks": len(done_blocks(self.folder))})

    def _next(self) -> Task | None:
        if not self._left:
            return None
        block = self._left.popleft()
        name = f"block-{block:03d}"
        words = (str(self.lab.root.resolve()), self.plan.session, str(block))
        return Task(name, (sys.executable, "-m", "splatmeter.lab.session.block_job", *words))

    def _told(self, report: Report, crew: Crew) -> Iterator[Beat]:
        block = int(report.task.name.rpartition("-")[2])
        if report.news is not News.ENDED:
            yield Beat(block, self.plan.blocks, report.job.last_words(), _STAGES[report.news])
            if report.last and not self._problem:
                self._give_up(crew, f"{_name(block)} died again and again: {_words(report.job)}", report.job)
            return
        if report.job.code:
            self._give_up(crew, f"{_name(block)} did not finish: {_words(report.job)}", report.job)
        elif block in done_blocks(self.folder):
            for result in _results(self.folder, block):
                yield Beat(block, self.plan.blocks, result.identity.arm, "running", None, result)
            yield Beat(block, self.plan.blocks, "", "block done")
        elif again := repetitions(self.folder, block):
            yield Beat(block, self.plan.blocks, str(again[-1].get("disturbed")), "block repeated")
            self._left.appendleft(block)
        else:
            self._give_up(crew, f"{_name(block)} ended and left no block behind", report.job)

    def _give_up(self, crew: Crew, words: str, job: JobFolder) -> None:
        """The first problem is told; blocks that run are let through, because they are evidence too."""
        self._problem = self._problem or (
            f"{words.rstrip('.')}. What it printed is in {job.path}; `splatmeter lab resume` tries the block"
            " again."
        )
        self._left.clear()
        crew.stop_what_waits()

    def _clear_away(self) -> None:
        """Removes what earlier jobs have left, unless one of them may still be running."""
        jobs = [job for block in range(self.plan.blocks) for job in self._alive(block)]
        if jobs:
            return
        for leftover in self.folder.glob("blocks/*/**/process.json"):
            if self.cluster.name == "local":
                end_orphan(leftover.parent, self.lab.work)
            else:  # a process number of another machine says nothing here
                remove_output(leftover.parent, self.lab.work)

    def _alive(self, block: int) -> list[JobFolder]:
        jobs = [job for job in tries(self.folder / "jobs", f"block-{block:03d}") if not job.ended]
        known = [job for job in jobs if job.number]
        standing = self.cluster.standing(known) if known else []
        return [job for job, s in zip(known, standing, strict=True) if s is not Standing.GONE]


def _name(block: int) -> str:
    return f"The job of block {block + 1}"


def _words(job: JobFolder) -> str:
    return str(job.read("ended").get("message") or job.last_words() or "it left no word")


def _results(folder: Path, block: int) -> list[RunResult]:
    """The results of the attempt that is complete."""
    for number, attempt in sorted(attempts(folder)):
        made = folder / "blocks" / f"{number:03d}.{attempt}"
        if number == block and (made / "block.json").exists():
            found = [read_json(path) for path in sorted(made.glob("*-*/result.json"))]
            return [result_from(record) for record in found if isinstance(record, dict)]
    return []
