"""`splatmeter eval`: PSNR, SSIM, L1 and LPIPS on held-out and training photos, at one or several scales."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from splatmeter import process_memory
from splatmeter.cli import arguments, models
from splatmeter.cli.models import ModelArguments, say
from splatmeter.errors import MissingExtra, MissingFile, UsageError
from splatmeter.evaluate import results
from splatmeter.evaluate.exposure_fit import PROTOCOLS, ExposureProtocol
from splatmeter.evaluate.lpips import Lpips
from splatmeter.evaluate.metrics import Pixels
from splatmeter.evaluate.protocol import TRAIN_VIEWS, Perceptual, Report, evaluate_views, evenly, means_of
from splatmeter.evaluate.renders import ContactSheet, RenderFolder
from splatmeter.models.drawing import raster_settings
from splatmeter.models.opening import Opened, finite_table, open_model
from splatmeter.ops import F32
from splatmeter.photos.cache import PhotoCache
from splatmeter.scene.scene import View

DESCRIPTION = """Judge a trained model on held-out and training photos.

PSNR, SSIM and L1 are over 8-bit pictures, rounded half up, as the original's metrics script has them.
Means go to results.json and per_view.json in the run folder; other entries in these files stay.

Examples:
  splatmeter eval -m output/garden
  splatmeter eval -m output/garden --scales 1,2,4,8 --lpips none
  splatmeter eval -m output/garden output/bicycle
  splatmeter eval -m point_cloud.ply -s scenes/garden -r 4 --json"""

SMALLEST_LPIPS_SIDE = 32
LARGEST_SCALE = 64


@dataclass(frozen=True)
class EvalArguments(ModelArguments):
    scales: str = "1"
    """Divisors of the resolution, for example 1,2,4,8: lower ones are compared with averaged photos."""
    lpips: Literal["vgg", "alex", "none"] = "vgg"
    """Network of LPIPS; without weights or torch the other metrics are still computed."""
    lpips_convention: Literal["unit", "signed"] = "unit"
    """Feed [0, 1] as the original does, or [-1, 1] as LPIPS was trained."""
    lpips_weights: Path | None = None
    """Folder of LPIPS weights; else SPLATMETER_LPIPS_WEIGHTS and torch's cache are searched."""
    test_every: int | None = None
    """Judge every n-th photo in order of name as held out, whatever the run did."""
    test_count: int | None = None
    """Judge this many evenly spaced photos as held out instead."""
    exposure_protocol: ExposureProtocol | None = None
    """As it is, or fitted on a photo's left half and judged on the right one; by default as the run did."""
    train_views: int = TRAIN_VIEWS
    """How many training views to judge as well, evenly spread; 0 for none."""
    write_renders: bool = False
    """Also write renders, photos and a contact sheet (photo, render, difference)."""
    contact_sheet: Path | None = None
    """Write only that sheet: a PNG of the first 12 held-out views (training views if there are none)."""
    output: Path | None = None
    """Where results and renders go; by default the run folder (nowhere for a bare model file)."""
    json: bool = False
    """Print everything as JSON, with the figures of each view."""


def run(words: Sequence[str]) -> int:
    judged(words)
    return 0


def judged(words: Sequence[str]) -> list[dict[str, Any]]:
    """Prints what was found, and gives it: one record a model."""
    given = arguments.without_ignored(arguments.normalise(words, models.SHORT))
    lines = [
        arguments.parse(EvalArguments, "splatmeter eval", line, DESCRIPTION, models.SHORT)
        for line in one_model_each(given)
    ]
    if len(lines) > 1 and lines[0].contact_sheet is not None:
        raise UsageError("--contact-sheet is of one model; name one with -m.")
    records: list[dict[str, Any]] = []
    for chosen in lines:
        opened = open_model(chosen.model_path, chosen.iteration, chosen.engine)
        records.append(evaluate(opened, chosen, parse_scales(chosen.scales)))
        if not chosen.json:
            print(text(records[-1]))
    if lines[0].json:
        print(json.dumps(_finite(records[0] if len(records) == 1 else records), indent=1))
    return records


