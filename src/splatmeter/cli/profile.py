"""`splatmeter profile`: where a step's time goes, and how near each pass comes to what the machine can do."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splatmeter.backends.registry import checked_threads
from splatmeter.cli import arguments
from splatmeter.errors import OutputError, UsageError
from splatmeter.files.atomic import write_text

if TYPE_CHECKING:
    from splatmeter.backend import Backend, Model
    from splatmeter.backends.native.engine import Engine
    from splatmeter.backends.native.limits import Counts, Limits
    from splatmeter.models.opening import Opened
    from splatmeter.ops import RasterSettings
    from splatmeter.scene.scene import Scene, View

SHORT = {
    "-s": "--source-path",
    "-m": "--model-path",
    "--start-checkpoint": "--model-path",
    "-r": "--resolution",
    "-i": "--images",
}
DESCRIPTION = """Show where the time of a training step goes.

Runs training steps on the Gaussians given: those of a model or checkpoint, else one for each point of the
scene. They hardly move (the learning rates are tiny), so every step does the work of the first. For each pass
the table tells milliseconds, its share of the step, what share it reaches of the limit it is nearest to, and
what bounds it: memory (bandwidth), arithmetic (fused multiply-adds, vector operations of any kind, or
divisions), or latency, if it does not reach half of any limit. Limits are measured here first. How often a
pass does its work is counted; how many operations that takes each time is estimated from the source
(cli/profile_work.py). On a card the limits are computed from its clocks, and what a kernel must move and
issue is a model: backends/cuda/work_model.py. Nothing else should run meanwhile.

Examples:
  splatmeter profile
  splatmeter profile -s scenes/garden -r 4 -m output/garden --iterations 50
  splatmeter profile -m output/garden/chkpnt7000.safetensors --device cpu --threads 1 --json profile.json"""

TINY_RATE = 1e-7
WARM_UP = 3
MOST_COUNTED = 5
"""Views whose work is counted pixel by pixel; the counts of the others are taken to be alike."""


@dataclass(frozen=True)
class ProfileArguments:
    source_path: Path | None = None
    """Scene folder; by default the model's own, and without a model the built-in one."""
    model_path: Path | None = None
    """Run folder, point_cloud.ply or checkpoint to take the Gaussians from."""
    iteration: int = -1
    """Which saved model of a run folder; -1 is the latest."""
    resolution: int = -1
    """1, 2, 4, ... shrink the photos by that factor; -1 limits the width to 1600; others are the width."""
    images: str = "images"
    """Folder of photos inside a COLMAP scene."""
    iterations: int = 30
    """Steps that are timed, after three that are not."""
    device: str = "auto"
    """cpu, cuda, cuda:1, ... or auto: a graphics card that passes its self-test, timed by its own clock."""
    threads: int | None = None
    """Threads of the engine; by default one per processor this process may use."""
    quick: bool = False
    """Without a scene: the small edition of the built-in one."""
    json: Path | None = None
    """Also write everything measured to this file."""


@dataclass(frozen=True, slots=True)
class Measured:
    seconds: float
    """Whole steps."""
    passes: dict[str, float]
    counts: Counts
    """Means over the views counted."""
    clock_seconds: float
    """CPU time of the training clock and of reading the pass times, per step."""


def run(words: Sequence[str]) -> int:
    chosen = arguments.parse(ProfileArguments, "splatmeter profile", words, DESCRIPTION, SHORT)
    if chosen.iterations < 1:
        raise UsageError(f"--iterations is {chosen.iterations}, but must be 1 or more.")
    threads = checked_threads(chosen.threads)
    if chosen.json is not None and chosen.json.is_dir():
        raise OutputError(f"{chosen.json} is a folder. Name a file with --json.")
    from splatmeter.backends.native import backend_of, native_engine
    from splatmeter.backends.native.limits import measure_limits
    from splatmeter.cli import profile_card
    from splatmeter.models.opening import open_model

    if (card := profile_card.card_of(chosen.device, threads)) is not None:
        return profile_card.run(chosen, card)
    engine = native_engine(threads)
    backend = backend_of(engine)
    opened = None
    if chosen.model_path is not None:
        opened = open_model(chosen.model_path, chosen.iteration, lambda: backend)
    scene = open_scene(chosen, opened)
    model, degree = gaussians(opened, scene, backend)
    del opened
    limits = measure_limits(engine)
    measured = measure(engine, model, scene.train, degree, chosen.iterations)
    record = report(measured, limits, scene, degree, chosen.iterations, backend)
    print(table_text(record))
    if chosen.json is not None:
        write(chosen.json, record)
    return 0


