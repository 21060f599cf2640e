"""Keeps a run to the time it was given, or to a plan that was recorded: follows it, measures, plans anew."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from splatmeter.errors import OutputError, UsageError
from splatmeter.events import Densified, Planned, Warned
from splatmeter.scene.scene import Scene
from splatmeter.train import plan as plans
from splatmeter.train import progressive
from splatmeter.train.config import TrainConfig
from splatmeter.train.memory_forecast import typical_gaussians
from splatmeter.train.memory_prediction import Prediction
from splatmeter.train.plan import Course, Entry, Plan
from splatmeter.train.plan_at_start import Timing, plan_so_far, repeated_plan
from splatmeter.train.plan_sense import SIZES
from splatmeter.train.planner import (
    MOST_LOOKS,
    SURE_ROUNDS,
    Machine,
    Recipe,
    Situation,
    first_entry,
    lowest_threshold,
    most_steps,
    natural_growth,
    next_entry,
)
from splatmeter.train.stopwatch import Stopwatch
from splatmeter.units import duration_text

EARLY_END = 0.9
"""A run that ends within a smaller share of its time says why."""
EARLY_STEPS = (10, 25, 50, 100, 200)
"""Plans are made after these steps, however long they took; later when this share of the time has gone:"""
CHECK_SHARE = 0.02
MEMORY_SHARE = 0.15
"""Share of the time: measurements that are older count less than half."""
NATURAL_SHARE = 0.6
"""Share of the Gaussians that a scene of its kind usually gets: a guess until the run's own growth shows."""
SAVING_SECONDS, SAVING_SECONDS_PER_GAUSSIAN = 0.1, 4.5e-6
"""For the model's two files; the second until some Gaussians were saved for trial:"""
TRIAL_STEP = 200
"""after this step. Of a whole model, each takes so many times as long:"""
TRIAL_MARGIN = 1.2
FREE_SHARE = 0.7
"""Share of free memory that Gaussians may fill where no limit was given."""
UNCHANGED = 0.004
"""A change of the steps that are left which is not worth an entry."""
LIMITED = 0.999
"""From this share of their budget on, Gaussians might have been more without it."""


@dataclass(slots=True, eq=False)
class Keeper:
    config: TrainConfig
    """As given: lengths are those of a run of `iterations` steps, and stretched."""
    recipe: Recipe
    plan: Plan
    """What is decided up to the present step."""
    ahead: tuple[Entry, ...]
    """Entries for later steps, when a recorded plan is repeated."""
    clock: Stopwatch
    """Measures the time that counts: the whole command except evaluations."""
    guess: float
    most: int
    machine: Machine
    ended: bool | None = False
    """Whether the plan, with what is ahead, reaches to the end of a run."""
    rounds: list[tuple[float, int]] = field(default_factory=list)
    """How the scene grew: after each densification, the share of the run done, and the Gaussians."""
    saving: float = SAVING_SECONDS_PER_GAUSSIAN
    _tried: bool = False
    _window: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    """Seconds on the clock when it began; steps, and the sums of their pixels and Gaussians."""

    def course(self) -> Course:
        return plans.course(self.config, self.plan)

    def stretched(self) -> TrainConfig:
        return plans.stretched(self.config, self.plan)

    def begin(self) -> None:
        self.clock.start()
        self._window = [self.clock.seconds, 0.0, 0.0, 0.0]

    def record(self) -> dict[str, Any]:
        """For checkpoints."""
        return {"used": self.clock.seconds, "plan": plans.to_record(self.plan), "rounds": self.rounds}

    def whole(self) -> Plan:
        """With what a record says of later steps."""
        return dataclasses.replace(self.plan, entries=(*self.plan.entries, *self.ahead), ended=self.ended)

    def try_saving(self, step: int, save: Callable[[], int]) -> None:
        """Once: by `save`, which gives the number of Gaussians that it saved for trial. Disks differ by far
        more than processors do."""
        if self._tried or step < TRIAL_STEP or self.ahead or self.config.seconds is None:
            return
        self._tried, began = True, self.clock.seconds
        with contextlib.suppress(OutputError):  # a full disk: there may be room at the end
            saved = save()
            self.saving = TRIAL_MARGIN * (self.clock.seconds - began) / max(1, saved)
        self._window[0] += self.clock.seconds - began  # no step took that long

    def stepped(self, step: int, pixels: float, gaussians: int) -> Entry | None:
        """After each step: the entry that is new from here on, if there is one."""
        for at, amount in enumerate((1.0, float(pixels), float(gaussians)), start=1):
            self._window[at] += amount
        follows = bool(self.ahead) or self.config.seconds is None
        entry = self._recorded(step) if follows else self._decided(step, gaussians)
        if entry is not None:
            self.plan = self.plan.with_entry(entry)
            self.ended = follows and self.ended
        if step >= self.plan.end:
            self.ended = True
        return entry

    def densified(self, change: Densified) -> None:
        entry = self.plan.entries[-1]
        free = change.gaussians < LIMITED * entry.budget
        if free or len(self.rounds) < SURE_ROUNDS:
            self.rounds.append((self.plan.done(change.step), change.gaussians))

    def told(self, entry: Entry) -> Planned:
        left = self.plan.seconds - entry.used
        return Planned(entry.step, entry.end, entry.target, entry.finest, self.plan.seconds, max(0.0, left))

    def enough(self, step: int) -> Warned | None:
        """At the end of a run that has time left. Before, nobody knows: early steps are the fastest."""
        early = self.config.seconds is not None and self.clock.seconds < EARLY_END * self.plan.seconds
        if step < self.plan.end or step < most_steps(self.recipe.photos) or not early:
            return None
        return Warned(
            f"The run ends early, after {MOST_LOOKS} looks at each of {self.recipe.photos} photos: "
            "more steps would only learn them by heart.",
            "More photos help; --iterations in place of --minutes gives more steps all the same.",
        )

    def _recorded(self, step: int) -> Entry | None:
        if not self.ahead or self.ahead[0].step > step:
            return None
        entry, *later = self.ahead
        self.ahead = tuple(later)
        self._close_window()
        return entry

    def _decided(self, step: int, gaussians: int) -> Entry | None:
        left = self.plan.seconds - self.clock.seconds - saving_seconds(gaussians, self.saving)
        before = self.plan.entries[-1]
        if left > 0 and not self._due(step, before):
            return None
        self._close_window()
        here = Situation(
            step=step,
            done=self.plan.done(step),
            gaussians=gaussians,
            left=max(0.0, left),
            used=self.clock.seconds,
            natural=natural_growth(self.rounds, self.recipe.grows_until, self.guess),
            most=self.most,
            rounds=len(self.rounds),
        )
        entry = next_entry(self.recipe, self.machine, here, before)
        return entry if _differs(entry, before, here.done < self.recipe.grows_until) else None

    def _due(self, step: int, before: Entry) -> bool:
        grows = self.plan.done(step) < self.recipe.grows_until and step % before.interval == 0
        gone = self.clock.seconds - self._window[0]
        return grows or step in EARLY_STEPS or gone >= CHECK_SHARE * self.plan.seconds

    def _close_window(self) -> None:
        begun, steps, pixels, gaussians = self._window
        now = self.clock.seconds
        if steps:
            self.machine.observe(now - begun, round(steps), pixels / steps, gaussians / steps)
        self._window = [now, 0.0, 0.0, 0.0]


