"""A plan: how many steps a run has, and how it grows, as pure data that grows with the run.

Runs that are given a time instead of a number of steps (--minutes) find out on the way how many steps it is
worth. What they decide is an entry, valid from a step on; schedules depend on entries alone, so a run that
is resumed, or repeated with --plan, does the same to the last bit whatever the clock says. Everything that
goes with the number of steps goes with the share that is done. It never jumps: an entry spreads what is
left over the steps that are left.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.densify.strategies import STRATEGIES
from splatmeter.errors import InputError, MissingFile
from splatmeter.files.atomic import write_text
from splatmeter.train import plan_sense, progressive
from splatmeter.train.config import TrainConfig, to_json
from splatmeter.train.progressive import Stage

NAME = "plan.json"
VERSION = 1
_OF_THE_COMMAND = {
    "source_path", "model_path", "experiment_name", "photo_cache", "checkpoint_iterations",
    "checkpoint_interval", "checkpoint_minutes", "start_checkpoint", "resume", "overwrite",
    "exposure_protocol", "lpips", "progress_interval", "evaluation_images", "seconds", "plan",
}  # fmt: skip
"""Settings that a repeated plan does not bring along: they change no bit, or belong to the command."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Valid for the steps after `step`, until the next entry."""

    step: int
    done: float
    """Share of the run that is done after `step`."""
    end: int
    """The last step."""
    interval: int
    """Steps between densifications."""
    budget: int
    """Most Gaussians that densification may make."""
    target: int = 0
    """Gaussians that it comes to, as far as is known."""
    threshold: float = 1.0
    """Factor of --densify-grad-threshold."""
    finest: int = 1
    """Photos are never seen larger than divided by this."""
    regularize: float = 0.0
    """Weight of --regularize, unless the settings have one."""
    used: float = 0.0
    """Seconds that had gone, of those the run was given."""

    def at(self, step: int) -> float:
        """Share that is done after a step, if this entry is valid then."""
        if step >= self.end:
            return 1.0
        return self.done + (1 - self.done) * (step - self.step) / (self.end - self.step)

    def reaches(self, share: float) -> int:
        """The first step that has done a share, if this entry is valid then."""
        if share >= 1 or self.done >= 1:
            return self.end
        return self.step + math.ceil((share - self.done) / (1 - self.done) * (self.end - self.step) - 1e-9)


@dataclass(frozen=True, slots=True)
class Plan:
    seconds: float
    settings: Mapping[str, Any]
    """What the entries stretch: the run's settings, with the lengths of `iterations` steps."""
    entries: tuple[Entry, ...]
    ended: bool | None = None
    """Whether they reach to the end of a run, and are not what it expected on the way; None in files of
    versions that did not write it down."""

    @property
    def end(self) -> int:
        return self.entries[-1].end

    def done(self, step: int) -> float:
        """Share of the run after this step."""
        return next(entry for entry in reversed(self.entries) if entry.step < step or not entry.step).at(step)

    def step_at(self, share: float) -> int:
        """The first step that has done a share."""
        for entry, later in zip(self.entries, self.entries[1:], strict=False):
            if share <= later.done:
                return min(later.step, entry.reaches(share))
        return self.entries[-1].reaches(share)

    def upto(self, step: int) -> Plan:
        """As it was known when that step was done."""
        return dataclasses.replace(
            self, entries=tuple(e for e in self.entries if e.step <= step), ended=False
        )

    def with_entry(self, entry: Entry) -> Plan:
        """An entry for the same step takes the place of the one there is."""
        kept = tuple(earlier for earlier in self.entries if earlier.step < entry.step)
        return dataclasses.replace(self, entries=(*kept, entry))


