"""One run: a fresh process, watched from outside, everything it says written down, the result last."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from splatmeter.events import Progress
from splatmeter.lab.environment import boot_identity, collect, host_identity, masked
from splatmeter.lab.executor import (
    Arrival,
    Command,
    Executor,
    Hooks,
    ProcessEnd,
)
from splatmeter.lab.order_of_time import utc_now
from splatmeter.lab.plan import commands
from splatmeter.lab.plan.commands import RunRequest
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.plan.protocol import Protocol, default_warm_up
from splatmeter.lab.record.result import Identity, RunResult, RunTiming, SavedModel, Window
from splatmeter.lab.record.run_folder import RunFolder
from splatmeter.lab.record.summary import clocks, summarize
from splatmeter.lab.session.card_watch import card_facts
from splatmeter.lab.session.guard import CodeGuard
from splatmeter.lab.session.stage_peaks import memory_record
from splatmeter.lab.session.watching import Told, Watch
from splatmeter.lab.trainers.choose import Listening, adapter
from splatmeter.lab.trainers.engine import engine_of


@dataclass(frozen=True, slots=True)
class RunSpec:
    identity: Identity
    protocol: Protocol
    lineage: list[Phase]
    request: RunRequest
    folder: Path
    monitor: bool = True
    start_sha256: str = ""
    time_limit: float = 0.0
    """Seconds after which it is taken to hang; 0: silence alone tells."""


class Run:
    """Iterate `events()`, then `summary()`, then `record()`; leaving earlier ends the child and keeps what
    there is.
    """

    def __init__(self, spec: RunSpec, executor: Executor, guard: CodeGuard) -> None:
        self.spec = spec
        self.executor = executor
        self._guard = guard
        self._moved = ("\0", "")
        self.arrivals: list[Arrival] = []
        self.pid = 0
        self._end: ProcessEnd | None = None
        self._watch: Watch | None = None
        self._ready: Watch | None = None
        request = spec.request
        self.command = Command(
            commands.arguments(spec.protocol, spec.lineage, request),
            commands.directory(spec.protocol, spec.lineage, request),
            commands.environment(spec.lineage, request),
            limit_seconds=spec.time_limit,
            silence_seconds=spec.protocol.silence,
        )
        first, last = request.first, request.last
        whole = last - first == spec.protocol.iterations
        self.window = Window(
            first, last, spec.protocol.warm_up_steps if whole else default_warm_up(last - first)
        )
        self._folder = RunFolder(spec.folder)

    def events(self) -> Iterator[Arrival]:
        self._prepare()
        spec = self.spec
        listening = Listening(
            spec.request.first,
            spec.request.last,
            spec.request.output,
            self.command.directory,
            dict(spec.protocol.patterns),
        )
        listener = adapter(commands.trainer_of(spec.protocol, spec.lineage), listening)
        hooks = Hooks(self._started, self._ended)
        self._ready = Watch(spec.monitor, self.command)
        stream = self.executor.run(self.command, listener, spec.folder, hooks)
        try:
            for arrival in stream:
                self.arrivals.append(arrival)
                self._folder.arrival(arrival)
                yield arrival
        finally:
            close = getattr(stream, "close", None)
            if close:
                close()
            if self._ready:
                self._ready.stop()
            self._bring_home()
            self._folder.close()

    def _bring_home(self) -> None:
        """While it ran, nothing in its path told a trainer which arm it was; now its output joins its run."""
        home, work = self.spec.folder / "output", self.spec.request.output
        if work.exists() and not home.exists():
            shutil.move(work, home)
        self._moved = (str(work), str(home.resolve()))
        self.spec = dataclasses.replace(
            self.spec, request=dataclasses.replace(self.spec.request, output=home.resolve())
        )

    def summary(
        self, timing: RunTiming | None = None, peaks: bool = True, partners: float = 0.0
    ) -> RunResult:
        """The result; `timing` replaces what the events say (slices time themselves, and tell nothing of
        peaks). `partners` are the CPU seconds of arms that lived at the same time.
        """
        spec, found = self.spec, summarize(self.arrivals, self.window)
        found = dataclasses.replace(
            found,
            identity=self._identity,
            start_sha256=spec.start_sha256,
            models=tuple(self._brought_home(model) for model in found.models),
            timing=timing or found.timing,
            clocks=None if timing else clocks(self.arrivals, self.window, self._seconds()),
            sliced=bool(timing),
            process=self._end,
            facts=self._environment["facts"],
            on_a_card=engine_of(
                commands.trainer_of(spec.protocol, spec.lineage), found.started.environment
            ).on_a_card,
        )
        sampler = self._watch.sampler if self._watch else None
        memory = memory_record(self.arrivals, sampler, self._end, found.peak_bytes, stages=peaks)
        found = dataclasses.replace(self._doubted(found), **memory)
        if timing:  # the trainer's own clock ran on while it was stopped
            found = dataclasses.replace(found, rates=(), passes={})
        return self._seen(self._watch, found, partners) if self._watch else found

    def _seconds(self) -> float:
        if self._end:
            return self._end.seconds
        return self.arrivals[-1].seconds if self.arrivals else 0.0

    def _brought_home(self, model: SavedModel) -> SavedModel:
        work, home = self._moved
        if not model.path.startswith(work):
            return model
        return dataclasses.replace(model, path=home + model.path[len(work) :])

    def _doubted(self, result: RunResult) -> RunResult:
        """A run that says that it finished has failed all the same if nothing of it could be timed, or if
        its process ended with an error."""
        message = ""
        if result.finished and result.timing is None and self.spec.identity.block >= 0:
            first = self.window.first + self.window.warm_up
            message = f"it told no progress that could be timed between steps {first} and {self.window.last}"
        elif result.finished and self._end and self._end.code != 0:
            message = f"exit code {self._end.code} after finishing"
        return dataclasses.replace(result, status="failed", message=message) if message else result

    def _seen(self, watch: Watch, result: RunResult, partners: float) -> RunResult:
        """What was observed from outside; a card counts as used if the run was seen on it, or if its trainer
        works on cards alone.
        """
        last = next((a.seconds for a in reversed(self.arrivals) if isinstance(a.event, Progress)), None)
        told = Told(result.peak_bytes, result.rates, last)
        seen = watch.record(self._end, self.spec.folder, partners, told)
        card = seen["card"]
        used = bool(card.get("name") and (card.get("seen") or result.on_a_card))
        return dataclasses.replace(result, **seen, card_used=used)

    def record(self, result: RunResult) -> None:
        """The last file of the folder: from now on this run counts as ended."""
        self._folder.result(result)

    def discard_output(self) -> None:
        """Models are large; their hash and their judgement stay."""
        shutil.rmtree(self.spec.request.output, ignore_errors=True)

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the process once it has ended; 0 before."""
        return self._end.cpu_seconds if self._end else 0.0

    def last_step(self) -> int:
        return next((a.event.step for a in reversed(self.arrivals) if isinstance(a.event, Progress)), 0)

    def _prepare(self) -> None:
        spec = self.spec
        code = self._guard.checked(spec.identity.phase, self.command)
        where = spec.request.worktree or self.command.directory or Path(__file__).parent
        self._environment = collect(where, self.command.environment)
        card = card_facts(os.environ | dict(self.command.environment), self.command.arguments)
        self._environment["facts"] |= {"card": card} if card else {}
        self._identity = dataclasses.replace(
            spec.identity,
            started=utc_now(),
            machine=self._environment["machine"],
            host=host_identity(),
            boot=boot_identity(),
            revision=self._environment["git"].get("revision", ""),
            code=code.sha256,
        )
        self._folder.begin()
        self._folder.environment(self._environment)
        self._folder.command(
            {
                "arguments": masked(self.command.arguments),
                "directory": str(self.command.directory or ""),
                "declared_variables": sorted(self.command.environment),
                "identity": dataclasses.asdict(self._identity),
            }
        )

    def _started(self, pid: int) -> None:
        self.pid = pid
        self._folder.process(pid, self.command, self.spec.request.output)
        if self._ready:
            self._watch = self._ready.start(pid)

    def _ended(self, end: ProcessEnd) -> None:
        self._end = end