def one_model_each(words: Sequence[str]) -> list[list[str]]:
    """`-m A B -r 4`, as the original's metrics script takes it, as `-m A -r 4` and `-m B -r 4`."""
    if "--model-path" not in words:
        return [list(words)]
    first = words.index("--model-path") + 1
    last = first
    while last < len(words) and not words[last].startswith("--"):
        last += 1
    named = words[first:last]
    return [[*words[:first], name, *words[last:]] for name in named] or [list(words)]


def parse_scales(words: str) -> list[int]:
    try:
        scales = [int(word) for word in words.replace(" ", ",").split(",") if word]
    except ValueError:
        scales = []
    if not scales or not all(1 <= scale <= LARGEST_SCALE for scale in scales):
        raise UsageError(f"--scales {words!r} is not a list of divisors; write for example 1,2,4,8.")
    return list(dict.fromkeys(scales))


def evaluate(opened: Opened, chosen: EvalArguments, scales: Sequence[int]) -> dict[str, Any]:
    config = models.scene_config(opened, chosen)
    settings = raster_settings(opened, config, chosen.kernel_size, say)
    scene = models.open_scene(config)
    folder = chosen.output or opened.folder
    if folder is not None:
        results.check(folder)
    if not scene.test:
        say("The run kept no test views (trained without --eval): only training views are judged.")
    learned = models.learned_views(opened, config, scene)
    if learned:
        say(
            f"Warning: the run trained on {len(learned)} of these {len(scene.test)} test views. Their "
            "figures say how well it knows them by heart; train with --eval to learn how good it is."
        )
    backend = chosen.engine()
    model = backend.upload(finite_table(opened, say))
    process_memory.reset_peak()
    with ExitStack() as stack:
        judge = Judging(
            render=lambda view: model.render(view.camera, settings).color,
            similarity=backend.similarity,
            photos=stack.enter_context(PhotoCache(0)),
            perceptual=_perceptual(chosen, stack),
            exposure=chosen.exposure_protocol or config.exposure_protocol,
        )
        splits = {"test": list(scene.test), "train": evenly(scene.train, max(0, chosen.train_views))}
        splits = {split: views for split, views in splits.items() if views}
        found: dict[str, dict[int, Report]] = {split: {} for split in splits}
        for split, views in splits.items():
            for scale in scales:
                first = split == next(iter(splits)) and scale == scales[0]
                sheet = chosen.contact_sheet if first else None
                writer = _writer(chosen, folder, split, opened, scale, sheet)
                found[split][scale] = judge(views, scale, writer)
    if folder is not None:
        for scale, report in found.get("test", {}).items():
            results.write(folder, results.method_name(opened.step, scale, judge.exposure), report)
    record = {split: _summary(reports, splits[split]) for split, reports in found.items()}
    about = _about(opened, settings, config, chosen) | {"device": backend.facts.device}
    about |= {"exposure_protocol": judge.exposure, "trained_on_test_views": len(learned)}
    return about | {"splits": record, "lpips": judge.lpips_record()}


@dataclass(frozen=True, slots=True, eq=False)
class Judging:
    """Everything an evaluation of one model needs, whatever the views."""

    render: Callable[[View], F32]
    similarity: Any
    photos: PhotoCache
    perceptual: Lpips | None
    exposure: ExposureProtocol

    def __call__(self, views: Sequence[View], scale: int, writer: Writer | None) -> Report:
        report = evaluate_views(
            views,
            self.render,
            self.photos,
            self.similarity,
            scale=scale,
            perceptual=_careful(self.perceptual) if self.perceptual else None,
            observe=writer,
            exposure=self.exposure,
        )
        if writer is not None:
            writer.finish()
        return report

    def lpips_record(self) -> dict[str, Any] | None:
        if self.perceptual is None:
            return None
        return {"name": self.perceptual.name, "peak_memory_bytes": self.perceptual.peak_memory_bytes}


class Writer:
    """Keeps what is judged, as pictures: each of them, a sheet at the place asked for, or both."""

    def __init__(self, folder: RenderFolder | None, sheet: Path | None) -> None:
        self._folder = folder
        self._sheet = ContactSheet()
        self._places = [] if sheet is None else [sheet]
        if folder is not None:
            self._places.append(folder.folder / f"contact_sheet_{folder.resolution}.png")

    def __call__(self, number: int, view: View, render: Pixels, photo: Pixels) -> None:
        if self._folder is not None:
            self._folder.write(number, render, photo)
        self._sheet.add(render, photo)

    def finish(self) -> None:
        for place in self._places:
            self._sheet.write(place)