# ---- what it makes of settings ----------------------------------------------------------------------------
def stretched(config: TrainConfig, plan: Plan) -> TrainConfig:
    """The settings, their lengths as the plan stretches them. What it says of steps that are done stays."""
    entry, whole = plan.entries[-1], config.iterations

    def moved(step: int) -> int:
        return plan.step_at(step / whole)

    budgets = [most for most in (config.max_gaussians, entry.budget) if most is not None]
    return dataclasses.replace(
        config,
        iterations=plan.end,
        test_iterations=tuple(plan.end if step == whole else step for step in config.test_iterations),
        save_iterations=tuple(plan.end if step == whole else step for step in config.save_iterations),
        position_lr_max_steps=max(1, moved(config.position_lr_max_steps)),
        densify_from_iter=moved(config.densify_from_iter),
        densify_until_iter=max(1, moved(config.densify_until_iter)),
        densification_interval=entry.interval,
        densify_grad_threshold=config.densify_grad_threshold * entry.threshold,
        max_gaussians=min(budgets),
        regularize=_pull(config, entry),
        progressive=progressive.text(stages(config, plan)),
    )


def _pull(config: TrainConfig, entry: Entry) -> float:
    if STRATEGIES[config.densification].explores:  # which has weights of its own
        return 0.0
    return entry.regularize if config.regularize is None else config.regularize


def stages(config: TrainConfig, plan: Plan) -> tuple[Stage, ...]:
    """Coarse to fine; the finest size that the plan allows stays to the end."""
    finest, found = plan.entries[-1].finest, []
    for stage in progressive.parse(config.progressive):
        if stage.divisor > finest:
            found.append(Stage(stage.divisor, plan.step_at(stage.last / config.iterations)))
    if finest > 1:
        found.append(Stage(finest, plan.end + 1))
    later = [
        one for one, two in itertools.pairwise([*found, None]) if one and (not two or one.last < two.last)
    ]
    return tuple(stage for stage in later if stage.last > 0)


@dataclass(frozen=True, slots=True)
class Course:
    """What depends on the share that is done, for a step."""

    plan: Plan
    rate_share: float
    """Share of the run over which rates fall."""
    degree_share: float
    """Share after which the colour gets one more degree."""

    def rates_done(self, step: int) -> float:
        return min(1.0, self.plan.done(step) / self.rate_share)

    def degree(self, step: int, limit: int) -> int:
        return min(limit, int(self.plan.done(step) / self.degree_share + 1e-9))


def course(config: TrainConfig, plan: Plan) -> Course:
    whole = config.iterations
    return Course(plan, config.position_lr_max_steps / whole, config.sh_interval / whole)


# ---- files ------------------------------------------------------------------------------------------------
def settings_of(config: TrainConfig) -> dict[str, Any]:
    return {name: value for name, value in to_json(config).items() if name not in _OF_THE_COMMAND}


def typed_settings(plan: Plan) -> dict[str, Any]:
    """As `TrainConfig` takes them."""
    return plan_sense.typed_settings(plan.settings, _OF_THE_COMMAND)


def to_record(plan: Plan) -> dict[str, Any]:
    return {"plan": VERSION, **dataclasses.asdict(plan)}


def from_record(record: Any, source: str = "The checkpoint's plan") -> Plan:
    """InputError where it is no plan, or none that a run could follow."""
    try:
        plan_sense.require_form(record, VERSION)
        entries = _without_size_of_no_step(plan_sense.typed_entries(record["entries"], Entry))
        made = Plan(float(record["seconds"]), record["settings"], entries, record.get("ended"))
        typed_settings(made)
    except plan_sense.Senseless as problem:
        raise InputError(f"{source} cannot be followed: {problem} Take the plan.json of a run.") from None
    return made


def _without_size_of_no_step(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Earlier versions wrote a size into the entry that ends a run too: the one for no time, which no step
    has seen."""
    *earlier, last = entries
    if not earlier or last.step < last.end:
        return entries
    return (*earlier, dataclasses.replace(last, finest=earlier[-1].finest))


def write(path: Path, plan: Plan) -> None:
    """Whole, but without waiting for the disk: it is written often, and checkpoints have it too."""
    write_text(path, json.dumps(to_record(plan), indent=1), durable=False)


def read(path: Path) -> Plan:
    try:
        record = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise MissingFile(
            f"There is no plan {path}. A run with --minutes writes plan.json into its folder."
        ) from None
    except (OSError, ValueError, RecursionError) as problem:
        raise InputError(f"{path} is no plan ({problem}). Take the plan.json of a run.") from None
    return from_record(record, str(path))
