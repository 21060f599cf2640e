"""Training as a generator of events: whoever iterates listens, and decides when to stop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from splatmeter import process_memory
from splatmeter.backend import Backend
from splatmeter.errors import Diverged, NotEnoughMemory, OutputError, SplatmeterError
from splatmeter.events import Densified, Event, Failed, Finished, Progress, Saved, Warned
from splatmeter.process_memory import StagePeaks
from splatmeter.train.assemble import Parts, assemble
from splatmeter.train.config import TrainConfig
from splatmeter.train.judge import Judge
from splatmeter.train.losses import NonFiniteLossError
from splatmeter.train.memory_watch import MemoryWatch
from splatmeter.train.output_folder import (
    OutputFolder,
    refuse_used_folder,
    way_on,
    with_output_folder,
)
from splatmeter.train.saver import Saver, off_the_clock, without
from splatmeter.train.starting import started
from splatmeter.train.stopwatch import Stopwatch
from splatmeter.units import bytes_text

WAITING = "wait for photo"
"""Beside the passes of the engine: seconds that steps stood still because a photo was not decoded yet."""


def train(
    config: TrainConfig,
    backend: Backend,
    interrupted: Callable[[], bool] = lambda: False,
    command: Stopwatch | None = None,
) -> Generator[Event, None, None]:
    """Started, then whatever happens, then Finished or Failed. Nothing happens until the first `next`.

    `interrupted` is asked after every step; when it says yes, a checkpoint is saved and training ends well.
    Closing the generator ends it at once, without one. `command` is a clock that runs since the command
    began, for runs that are given a time; by default that begins here.
    """
    config = with_output_folder(config)
    refuse_used_folder(config)
    process_memory.give_large_arrays_back_at_once()
    peaks = StagePeaks(backend.memory.peak, backend.memory.reset_peak)
    peaks.enter("loading")
    command = command or Stopwatch()
    command.start()
    parts = assemble(config, backend, command)
    try:
        judge = Judge(parts)  # missing weights show before the folder is touched
        with OutputFolder(config) as output:
            output.describe(parts.scene)
            run = _Run(parts, output, judge, peaks)
            for event in run.events(interrupted):
                with parts.clock.paused():
                    yield event
    finally:
        parts.photos.close()


class _Run:
    """One run from Started to Finished; the order of things within and between steps."""

    def __init__(self, parts: Parts, output: OutputFolder, judge: Judge, peaks: StagePeaks) -> None:
        self.parts = parts
        self.output = output
        self.peaks = peaks
        self.judge = judge
        self._told_full = False
        self._memory = MemoryWatch(parts, peaks)
        self._saver = Saver(parts, output, peaks)

    def events(self, interrupted: Callable[[], bool]) -> Iterator[Event]:
        yield started(self.parts)
        for message in self.parts.warnings:
            yield Warned(message)
        self.peaks.enter("training")
        self.parts.backend.timings()  # whatever loading took is not a step's
        self.parts.clock.start()
        yield from self._begin_plan()
        try:
            reason = yield from self._steps(interrupted)
        except NonFiniteLossError as problem:
            failure = self._failed(str(problem))
            yield failure
            raise Diverged(failure.message) from None
        except (SplatmeterError, MemoryError) as found:
            problem = found if isinstance(found, SplatmeterError) else self._out_of_memory()
            earlier = self._bad_step_under_way()
            if earlier is not None:
                failure = self._failed(str(earlier))
                yield failure
                raise Diverged(failure.message) from None
            saved = self._rescue(problem)
            if saved is not None:
                yield saved
                kept = f"The state so far is {saved.path}."
                problem.args = (f"{problem} {kept} {way_on(self.output.folder)}",)
            elif self._saver.last_checkpoint:
                problem.args = (f"{problem} {self._newest_checkpoint()}",)
            yield Failed(self.parts.state.step, str(problem), self._saver.last_checkpoint)
            raise problem from found.__cause__
        except Exception as problem:  # a defect: no promise about the state, but listeners get their ending
            what = f"{type(problem).__name__}: {problem}"
            yield Failed(self.parts.state.step, what, self._saver.last_checkpoint)
            raise
        self.parts.clock.pause()
        yield self._finished(reason)

    def _steps(self, interrupted: Callable[[], bool]) -> Generator[Event, None, str]:
        """Returns why it ended. Models, metrics and checkpoints of a step come before its densification."""
        state = self.parts.state
        while state.step < self.parts.config.iterations:
            change = self.parts.growth(state)
            if change is not None:
                yield change
                self._note_growth(change)
                yield from self._keep_within(change.gaussians)
                if not change.gaussians:
                    yield Warned("No Gaussians are left.", "Lower the pruning thresholds.")
            yield from self.parts.first_look(state)
            self.parts.step(state)
            yield from self._keep_time()
            config = self.parts.config
            if state.step % config.progress_interval == 0 or state.step == config.iterations:
                yield self._progress()
            if self._between_steps(state.step):
                state.catch_up()
                with off_the_clock(self.parts):
                    yield from self._due(state.step)
            yield from self._saver.stay_safe()
            if interrupted() and state.step < config.iterations:
                state.catch_up()
                yield self._saver.checkpoint()
                return "interrupted"
        return "completed"

    def _note_growth(self, change: Densified) -> None:
        self._memory.densified(change)
        if self.parts.keeper is not None:
            self.parts.keeper.densified(change)

    def _begin_plan(self) -> Iterator[Event]:
        keeper = self.parts.keeper
        if keeper is not None:
            keeper.begin()
            yield from self._saver.plan()
            yield keeper.told(keeper.plan.entries[-1])

    def _keep_time(self) -> Iterator[Event]:
        """What a plan says from this step on."""
        keeper, state = self.parts.keeper, self.parts.state
        if keeper is None:
            return
        keeper.try_saving(state.step, lambda: self.output.try_saving(state))
        entry = keeper.stepped(state.step, self.parts.step.views.pixels(state.step), state.model.count)
        if entry is not None:
            self.parts.follow(keeper)
            self._memory.replanned()
        if entry is not None or state.step >= keeper.plan.end:
            yield from self._saver.plan()  # after the last step too: then it says that the run has ended
        if entry is not None:
            yield keeper.told(entry)
        enough = keeper.enough(state.step)
        if enough is not None:
            yield enough

    def _keep_within(self, gaussians: int) -> Iterator[Warned]:
        """Photos make room for Gaussians; where these have all of --memory, or all there is, that is said
        once."""
        cap, full = self.parts.prediction.cap, self.parts.growth.room.full(gaussians)
        if cap is not None:
            most = self.parts.prediction.photo_cache_bytes
            self.parts.photos.limit(min(most, cap.photo_bytes(gaussians)))
            full = cap.full() if gaussians >= cap.most_gaussians else full
        if full is not None and not self._told_full:
            self._told_full = True
            yield full

    # ---- between steps ------------------------------------------------------------------------------------
    def _between_steps(self, step: int) -> bool:
        tests = step in self.parts.config.test_iterations
        return tests or self._saver.saves_at(step) or self._saver.checkpoints_at(step)

    def _due(self, step: int) -> Iterator[Event]:
        if self._saver.saves_at(step):
            yield from self._saver.model(step)
        if step in self.parts.config.test_iterations:
            with self._not_counted():
                yield from self._judge()
        if self._saver.checkpoints_at(step):
            yield from self._saver.checkpoint_if_there_is_room(f"checkpoint of step {step}")
        self.parts.backend.timings()  # renders of an evaluation are not passes of a step

    def _judge(self) -> Iterator[Event]:
        try:
            yield from self.judge(self.parts.state, self.peaks)
        except OutputError as problem:
            yield without("pictures of this evaluation", problem)

    def _not_counted(self) -> AbstractContextManager[None]:
        """Around work that is not charged to the time that the run was given."""
        return nullcontext() if self.parts.keeper is None else self.parts.keeper.clock.paused()

    # ---- what is said -------------------------------------------------------------------------------------
    def _progress(self) -> Progress:
        state = self.parts.state
        state.catch_up()
        self.parts.backend.synchronize()
        held = self._memory.parts()
        expected = self._memory.forecast(held["peak"])
        return Progress(
            step=state.step,
            clock_seconds=self.parts.clock.seconds,
            loss=state.losses.average,
            gaussians=state.model.count,
            loss_last=state.losses.last,
            l1_last=state.losses.last_l1,
            sh_degree=state.sh_degree,
            passes=dict(self.parts.backend.timings()) | {WAITING: self.parts.photos.waited()},
            memory_bytes=process_memory.resident_bytes(),
            device_memory_bytes=self._memory.device_bytes(),
            forecast_bytes=expected.high,
            forecast_low_bytes=expected.low,
            memory_parts=held,
        )

    def _finished(self, reason: str) -> Finished:
        state = self.parts.state
        return Finished(
            step=state.step,
            clock_seconds=self.parts.clock.seconds,
            gaussians=state.model.count,
            reason=reason,
            loss=state.losses.average,
            loss_last_100=state.losses.recent_mean,
            mean_opacity=state.model.mean_opacity(),
            peak_memory_bytes=self._memory.stages(),
        )

    def _bad_step_under_way(self) -> NonFiniteLossError | None:
        """Whatever else went wrong, steps that were handed over before it come first."""
        with suppress(SplatmeterError, MemoryError):
            try:
                self.parts.state.catch_up()
            except NonFiniteLossError as bad:
                return bad
        return None

    def _rescue(self, problem: SplatmeterError) -> Saved | None:
        """Photos that vanish or memory that ends must not cost the steps done since the last checkpoint. What
        cannot be saved (a full disk, a card that is gone) must not hide the first problem."""
        if isinstance(problem, OutputError):
            return None
        with suppress(SplatmeterError, MemoryError):
            return self._saver.checkpoint() if self._worth_keeping() else None

    def _newest_checkpoint(self) -> str:
        path = Path(self._saver.last_checkpoint)
        resumes = path.parent.resolve() == self.output.folder.resolve()
        return f"The newest checkpoint is {path}.{f' {way_on(self.output.folder)}' if resumes else ''}"

    def _out_of_memory(self) -> NotEnoughMemory:
        held = bytes_text(self.parts.backend.memory.held())
        return NotEnoughMemory(
            f"Memory ran out in step {self.parts.state.step + 1}, with {held} in use. "
            "Use --max-gaussians, a coarser --resolution or a smaller --photo-cache."
        )

    def _worth_keeping(self) -> bool:
        return self.parts.state.step > 0 and self.parts.state.model.intact()

    def _failed(self, why: str) -> Failed:
        """The bad step changed nothing: the state is worth keeping unless an earlier step broke it."""
        state = self.parts.state
        with suppress(SplatmeterError, MemoryError):
            if self._worth_keeping():
                self._saver.checkpoint()
        kept = (
            f"The last good state is {self._saver.last_checkpoint}."
            if self._saver.last_checkpoint
            else "No checkpoint exists."
        )
        message = (
            f"Training stopped in step {state.step + 1}: {why}. {kept} "
            "Lower the learning rates, or look at the photo and pose of that view."
        )
        return Failed(state.step, message, self._saver.last_checkpoint)
