"""`splatmeter train --blocks 2x2`: plans, has every block trained by a command of its own, and joins them."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splatmeter.backend import Backend
from splatmeter.blocks import plan_folder as divided
from splatmeter.blocks import runs
from splatmeter.blocks.carrying import (
    BlockCommand,
    Ended,
    Executor,
    Interrupted,
    end_with_parent,
    one_after_the_other,
)
from splatmeter.blocks.grid import parse as parse_grid
from splatmeter.blocks.join import is_joined, join
from splatmeter.blocks.mending import mend_scenes, save_model_again
from splatmeter.blocks.pieces import gathered
from splatmeter.blocks.plan_folder import Plan
from splatmeter.blocks.planning import planned
from splatmeter.blocks.polish import Polish, polish_of
from splatmeter.blocks.table import BlockTable
from splatmeter.cli.arguments import options_of
from splatmeter.cli.blocks_sense import other_scene, refuse, refuse_changes
from splatmeter.errors import CheckpointError, OutputError, UsageError
from splatmeter.photos.whole import require_whole
from splatmeter.scene.scene import Scene, fingerprint, load_scene
from splatmeter.shell import command_text
from splatmeter.train.config import TrainConfig, to_json
from splatmeter.train.folder_lock import FolderLock, wait_until_free
from splatmeter.train.output_folder import way_on
from splatmeter.units import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from splatmeter.cli.train import TrainArguments
    from splatmeter.train.stopwatch import Stopwatch

PASSED_ON = {
    "backend": "native", "device": "auto", "threads": None, "events_stdout": False, "tensorboard": False,
    "quiet": False, "view": False, "view_port": 8080, "view_host": "127.0.0.1",
}  # fmt: skip
"""Options that are about how a block's command behaves, with their defaults."""

GONE_SECONDS = 30.0
"""A job that died may leave a process behind for a moment, which the next try at its block waits for."""


def run(config: TrainConfig, chosen: TrainArguments, command: Stopwatch) -> int:
    config = dataclasses.replace(config, source_path=config.source_path.expanduser().absolute())
    assert config.model_path is not None
    refuse(config, chosen)
    if chosen.only_block is not None:
        _make_plan_first(config, chosen)
        return train_alone(config.model_path, chosen.only_block, chosen, command)
    return train_all(config, chosen, executor_of(config.model_path, chosen))


def executor_of(out: Path, chosen: TrainArguments) -> Executor:
    """One process after the other, or jobs; refused before anything is written where they cannot run."""
    from splatmeter.jobs.cluster import cluster_of, wanted_of

    wanted = wanted_of(chosen.on, chosen.jobs, chosen.job_minutes, chosen.job_option)
    if wanted is None or chosen.on is None:
        return lambda commands: one_after_the_other(commands, _say)
    from splatmeter.blocks.as_jobs import as_jobs

    cluster, folder = cluster_of(chosen.on, wanted), out.absolute() / divided.BLOCKS
    return lambda commands: as_jobs(commands, cluster, folder, chosen.jobs, _say)