def open_scene(chosen: ProfileArguments, opened: Opened | None) -> Scene:
    """The one named, else the model's own, else the built-in one."""
    from splatmeter.scene import demo
    from splatmeter.scene.scene import SceneOptions, load_scene

    source = chosen.source_path
    if source is None and opened is not None:
        if opened.config is None or opened.config.source_path == Path():
            raise UsageError(f"Which scene? {opened.path} does not tell; pass the scene's folder with -s.")
        source = opened.config.source_path
    elif source is None:
        source = demo.cached_demo_scene(quick=chosen.quick, threads=chosen.threads)
    scene = load_scene(SceneOptions(source, images=chosen.images, resolution=chosen.resolution))
    for note in scene.notes:
        print(note, file=sys.stderr)
    return scene


def gaussians(opened: Opened | None, scene: Scene, backend: Backend) -> tuple[Model, int]:
    """A trainable model and the degree of its colours; a file's optimizer starts anew."""
    from splatmeter.cli.models import say
    from splatmeter.gaussians import initialize
    from splatmeter.models.opening import finite_table
    from splatmeter.ops import FILTER_3D, empty_table

    if opened is None:
        model = backend.upload(initialize.from_points(scene.points, backend))
        model.refresh_filter([view.camera for view in scene.train])
        return model, 3
    given = finite_table(opened, say)
    table = empty_table(given.count)
    table.geometry[:, : FILTER_3D + 1] = given.geometry[:, : FILTER_3D + 1]
    table.harmonics[:] = given.harmonics
    return backend.upload(table), opened.model.sh_degree


