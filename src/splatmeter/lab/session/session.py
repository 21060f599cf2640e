"""Carries out a session block by block; killed at any moment, it loses at most the block under way."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.errors import NotEnoughMemory, SplatmeterError
from splatmeter.lab.environment import machine_identity
from splatmeter.lab.executor import Arrival, Executor
from splatmeter.lab.json_files import write_json
from splatmeter.lab.order_of_time import utc_now
from splatmeter.lab.plan.commands import RunRequest, is_plain
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab, locked
from splatmeter.lab.record.result import Identity, RunResult
from splatmeter.lab.record.run_folder import end_orphan
from splatmeter.lab.session import kept_builds, slices, start
from splatmeter.lab.session.blocks import REPEATED, SUPERSEDED, claimed, disturbance
from splatmeter.lab.session.blocks import attempts as attempts
from splatmeter.lab.session.blocks import done_blocks as done_blocks
from splatmeter.lab.session.blocks import repetitions as repetitions
from splatmeter.lab.session.evaluating import Evaluator
from splatmeter.lab.session.guard import CodeGuard, check_pin
from splatmeter.lab.session.run import Run, RunSpec
from splatmeter.lab.session.session_plan import (
    ArmPlan,
    SessionPlan,
    lineage_of,
    protocol_of,
)
from splatmeter.lab.session.time_limit import longest_run
from splatmeter.lab.session.validate import dry_run
from splatmeter.lab.session.worktree import Built, built

PRIMING_STEPS = 20


@dataclass(frozen=True, slots=True)
class Beat:
    """What is going on now; the command line draws it."""

    block: int
    blocks: int
    arm: str
    stage: str
    """'priming', 'running', 'judging', 'block repeated' or 'block done'; of jobs also 'waiting', 'started',
    'found' and 'died'.
    """
    arrival: Arrival | None = None
    result: RunResult | None = None


class Session:
    """`beats()` does the work while somebody iterates; closing it ends the child that runs."""

    def __init__(
        self,
        lab: Lab,
        plan: SessionPlan,
        executor: Executor,
        evaluator: Evaluator | None = None,
        job: str = "",
    ) -> None:
        """`job` names the job that this is, where a cluster runs the blocks."""
        self.lab = lab
        self.job = job
        self.plan = plan
        self.executor = executor
        self.protocol: Protocol = protocol_of(plan)
        self.folder = plan.folder(lab)
        self._given_evaluator = evaluator
        self._starts: dict[str, tuple[Path | None, str]] = {}
        """Checkpoint and hash of every scene."""
        self._builds: dict[str, Built] = {}
        self._guard = CodeGuard(self.folder)
        plain = (is_plain(self.protocol, lineage_of(plan, arm.phase)) for arm in plan.arms)
        self._judged_by_us = not all(plain)
        self.predicted: dict[str, int] = {}
        """Bytes each phase will need, where its trainer predicts them; known with the first beat."""

    def beats(self, decided: Callable[[], bool] = lambda: False) -> Generator[Beat, None, None]:
        """`decided` is asked after each block of a session that runs until decided."""
        with locked(self.folder / ".lock", f"session {self.plan.session}"):
            for leftover in self.folder.glob("*/*/*/process.json"):
                end_orphan(leftover.parent, self.lab.work)
            self.make_ready()
            yield from self._prime(self.folder / "priming")
            for block in range(self.plan.blocks):
                if block not in done_blocks(self.folder):
                    while (yield from self._block(block)):
                        pass
                    if self.plan.until_decided and decided():
                        break
            write_json(self.folder / "ended.json", {"time": now(), "blocks": len(done_blocks(self.folder))})

    def beats_of(self, block: int) -> Generator[Beat, None, None]:
        """One attempt at one block, with priming of its own: what a job does on its node."""
        self.make_ready()
        attempt = claimed(self.folder, block)
        yield from self._prime(self.folder / "blocks" / f"{block:03d}.{attempt}" / "priming")
        yield from self._block(block, attempt)

    def make_ready(self, runs_here: bool = True) -> None:
        """Checkpoint, builds and options; a session that is refused here is over, and was never begun."""
        try:
            for scene in self.plan.scenes(0):
                self._starts[scene] = start.checked(self.lab, self.protocol.of_scene(scene), scene)
            for arm in self.plan.arms:
                self._builds[arm.phase] = self._built(arm)
                kept_builds.keep(self.folder, arm.phase, self._builds[arm.phase])
                for scene in self.plan.scenes(0):
                    self._try_out(arm, scene, runs_here)
        except SplatmeterError as problem:
            if not done_blocks(self.folder) and not self.job:
                write_json(self.folder / "ended.json", {"time": now(), "blocks": 0, "refused": str(problem)})
            raise

    def _built(self, arm: ArmPlan) -> Built:
        """Jobs begin at the same time: one of them may have to wait for another's look."""
        return built(self.lab, lineage_of(self.plan, arm.phase), self.protocol, wait=bool(self.job))

    def _try_out(self, arm: ArmPlan, scene: str, runs_here: bool) -> None:
        where = (0, 0, 0, scene)
        command = self._run(arm, self.folder / "unused", where, self.protocol.end_iteration).command
        if not self._builds[arm.phase].worktree:
            check_pin(self.lab, arm.phase, command)
        self._guard.checked(arm.phase, command)
        try:
            needed = dry_run(arm.phase, command.arguments, command.directory, command.environment)
        except NotEnoughMemory:
            if runs_here:  # the machine that submits jobs may be a small one
                raise
            needed = None
        self.predicted[arm.phase] = max(needed or 0, self.predicted.get(arm.phase, 0))
        self.predicted = {phase: size for phase, size in self.predicted.items() if size}

    def _prime(self, into: Path) -> Iterator[Beat]:
        """Fills file caches and compiles what compiles itself; looked at by nobody but kept apart as
        evidence.
        """
        done = into / "done.json"
        if not self.plan.prime or done.exists():
            return
        last = self.protocol.start_iteration + min(PRIMING_STEPS, self.protocol.iterations)
        first_iteration: dict[str, Any] = {}
        every = [(arm, scene) for arm in self.plan.arms for scene in self.plan.scenes(0)]
        for place, (arm, scene) in enumerate(every):
            folder = _kept_apart(into / f"{place}-{arm.label}")
            run = self._run(arm, folder, (-1, 1, place, scene), last)
            for arrival in run.events():
                yield Beat(0, self.plan.blocks, arm.label, "priming", arrival)
            result = run.summary()
            run.record(result)
            _refuse_failed(result, run)
            first_iteration[arm.label] = result.first_iteration_seconds
            run.discard_output()
        write_json(done, {"time": now(), "first_iteration_seconds": first_iteration})

    def _block(self, block: int, attempt: int = 0) -> Generator[Beat, None, bool]:
        """True if the rule on covariates asks for it again; the attempt is kept and never counts."""
        attempt = attempt or claimed(self.folder, block)
        folder = self.folder / "blocks" / f"{block:03d}.{attempt}"
        order = [(arm, scene) for scene in self.plan.scenes(block) for arm in self.plan.order(block, scene)]
        runs = [
            self._run(
                arm,
                folder / f"{place}-{arm.label}",
                (block, attempt, place, scene),
                self.protocol.end_iteration,
            )
            for place, (arm, scene) in enumerate(order)
        ]
        results: list[RunResult] = []
        if self.plan.slices:
            results = yield from self._sliced(block, runs, folder)
        else:
            for run in runs:
                for arrival in run.events():
                    yield self._beat(block, run, "running", arrival)
                results.append((yield from self._finish(block, run, run.summary())))
        for run in runs:  # edited while it ran: nobody knows which of the two it was
            self._guard.checked(run.spec.identity.phase, run.command)
        disturbed = disturbance(self.protocol, results)
        record = {"block": block, "runs": [run.spec.folder.name for run in runs], "time": now()}
        record |= {"unix": time.time(), "disturbed": disturbed}
        record |= {"job": self.job, "machine": machine_identity()} if self.job else {}
        if disturbed and len(repetitions(self.folder, block)) < self.protocol.repeats:
            write_json(folder / REPEATED, record)
            yield Beat(block, self.plan.blocks, disturbed, "block repeated")
            return True
        write_json(folder / (SUPERSEDED if block in done_blocks(self.folder) else "block.json"), record)
        yield Beat(block, self.plan.blocks, "", "block done")
        return False

    def _sliced(self, block: int, runs: list[Run], folder: Path) -> Generator[Beat, None, list[RunResult]]:
        outcome = slices.Slices(runs, self.plan.slices, self.plan.order_seed + block)
        for run, arrival in outcome.alternate():
            yield self._beat(block, run, "running", arrival)
        write_json(folder / "slices.json", outcome.record(block))
        results: list[RunResult] = []
        for run in runs:
            partners = sum(other.cpu_seconds for other in runs if other is not run)
            result = run.summary(outcome.timing(run), peaks=False, partners=partners)
            results.append((yield from self._finish(block, run, result)))
        return results

    def _finish(self, block: int, run: Run, result: RunResult) -> Generator[Beat, None, RunResult]:
        if result.finished:
            yield Beat(block, self.plan.blocks, run.spec.identity.arm, "judging")
            evaluator = self._given_evaluator or Evaluator(self.lab, run.spec.protocol)
            result = evaluator.complete(result, run.spec)
        run.record(result)
        _refuse_failed(result, run)
        if not (self.plan.keep_models or block == 0):
            run.discard_output()
        yield Beat(block, self.plan.blocks, run.spec.identity.arm, "running", None, result)
        return result

    def _beat(self, block: int, run: Run, stage: str, arrival: Arrival) -> Beat:
        return Beat(block, self.plan.blocks, run.spec.identity.arm, stage, arrival)

    def _run(self, arm: ArmPlan, folder: Path, place: tuple[int, int, int, str], last: int) -> Run:
        block, attempt, position, scene = place
        protocol, (checkpoint, start_sha256) = self.protocol.of_scene(scene), self._starts[scene]
        seed = self.plan.seed(block)
        who = (arm.label, arm.phase, seed, self.plan.fingerprint)
        identity = Identity(self.plan.session, block, attempt, position, *who, scene=scene, job=self.job)
        built_for = self._builds[arm.phase]
        evaluations = protocol.all_evaluation_steps if block >= 0 and not self.plan.slices else (last,)
        request = RunRequest(
            output=(self.lab.work / secrets.token_hex(6)).resolve(),
            seed=seed,
            checkpoint=checkpoint.resolve() if checkpoint else None,
            python=built_for.python,
            worktree=built_for.worktree,
            first=protocol.start_iteration,
            last=last,
            evaluations=evaluations,
            save_all=self._judged_by_us,
            lab=self.lab.root.resolve(),
        )
        lineage = lineage_of(self.plan, arm.phase)
        longest = longest_run(self.lab, self.plan) if block >= 0 else 0.0
        return Run(
            RunSpec(
                identity,
                protocol,
                lineage,
                request,
                folder,
                self.plan.monitor and arm.monitor,
                start_sha256,
                time_limit=longest * max(1, len(self.plan.arms) if self.plan.slices else 1),
            ),
            self.executor,
            self._guard,
        )


def _kept_apart(folder: Path) -> Path:
    """An attempt that failed is evidence: it moves aside for the next one."""
    if folder.exists():
        number = 1 + len(list(folder.parent.glob(f"{folder.name}.failed*")))
        folder.rename(folder.with_name(f"{folder.name}.failed{number}"))
    return folder


def _refuse_failed(result: RunResult, run: Run) -> None:
    """A failed run ends the session: it stays visible, and the block is tried again when resumed."""
    if result.finished:
        return
    tail = _last_line(run.spec.folder / "stderr.txt")
    reason = result.message or result.status
    raise SplatmeterError(
        f"{run.spec.identity.arm} did not finish: {reason.rstrip('.')}{f' ({tail})' if tail else ''}."
        f" Everything it printed is in {run.spec.folder}; `splatmeter lab resume` tries the block again."
    )


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text("utf-8", "replace").replace("\r", "\n").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")


def now() -> str:
    return utc_now()