# ---- all blocks -------------------------------------------------------------------------------------------
def train_all(config: TrainConfig, chosen: TrainArguments, executor: Executor) -> int:
    out = config.model_path
    assert out is not None
    scene = load_scene(config.scene_options())
    require_whole([view.photo for view in (*scene.train, *scene.test)])
    for note in scene.notes:
        print(f"Warning: {note}", file=sys.stderr)
    if chosen.dry_run:
        _, table = _planned(config, chosen, scene)
        print(json.dumps(table.record(), indent=1) if chosen.json else "\n".join(table.lines()))
        return 0
    if chosen.json:
        raise UsageError("--json goes with --dry-run; a run tells its events with --events-stdout.")
    divided.refuse_foreign(out)
    anew = config.overwrite or not divided.has_plan(out)
    # Whatever is wrong shows before the folder is touched.
    begun = _planned(config, chosen, scene) if anew else None
    if begun is not None:
        _say("\n".join(begun[1].lines()))
        begun[1].require()
    with _alone(out):
        plan = _taken_up(config, chosen, scene) if begun is None else _begin(config, *begun)
        try:
            ended = executor(commands(out, plan, chosen))
        except Interrupted as stop:
            print(way_on(out), file=sys.stderr)
            return 128 + stop.number
        missing = [
            block.name for block in plan.blocks if runs.trained(divided.run_folder(out, block.name)) is None
        ]
        if missing:
            return _told_missing(out, missing, ended)
        return _joined(config, scene, plan, chosen)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Two of these commands at once would train the same blocks."""
    lock = FolderLock(out / divided.BLOCKS)
    try:
        yield
    finally:
        lock.release()


def _planned(config: TrainConfig, chosen: TrainArguments, scene: Scene) -> tuple[Plan, BlockTable]:
    from splatmeter.cli.train import engine_for

    assert chosen.blocks is not None
    division = planned(scene, parse_grid(chosen.blocks))
    plan = divided.plan_of(chosen.blocks, to_json(config), division, config.max_gaussians)
    plan = dataclasses.replace(plan, polish=chosen.polish)
    region = next((block.region for block in plan.blocks if block.region is not None), None)
    engine = engine_for(dataclasses.replace(config, densify_region=region), chosen)
    return plan, BlockTable.of(config, scene, division, plan, engine)


def _begin(config: TrainConfig, plan: Plan, table: BlockTable) -> Plan:
    out = config.model_path
    assert out is not None
    if divided.has_plan(out):
        if not config.overwrite:
            raise OutputError(f"Another process has just begun in {out}. Choose another --model-path.")
        divided.clear(out)
    divided.write(out, plan, config.source_path, table.division.blocks)
    return plan


def _taken_up(config: TrainConfig, chosen: TrainArguments, scene: Scene) -> Plan:
    """The plan of the folder, if this command means the same."""
    out = config.model_path
    assert out is not None and chosen.blocks is not None
    plan = divided.read(out)
    refuse_changes(config, plan, chosen)
    if fingerprint(scene) != plan.division["scene"]:
        raise other_scene(out)
    plan = dataclasses.replace(plan, config=to_json(config), polish=chosen.polish)
    mended = mend_scenes(out, plan, scene, config.source_path)
    divided.write_plan(out, plan)
    told = [f"  what block {name} is trained on is written anew" for name in mended]
    _say("\n".join([f"Going on in {out}:", *told, *_states(out, plan)]))
    return plan


def _states(out: Path, plan: Plan) -> list[str]:
    lines: list[str] = []
    for block in plan.blocks:
        place = divided.run_folder(out, block.name)
        done, step = runs.trained(place), runs.reached(place)
        state = f"finished, {done.step} steps" if done else f"at step {step}" if step else "not begun"
        lines.append(f"  block {block.name}: {state}")
    return lines


def commands(out: Path, plan: Plan, chosen: TrainArguments) -> list[BlockCommand]:
    """One for each block that is not finished yet."""
    more = options_of(chosen, PASSED_ON)
    return [
        BlockCommand(
            block.name,
            ("train", "-m", str(out), "--resume", "--only-block", block.name, *more),
            divided.run_folder(out, block.name),
        )
        for block in plan.blocks
        if runs.trained(divided.run_folder(out, block.name)) is None
    ]


def _told_missing(out: Path, missing: Sequence[str], ended: Sequence[Ended]) -> int:
    codes = {end.name: end.code for end in ended}
    told = ", ".join(f"{name} (its process ended with code {codes.get(name, 0)})" for name in missing)
    what = "Block" if len(missing) == 1 else "Blocks"
    again = command_text(["train", "-m", str(out), "--resume"])
    print(
        f"splatmeter train: nothing is joined yet. {what} missing: {told}. Repeat them with: {again}",
        file=sys.stderr,
    )
    return next((code for code in codes.values() if code > 0), 1)


def _joined(config: TrainConfig, scene: Scene, plan: Plan, chosen: TrainArguments) -> int:
    from splatmeter.backends import registry

    out = config.model_path
    assert out is not None
    pieces = gathered([divided.run_folder(out, block.name) for block in plan.blocks])
    if is_joined(pieces, out):
        _say(f"All {len(plan.blocks)} blocks are finished and joined already: {out}")
    else:
        record = join(pieces, scene, config, registry.backend("native", chosen.threads))
        _say(joined_lines(record, out, bool(scene.test)))
    return _polished(polish_of(config, plan.polish), scene, chosen) if plan.polish else 0


def _polished(polish: Polish, scene: Scene, chosen: TrainArguments) -> int:
    from splatmeter.cli.train import engine_for

    if polish.done:
        _say(f"It is polished already, to step {polish.config.iterations}.")
        return 0
    backend = engine_for(polish.config, chosen)
    told = polish.too_large(scene, backend)
    if told:
        _say(told)
        return 0
    polish.begin(scene, backend)
    return _followed(polish.config, chosen, None)


def joined_lines(record: dict[str, Any], out: Path, tests: bool) -> str:
    kept = [
        f"  block {row['block']}: {count_text(row['kept'])} of {count_text(row['gaussians'])} Gaussians"
        for row in record["blocks"]
    ]
    judge = [f"Judge it with: {command_text(['eval', '-m', str(out)])}"] if tests else []
    head = f"\nJoined {len(kept)} blocks, {count_text(record['gaussians'])} Gaussians, into {out}"
    return "\n".join([head, *kept, *judge])


# ---- one block --------------------------------------------------------------------------------------------
def _make_plan_first(config: TrainConfig, chosen: TrainArguments) -> None:
    """Where there is none yet: so any of several machines may be the first."""
    out = config.model_path
    assert out is not None
    if divided.has_plan(out):
        return
    divided.refuse_foreign(out)
    plan, table = _planned(config, chosen, load_scene(config.scene_options()))
    with _alone(out):
        if not divided.has_plan(out):
            _say("\n".join(table.lines()))
            _begin(config, plan, table)


def train_alone(out: Path, name: str, chosen: TrainArguments, command: Stopwatch) -> int:
    """An ordinary run, from wherever it is."""
    from splatmeter.cli import train

    end_with_parent()
    plan = divided.read(out)
    place = divided.run_folder(out, plan.named(name).name)
    wait_until_free(place, GONE_SECONDS)
    done = runs.trained(place)
    if done is not None:
        _say(f"Block {name} is finished already, after {done.step} steps: {place}")
        return 0
    config = runs.block_config(out, plan, plan.named(name))
    try:
        if config.resume and config.seconds is None and runs.reached(place) >= config.iterations:
            save_model_again(config, train.engine_for(config, chosen))
            _say(f"Block {name} is finished: its model is written anew from its checkpoint.")
            return 0
        return _followed(config, chosen, command)
    except CheckpointError as problem:
        print(f"{problem.what} The block begins anew.", file=sys.stderr)
        return _followed(dataclasses.replace(config, resume=False, overwrite=True), chosen, command)


def _followed(config: TrainConfig, chosen: TrainArguments, command: Stopwatch | None) -> int:
    from splatmeter.cli import train

    backend: Backend = train.engine_for(config, chosen)
    present = train.listeners(config, chosen)
    seen = train.watched(backend, config, chosen, present) if chosen.view else backend
    return train.follow(config, seen, present, command)


def _say(text: str) -> None:
    """Standard output belongs to events where somebody asked for them."""
    print(text, file=sys.stderr, flush=True)
