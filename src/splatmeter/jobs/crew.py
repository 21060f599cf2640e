"""Many tasks through a cluster: so many at once, those that die again, and all of them ended with us.

Any job may die: its node fails, somebody cancels it, a scheduler prefers another. Then its task is submitted
again, under a new number and in a new folder. A task that ended by itself is never repeated here, whatever
its exit code says: whoever asked for it knows what that means.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from splatmeter.errors import SplatmeterError
from splatmeter.jobs.cluster import Cluster, Standing
from splatmeter.jobs.folder import JobFolder, Task, new_try, tries

TRIES = 3
LATE_SECONDS = 5.0
"""How long shared storage may take to show what a job wrote last, after its scheduler says it is over."""
LONGEST_END = 20.0
"""How long we wait for jobs that were asked to end; a scheduler ends them in any case."""


class News(str, Enum):
    SUBMITTED = "submitted"
    FOUND = "found"
    """It was submitted by somebody who is gone, and is still there."""
    STARTED = "started"
    DIED = "died"
    """Without an end of its own; unless it was the last try, the task is submitted again."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Report:
    news: News
    task: Task
    job: JobFolder
    last: bool = False
    """The job died, and its task is not tried any more."""


@dataclass(slots=True)
class _Working:
    task: Task
    job: JobFolder
    tries: int = 1
    started: bool = False
    over: float = 0.0
    """When it was first seen to be over, by its folder or by its scheduler."""


class Crew:
    """`next_task` is asked whenever there is room, and says None when there is nothing to do now."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        next_task: Callable[[], Task | None],
        at_once: int = 1,
        tries: int = TRIES,
        look_every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cluster, self.folder, self.next_task = cluster, folder, next_task
        self.at_once, self.tries, self.look_every = max(1, at_once), max(1, tries), look_every
        self._clock, self._sleep = clock, sleep
        self._working: list[_Working] = []

    def reports(self) -> Iterator[Report]:
        """Until every task has ended, or died for the last time; leaving earlier ends all jobs."""
        try:
            while True:
                yield from self._fill()
                if not self._working:
                    return
                told = list(self._look())
                yield from told
                if not any(report.news in (News.ENDED, News.DIED) for report in told):
                    self._sleep(self.look_every)
        finally:
            self.end_all()

    def stop_what_waits(self) -> None:
        """Cancels what has not begun; what runs is let through."""
        for one in [one for one in self._working if not one.job.read("started")]:
            self._cancel(one)
            one.tries = self.tries

    def end_all(self) -> None:
        """Asks every job to end, and waits until it has: its storage is not ours until then."""
        for one in self._working:
            self._cancel(one)
        deadline = self._clock() + LONGEST_END
        while self._working and self._clock() < deadline:
            standing = self.cluster.standing([one.job for one in self._working])
            left = [one for one, s in zip(self._working, standing, strict=True) if s is not Standing.GONE]
            self._working = left
            if left:
                self._sleep(min(self.look_every, 0.2))
        self._working = []

    def _cancel(self, one: _Working) -> None:
        """Written down, so that it is not taken for a death."""
        with contextlib.suppress(SplatmeterError):
            if not one.job.ended:
                one.job.write("cancelled", {"by": "whoever submitted it"})
            self.cluster.cancel(one.job)

    def _fill(self) -> Iterator[Report]:
        while len(self._working) < self.at_once:
            task = self.next_task()
            if task is None:
                return
            yield self._found(task) or self._submit(task)

    def _found(self, task: Task) -> Report | None:
        """A job of this task that outlived the one who submitted it."""
        for job in reversed(tries(self.folder, task.name)):
            if not job.number or job.read("submitted").get("cluster") != self.cluster.name:
                continue
            if not job.ended and self.cluster.standing([job])[0] is not Standing.GONE:
                self._working.append(_Working(task, job))
                return Report(News.FOUND, task, job)
        return None

    def _submit(self, task: Task, number: int = 1) -> Report:
        job = new_try(self.folder, task, {"cluster": self.cluster.name})
        self.cluster.submit(job)
        self._working.append(_Working(task, job, number))
        return Report(News.SUBMITTED, task, job)

    def _look(self) -> Iterator[Report]:
        standings = self.cluster.standing([one.job for one in self._working])
        for one, standing in list(zip(self._working, standings, strict=True)):
            if not one.started and one.job.read("started"):
                one.started = True
                yield Report(News.STARTED, one.task, one.job)
            yield from self._over(one, standing)

    def _over(self, one: _Working, standing: Standing) -> Iterator[Report]:
        """A job has ended when it says so; where it cannot say so any more, its scheduler does."""
        ended = one.job.ended
        agreed = ended == (standing is Standing.GONE)
        if not ended and standing is not Standing.GONE:
            return
        if not agreed and one.started and not self._waited(one):
            return
        self._working.remove(one)
        if ended and not one.job.read("ended").get("signalled"):
            yield Report(News.ENDED, one.task, one.job)
            return
        last = one.tries >= self.tries
        yield Report(News.DIED, one.task, one.job, last)
        if not last:
            yield self._submit(one.task, one.tries + 1)

    def _waited(self, one: _Working) -> bool:
        """Storage and scheduler may be some seconds apart in what they know."""
        one.over = one.over or self._clock()
        return self._clock() - one.over >= LATE_SECONDS