def _writer(
    chosen: EvalArguments, folder: Path | None, split: str, opened: Opened, scale: int, sheet: Path | None
) -> Writer | None:
    if not chosen.write_renders:
        return Writer(None, sheet) if sheet is not None else None
    if folder is None:
        raise UsageError("A bare model file has no folder for renders; pass --output.")
    config = models.scene_config(opened, chosen)
    label = str(config.resolution) if scale == 1 else f"{config.resolution}_scale_{scale}"
    return Writer(RenderFolder(folder, split, opened.step, label), sheet)


def _perceptual(chosen: EvalArguments, stack: ExitStack) -> Lpips | None:
    if chosen.lpips == "none":
        return None
    try:
        return stack.enter_context(Lpips(chosen.lpips, chosen.lpips_convention, chosen.lpips_weights))
    except (MissingFile, MissingExtra) as problem:
        if chosen.lpips_weights is not None and not chosen.lpips_weights.is_dir():
            raise
        say(f"{problem} Other metrics follow (--lpips none silences this).")
        return None


def _careful(lpips: Lpips) -> Perceptual:
    """Pictures too small for the network have no LPIPS."""
    return lambda one, other: lpips(one, other) if min(one.shape[1:]) >= SMALLEST_LPIPS_SIDE else math.nan


# ---- telling ----------------------------------------------------------------------------------------------
def _about(opened: Opened, settings: Any, config: Any, chosen: EvalArguments) -> dict[str, Any]:
    return {
        "model": str(opened.path),
        "step": opened.step,
        "gaussians": opened.model.table.count,
        "nonfinite": opened.model.nonfinite,
        "scene": str(config.source_path),
        "resolution": config.resolution,
        "kernel_size": settings.kernel_size,
        "compensate": settings.compensate,
        "sh_degree": settings.sh_degree,
        "backend": chosen.backend,
        "peak_memory_bytes": process_memory.peak_bytes(),
    }


def _summary(reports: Mapping[int, Report], views: Sequence[View]) -> dict[str, Any]:
    return {str(scale): _of_scale(report, views) for scale, report in reports.items()}


def _of_scale(report: Report, views: Sequence[View]) -> dict[str, Any]:
    record: dict[str, Any] = {"views": len(views), "means": report.means, "worst": report.worst}
    levels = sorted({view.level for view in views})
    if len(levels) > 1:
        rows = list(zip(views, report.per_view.values(), strict=True))
        record["levels"] = {str(k): means_of(row for view, row in rows if view.level == k) for k in levels}
    return record | {"per_view": report.per_view}


def text(record: Mapping[str, Any]) -> str:
    """The same as a table for people."""
    compensated = "compensated" if record["compensate"] else "plain"
    lines = [
        f"{record['model']}: {record['gaussians']} Gaussians, step {record['step']}, "
        f"kernel {record['kernel_size']:g} {compensated}",
        f"{'split':<7}{'scale':>6}{'views':>7}{'PSNR':>9}{'SSIM':>9}{'LPIPS':>9}{'L1':>9}  worst view",
    ]
    for split, scales in record["splits"].items():
        for scale, found in scales.items():
            worst = f"{found['worst']} ({found['per_view'][found['worst']]['psnr']:.2f} dB)"
            lines.append(f"{split:<7}{scale:>6}{found['views']:>7}{_numbers(found['means'])}  {worst}")
            for level, means in found.get("levels", {}).items():
                lines.append(f"{'  level':<7}{level:>6}{'':>7}{_numbers(means)}")
    if record["trained_on_test_views"]:
        lines.append(f"NOT HELD OUT: the run trained on {record['trained_on_test_views']} of the test views.")
    lines.append(f"Exposure protocol: {PROTOCOLS[record['exposure_protocol']]}.")
    if record["lpips"]:
        lines.append(f"LPIPS is {record['lpips']['name']}.")
    return "\n".join(lines)


def _numbers(means: Mapping[str, float]) -> str:
    lpips = means.get("lpips", math.nan)
    perceptual = f"{'-':>9}" if math.isnan(lpips) else f"{lpips:>9.4f}"
    return f"{means['psnr']:>9.3f}{means['ssim']:>9.4f}{perceptual}{means['l1']:>9.5f}"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