def _differs(entry: Entry, before: Entry, growing: bool) -> bool:
    small = abs(entry.end - before.end) <= max(1, UNCHANGED * (before.end - entry.step))
    return growing or not small or entry.end <= entry.step or entry.finest != before.finest


def saving_seconds(gaussians: int, each: float = SAVING_SECONDS_PER_GAUSSIAN) -> float:
    return SAVING_SECONDS + each * gaussians


# ---- how one begins ---------------------------------------------------------------------------------------
def keeper_for(
    config: TrainConfig,
    scene: Scene,
    expected: Prediction,
    began: Stopwatch,
    step: int,
    timing: Timing | None,
) -> Keeper | None:
    """None where a run has a number of steps. `began`: the clock of the command."""
    if config.seconds is None and config.plan is None:
        return None
    # Plans have a budget for every size of photos, and go by growth that nothing else holds.
    config = dataclasses.replace(config, progressive=_usable(config, scene), max_per_pixel=0.0)
    recipe = recipe_of(config, scene)
    most = _most(config, expected)
    if step == 0:
        first = first_entry(recipe, expected.gaussians, most)
        _require_time(config, began.seconds, expected.gaussians)
        whole = Plan(config.seconds or 0.0, plans.settings_of(config), (first,), ended=False)
        if config.plan is not None:
            whole = repeated_plan(config.plan, config, recipe.finest)
        clock = began
    else:
        whole, clock = plan_so_far(config, step, timing), began
        if timing is not None:
            clock = began.another(timing.used)
    return Keeper(
        config=config,
        recipe=recipe,
        plan=whole.upto(step),
        ahead=tuple(entry for entry in whole.entries if entry.step > step),
        clock=clock,
        guess=max(NATURAL_SHARE * typical_gaussians(scene), expected.gaussians),
        most=most,
        machine=Machine(MEMORY_SHARE * max(1.0, whole.seconds)),
        ended=whole.ended,
        rounds=[] if timing is None else list(timing.rounds),
    )


def _require_time(config: TrainConfig, used: float, gaussians: int) -> None:
    if config.seconds is None or used + saving_seconds(gaussians) < config.seconds:
        return
    raise UsageError(
        f"Reading the scene and saving a model take {duration_text(used + saving_seconds(gaussians))}, "
        f"which leaves no time to train of {duration_text(config.seconds)}. "
        f"Give it {_comfortable(used)} or more."
    )


def _comfortable(used: float) -> str:
    return duration_text(max(10, 5 * math.ceil(used)))


def _most(config: TrainConfig, expected: Prediction) -> int:
    """Gaussians that memory and the user allow."""
    room = FREE_SHARE * expected.available_bytes - expected.start_bytes
    fitting = expected.gaussians + max(0, int(room // expected.bytes_per_gaussian))
    limits = [fitting, config.max_gaussians, expected.cap.most_gaussians if expected.cap else None]
    return max(1, min(limit for limit in limits if limit is not None))


def _usable(config: TrainConfig, scene: Scene) -> str:
    """Stages whose photos are large enough to learn from."""
    return progressive.text(
        tuple(stage for stage in progressive.parse(config.progressive) if _large_enough(stage.divisor, scene))
    )


def _large_enough(divisor: int, scene: Scene) -> bool:
    smallest = min(min(view.photo.width, view.photo.height) for view in scene.train)
    return smallest // divisor >= progressive.SMALLEST_SIDE


def recipe_of(config: TrainConfig, scene: Scene) -> Recipe:
    whole, views = config.iterations, scene.train
    return Recipe(
        steps=whole,
        grows_from=min(1.0, config.densify_from_iter / whole),
        grows_until=0.0 if config.densification == "none" else min(1.0, config.densify_until_iter / whole),
        stages=tuple((stage.divisor, stage.last / whole) for stage in progressive.parse(config.progressive)),
        pixels=progressive.pixels_of(views),
        finest=tuple(divisor for divisor in SIZES if divisor == 1 or _large_enough(divisor, scene)),
        lowest_threshold=lowest_threshold(len(views)),
        photos=len(views),
    )