def measure(engine: Engine, model: Model, views: Sequence[View], degree: int, steps: int) -> Measured:
    """Photos are decoded before; the counting of a view comes after all timed steps."""
    from splatmeter.backends.native.limits import stopwatch_seconds_per_step
    from splatmeter.ops import RasterSettings
    from splatmeter.photos.photo import read

    used = [views[index * len(views) // min(steps, len(views))] for index in range(min(steps, len(views)))]
    photos = [read(view.photo) for view in used]  # u8 [3, H, W] each
    step = TimedStep(engine, model, RasterSettings(sh_degree=degree))
    for number in range(WARM_UP):
        step(used[number % len(used)], photos[number % len(used)])
    engine.timings()
    start = time.perf_counter()
    for number in range(steps):
        step(used[number % len(used)], photos[number % len(used)])
    seconds = time.perf_counter() - start
    passes = dict(engine.timings())
    counts = mean_counts(step, used[:MOST_COUNTED], photos)
    return Measured(seconds, passes, counts, stopwatch_seconds_per_step() + clock_cost(engine))


class TimedStep:
    def __init__(self, engine: Engine, model: Model, settings: RasterSettings) -> None:
        from splatmeter.ops import Rates

        self.engine, self.model, self.settings = engine, model, settings
        self.rates = Rates(*[TINY_RATE] * 6)

    def __call__(self, view: View, photo: Any) -> None:
        from splatmeter.backend import TrainStep

        self.model.train_step(TrainStep(view.camera, photo, self.settings, 0.2, self.rates))

    def count(self, view: View) -> Counts:
        from splatmeter.backends.native.limits import last_counts

        self.model.render(view.camera, self.settings)
        return last_counts(self.engine)


def mean_counts(step: TimedStep, views: Sequence[View], photos: Sequence[Any]) -> Counts:
    """A step after each, so that as many rows are behind as in training."""
    from splatmeter.backends.native.limits import Counts

    counted: list[Counts] = []
    for view, photo in zip(views, photos, strict=False):
        counted.append(step.count(view))
        step(view, photo)
    fields = [field.name for field in dataclasses.fields(Counts)]
    return Counts(**{name: sum(getattr(one, name) for one in counted) / len(counted) for name in fields})


def clock_cost(engine: Engine, calls: int = 2000) -> float:
    """CPU seconds a step of the training clock: paused, started and pass times read at every Progress."""
    from splatmeter.train.config import TrainConfig
    from splatmeter.train.stopwatch import Stopwatch

    clock = Stopwatch()
    clock.start()
    start = time.process_time()
    for _ in range(calls):
        with clock.paused():
            _ = clock.seconds
        engine.timings()
    at_progress = (time.process_time() - start) / calls / TrainConfig.progress_interval
    start = time.process_time()
    for _ in range(calls):
        _ = time.perf_counter() - time.perf_counter()  # every step: how long it waited for its photo
    return at_progress + (time.process_time() - start) / calls


# ---- what is said -----------------------------------------------------------------------------------------
def report(
    measured: Measured, limits: Limits, scene: Scene, degree: int, steps: int, backend: Backend
) -> dict[str, Any]:
    """Everything as plain values; the table is made from it."""
    from splatmeter.cli.profile_work import Work, share_of, work_of_passes

    camera = scene.train[0].camera
    pixels = camera.width * camera.height
    step_seconds = measured.seconds / steps
    works = work_of_passes(measured.counts, pixels, degree)
    passes = {}
    for name, total in measured.passes.items():
        work = works.get(name, Work(0.0, 0.0))  # a pass without a model reaches 0 % of any limit
        share = share_of(work, total / steps, limits)
        passes[name] = {
            "milliseconds": 1e3 * total / steps,
            "share_of_step": total / measured.seconds,
            "gigaflop": work.flops / 1e9,
            "megabytes": work.bytes / 1e6,
            **dataclasses.asdict(share),
        }
    outside = measured.seconds - sum(measured.passes.values())
    return {
        "scene": str(scene.source),
        "width": camera.width,
        "height": camera.height,
        "sh_degree": degree,
        "steps": steps,
        "engine": {"device": backend.facts.device, **backend.facts.details},
        "limits": {
            "gigaflops": limits.flops / 1e9,
            "gigabytes_per_second": limits.bandwidth / 1e9,
            "gigaoperations": limits.operations / 1e9,
            "gigadivisions": limits.divisions / 1e9,
        },
        "counts": dataclasses.asdict(measured.counts),
        "step_milliseconds": 1e3 * step_seconds,
        "passes": passes,
        "outside_milliseconds": 1e3 * outside / steps,
        "stopwatch_share": measured.clock_seconds / step_seconds,
    }


def table_text(record: dict[str, Any]) -> str:
    counts, limits, engine = record["counts"], record["limits"], record["engine"]
    step = record["step_milliseconds"]
    lines = [
        f"{counts['gaussians']:,.0f} Gaussians, {record['width']}x{record['height']}, SH degree "
        f"{record['sh_degree']}, {engine['threads']} threads, {engine['instruction_set']}",
        f"{counts['visible']:,.0f} visible, {counts['seen']:,.0f} seen, "
        f"{counts['pairs']:,.0f} pairs with tiles, "
        f"{counts['pixels'] / (record['width'] * record['height']):.1f} Gaussians blended per pixel",
        f"limits measured here: {limits['gigaflops']:.0f} Gflop/s, "
        f"{limits['gigabytes_per_second']:.1f} GB/s, "
        f"{limits['gigaoperations']:.1f} G vector operations/s, {limits['gigadivisions']:.2f} G divisions/s",
        "",
        f"{'pass':<16}{'ms':>9}{'of step':>9}{'Gflop':>9}{'MB':>9}{'of limit':>10}  bound by",
    ]
    for name, entry in record["passes"].items():
        lines.append(
            f"{name:<16}{entry['milliseconds']:>9.2f}{entry['share_of_step']:>9.1%}{entry['gigaflop']:>9.3f}"
            f"{entry['megabytes']:>9.1f}{entry['share']:>10.0%}  {bound_text(entry)}"
        )
    outside = record["outside_milliseconds"]
    lines += [
        f"{'outside':<16}{outside:>9.2f}{outside / step:>9.1%}",
        f"{'whole step':<16}{step:>9.2f}{1:>9.1%}   {1e3 / step:.1f} a second over {record['steps']} steps",
        "",
        f"The stopwatch's own CPU time is {record['stopwatch_share']:.3%} of the step.",
    ]
    return "\n".join(lines)


def bound_text(entry: dict[str, Any]) -> str:
    if entry["limit"] == "latency":
        return f"latency (nearest: {entry['nearest']})"
    return f"{entry['limit']} ({entry['nearest']})"


def write(path: Path, record: dict[str, Any]) -> None:
    write_text(path, json.dumps(record, indent=1) + "\n")
