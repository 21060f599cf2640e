"""Puts a run together from its configuration: scene, state, parts, and the check that it fits."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splatmeter import process_memory
from splatmeter.backend import Backend, OptimizerState
from splatmeter.densify.densifier import Densifier
from splatmeter.errors import CardUnavailable, CheckpointError, UsageError
from splatmeter.gaussians import initialize
from splatmeter.photos.cache import PhotoCache
from splatmeter.photos.whole import require_whole
from splatmeter.scene.scene import PointCloud, Scene, load_scene
from splatmeter.train import checkpoint, checkpoint_names, container, import_pth, photo_exposures, progressive
from splatmeter.train.checkpoint import Resumed
from splatmeter.train.config import TrainConfig
from splatmeter.train.first_look import FirstLook, begin
from splatmeter.train.growth import Growth
from splatmeter.train.keeper import Keeper, keeper_for
from splatmeter.train.losses import Losses
from splatmeter.train.memory_prediction import Prediction, predict
from splatmeter.train.output_folder import starting_checkpoint
from splatmeter.train.plan_at_start import doubts, timing_from
from splatmeter.train.progressive import Stages
from splatmeter.train.room import Room
from splatmeter.train.state import TrainingState, view_sampler
from splatmeter.train.step import LOOK_AHEAD, Step
from splatmeter.train.stopwatch import Stopwatch
from splatmeter.train.whole_checkpoints import whole_instead

DECODING_THREADS = 2
"""Decoding may take longer than a step: two at once still keep up with steps half as long."""


@dataclass(slots=True, eq=False)
class Parts:
    config: TrainConfig
    backend: Backend
    scene: Scene
    state: TrainingState
    photos: PhotoCache
    step: Step
    growth: Growth
    first_look: FirstLook
    clock: Stopwatch
    started_from: Path | None
    warnings: tuple[str, ...]
    prediction: Prediction
    keeper: Keeper | None = None
    """Only for a run that was given a time or a plan."""

    def follow(self, keeper: Keeper) -> None:
        """Everything that depends on the plan, anew."""
        self.config = keeper.stretched()
        room = self.growth.room
        self.step, self.growth = _moving_parts(self.config, self.scene, room, keeper)


def assemble(config: TrainConfig, backend: Backend, command: Stopwatch | None = None) -> Parts:
    """`command`: its clock, which is running.

    Reads everything and writes nothing: whatever is wrong shows before an output folder is touched."""
    scene = load_scene(config.scene_options())
    require_whole([view.photo for view in (*scene.train, *scene.test)])
    start = starting_checkpoint(config)
    expected = predicted(config, scene, backend)
    expected.require()
    resumed = _begin(config, scene, backend) if start is None else _resume(start, config, scene, backend)
    state = resumed.state
    timing = timing_from(resumed.timing)
    keeper = keeper_for(config, scene, expected, command or Stopwatch(), state.step, timing)
    if keeper is None and state.step >= config.iterations:
        raise UsageError(
            f"{start} has {state.step} steps already; --iterations is the absolute end, {config.iterations}. "
            "Raise --iterations to go on."
        )
    config = config if keeper is None else keeper.stretched()
    photos = PhotoCache(expected.photo_cache_bytes, DECODING_THREADS, LOOK_AHEAD, backend.photo)
    step, growth = _moving_parts(config, scene, Room(backend.memory, expected, photos), keeper)
    first_look = FirstLook(config, step.views)
    uncertain = doubts(config.plan if start is None else None)
    told = (*begin(state, first_look), *photo_exposures.advice(config, bool(scene.test)))
    if start is None or start.suffix == ".pth":
        growth.refresh_filter(state.model)
    return Parts(
        config=config,
        backend=backend,
        scene=scene,
        state=state,
        photos=photos,
        step=step,
        growth=growth,
        first_look=first_look,
        clock=Stopwatch(resumed.clock_seconds),
        started_from=start,
        warnings=(*scene.notes, *uncertain, *resumed.warnings, *told, *_leaks(state, scene)),
        prediction=expected,
        keeper=keeper,
    )


def _moving_parts(
    config: TrainConfig, scene: Scene, room: Room, keeper: Keeper | None
) -> tuple[Step, Growth]:
    """What depends on lengths."""
    cap = room.prediction.cap
    budget = None if cap is None else min(cap.most_gaussians, config.max_gaussians or cap.most_gaussians)
    densifier = Densifier(config.densify_settings(scene.extent, budget))
    views = Stages(scene.train, progressive.parse(config.progressive))
    course = None if keeper is None else keeper.course()
    schedule = config.schedule(scene, None if course is None else course.rates_done)
    exposed = photo_exposures.rates(config)
    step = Step(config, views, room.photos, schedule, densifier, config.explore(), exposed, course)
    cameras = tuple(view.camera for view in scene.train)
    return step, Growth(config, densifier, cameras, room, views)


def predicted(config: TrainConfig, scene: Scene, backend: Backend) -> Prediction:
    """For the run as it would start, from points or a checkpoint. Refuses what the engine cannot do."""
    photo_exposures.require(config, backend)
    if config.densify_region is not None and not backend.knows_regions:
        raise CardUnavailable(
            f"--densify-region is not there yet on a card ({backend.facts.device}): use --device cpu."
        )
    start = starting_checkpoint(config)
    gaussians = _expected_gaussians(scene, config, start)
    return predict(config, scene, backend.memory, gaussians, from_points=start is None)


def _expected_gaussians(scene: Scene, config: TrainConfig, start: Path | None) -> int:
    """One per point, or those of the checkpoint: where it does not tell, as many as its size can hold."""
    if start is None or not start.is_file():
        return _first_points(scene, config).count
    told = container.rows_of(start, "geometry") if start.suffix == checkpoint_names.SUFFIX else None
    return start.stat().st_size // process_memory.HELD_BYTES_PER_GAUSSIAN if told is None else told


def _first_points(scene: Scene, config: TrainConfig) -> PointCloud:
    """All, or as many evenly chosen ones as --max-gaussians allows."""
    count, most = scene.points.count, config.max_gaussians
    if most is None or count <= most:
        return scene.points
    rows = np.arange(most) * count // most
    return PointCloud(scene.points.positions[rows], scene.points.colors[rows])


def _begin(config: TrainConfig, scene: Scene, backend: Backend) -> Resumed:
    points = _first_points(scene, config)
    left_out = scene.points.count - points.count
    said = f"{left_out} of {scene.points.count} points are left out: --max-gaussians is {points.count}."
    optimizer = OptimizerState(momentum=config.optimizer_momentum)
    state = TrainingState(
        model=backend.upload(initialize.from_points(points, backend), optimizer),
        losses=Losses(config.lambda_dssim),
        sampler=view_sampler(scene, config),
    )
    return Resumed(state, 0.0, {}, (said,) if left_out else ())


def _resume(start: Path, config: TrainConfig, scene: Scene, backend: Backend) -> Resumed:
    if start.suffix == ".ply":
        raise UsageError(f"{start} is a model, not a checkpoint: it has no optimizer state to go on from.")
    read = import_pth.load if start.suffix == ".pth" else checkpoint.load
    try:
        resumed = read(start, scene, config, backend)
    except CheckpointError as problem:
        if config.start_checkpoint is not None:  # somebody chose this one
            raise
        raise CheckpointError(problem.what, whole_instead(start, config)) from problem
    changed = checkpoint.changed_settings(resumed.config, config)
    if not changed:
        return resumed
    said = f"Settings differ from the checkpoint's: {', '.join(changed)}."
    if config.seconds is not None or config.plan is not None:
        said += " The plan of this run will not repeat it."
    return dataclasses.replace(resumed, warnings=(*resumed.warnings, said))


def _leaks(state: TrainingState, scene: Scene) -> list[str]:
    seen = set(state.ancestry.images) & {view.name for view in scene.test}
    if not seen:
        return []
    return [
        f"{len(seen)} of {len(scene.test)} test views (first: {min(seen)}) trained an ancestor of this run: "
        "their metrics tell nothing about new views."
    ]
