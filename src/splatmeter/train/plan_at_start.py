"""The plan that a run begins with: one that it repeats, or its own so far when it goes on."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.errors import CheckpointError, InputError, UsageError
from splatmeter.train import plan as plans
from splatmeter.train.config import TrainConfig
from splatmeter.train.plan import Plan
from splatmeter.train.progressive import SMALLEST_SIDE


@dataclass(frozen=True, slots=True)
class Timing:
    """What a checkpoint says about the time its run has used."""

    used: float
    plan: Plan
    rounds: tuple[tuple[float, int], ...] = ()


def timing_from(record: Mapping[str, Any] | None) -> Timing | None:
    if record is None:
        return None
    try:
        rounds = tuple((float(share), int(gaussians)) for share, gaussians in record["rounds"])
        return Timing(float(record["used"]), plans.from_record(record["plan"]), rounds)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise CheckpointError(
            f"The checkpoint's plan is damaged ({problem} is missing or makes no sense). Start anew."
        ) from None


def plan_so_far(config: TrainConfig, step: int, timing: Timing | None) -> Plan:
    """What the folder and the checkpoint say of a run that goes on. The folder's record may be ahead of the
    checkpoint: what it says of steps that were lost is done again."""
    if timing is None:
        raise UsageError(
            "--minutes and --plan are for whole runs, and this one was begun with a number of steps. "
            "Go on with --iterations, or start anew."
        )
    whole = timing.plan
    path = None if config.model_path is None else Path(config.model_path) / plans.NAME
    if path is not None and path.is_file():
        recorded = plans.read(path)
        same = recorded.entries[: len(whole.entries)] == whole.entries
        whole = recorded if same else whole
    if config.seconds is not None and config.seconds != whole.seconds:
        whole = dataclasses.replace(whole.upto(step), seconds=config.seconds)
    if whole.upto(step).done(step) >= 1:
        raise UsageError(
            f"This run has ended as planned, after {step} steps: its rates have fallen to their last. "
            "Train anew with more --minutes, or with --iterations."
        )
    return whole


def repeated_plan(path: Path, config: TrainConfig, sizes: Collection[int]) -> Plan:
    """With what was asked for beside it, so that its own record repeats this run. `sizes`: what the photos
    are large enough to be divided by."""
    whole = plans.read(path)
    finest = max(entry.finest for entry in whole.entries)
    if finest not in sizes:
        raise InputError(
            f"The plan {path} shows photos at 1/{finest} of their size, and here that is less than "
            f"{SMALLEST_SIDE} pixels. Use the --resolution that it was made with."
        )
    return dataclasses.replace(whole, settings=plans.settings_of(config))


def doubts(path: Path | None) -> tuple[str, ...]:
    """About a plan that is to be repeated, as far as files of its version tell."""
    if path is None:
        return ()
    found = plans.read(path)
    if found.ended is not False:  # None: nobody wrote it down
        return ()
    return (
        f"The plan {path} is of a run that did not end: from step {found.entries[-1].step} on it has only "
        "what that run expected then. For a whole plan, go on with that run first (--resume), or let another "
        "with --minutes come to its end.",
    )
