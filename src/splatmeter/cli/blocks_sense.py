"""What may be said of a scene in blocks, and what contradicts the plan that its folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from splatmeter.blocks import plan_folder as divided
from splatmeter.blocks import runs
from splatmeter.blocks.grid import parse as parse_grid
from splatmeter.blocks.plan_folder import Plan
from splatmeter.errors import OutputError, UsageError
from splatmeter.train.config import TrainConfig, to_json

if TYPE_CHECKING:
    from splatmeter.cli.train import TrainArguments


def concerns(config: TrainConfig, chosen: TrainArguments) -> bool:
    """Whether this is about blocks; a folder of blocks is never taken for an ordinary run's."""
    if chosen.blocks is not None or chosen.only_block is not None:
        return True
    if chosen.polish:
        raise UsageError("--polish goes with --blocks: it trains the model that was joined of blocks.")
    if chosen.on is not None:
        raise UsageError(f"--on {chosen.on} goes with --blocks: a job trains one block.")
    if chosen.jobs or chosen.job_minutes or chosen.job_option:
        raise UsageError("--jobs, --job-minutes and --job-option belong to --on, which goes with --blocks.")
    assert config.model_path is not None
    if divided.has_plan(config.model_path):
        raise OutputError(
            f"{config.model_path} holds a scene in blocks ({divided.PLAN}). Go on with it (--resume), pass "
            "its --blocks, or choose another --model-path."
        )
    return False


def refuse(config: TrainConfig, chosen: TrainArguments) -> None:
    """What cannot be said of a scene in blocks."""
    if chosen.polish < 0:
        raise UsageError(f"--polish is {chosen.polish}, but must be 0 or more.")
    for name in ("start_checkpoint", "plan", "densify_region"):
        if getattr(config, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is for runs without --blocks: leave one of them out."
            )
    if chosen.only_block is None:
        return
    if chosen.dry_run or config.overwrite:
        raise UsageError("--only-block trains one block of a plan: leave out --dry-run and --overwrite.")
    if config.model_path is None or not divided.has_plan(config.model_path):
        if chosen.blocks is None:
            raise UsageError(
                f"--only-block trains a block of a plan, and {config.model_path} holds none. Name the scene "
                "and its --blocks too: then the plan is made first."
            )
        return
    plan = divided.read(config.model_path)
    refuse_changes(config, plan, chosen)
    if chosen.polish != plan.polish:
        raise UsageError("--polish is about the joined model: leave it out where a block is trained alone.")


def refuse_changes(config: TrainConfig, plan: Plan, chosen: TrainArguments) -> None:
    """The scene may lie elsewhere by now: whether it is the same is seen when it is read."""
    changed = runs.differences(plan.config, to_json(config), runs.PLACELESS | {"source_path"})
    if chosen.blocks is not None and parse_grid(plan.blocks_option) != parse_grid(chosen.blocks):
        changed = [f"--blocks was {plan.blocks_option} and is now {chosen.blocks}", *changed]
    if changed:
        raise _made_otherwise(config.model_path, changed[0])


def other_scene(out: Path) -> OutputError:
    return _made_otherwise(out, "the scene has changed since")


def _made_otherwise(out: Path | None, how: str) -> OutputError:
    return OutputError(
        f"{out} was made otherwise: {how}. Choose another --model-path, or begin anew with --overwrite."
    )
