"""gsplat, OpenSplat, and any trainer whose lines can be described by patterns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from splatmeter.errors import UsageError
from splatmeter.events import Evaluated, Event, Saved
from splatmeter.lab.trainers.adapter import Foreign
from splatmeter.lab.trainers.original import NUMBER, vertex_count

_GSPLAT_BAR = re.compile(rf"loss=({NUMBER})\|.*?(\d+)/(\d+) \[")
_GSPLAT_CUT = re.compile(r"Running (?:evaluation|trajectory|compression)|^Step:\s+\d+")
_GSPLAT_METRICS = re.compile(rf"PSNR: ({NUMBER}), SSIM: ({NUMBER}), LPIPS: ({NUMBER})")
_GSPLAT_COUNT = re.compile(r"Number of GS: (\d+)|Now having (\d+) GSs|'num_GS': (\d+)")


class Gsplat(Foreign):
    """gsplat's simple_trainer: a tqdm bar with the loss in its title, and stats/*.json with the figures."""

    def __init__(self, start_step: int = 0, end_step: int = 0, output: Path | None = None) -> None:
        super().__init__(start_step, end_step)
        self.output = output

    def read(self, stream: str, text: str, seconds: float) -> Iterator[Event]:
        if count := _GSPLAT_COUNT.search(text):
            self.gaussians = int(next(group for group in count.groups() if group))
        if bar := _GSPLAT_BAR.search(text):
            self.loss = float(bar[1])
            yield from self.progress(int(bar[2]), seconds)
        elif _GSPLAT_CUT.search(text) or _GSPLAT_METRICS.search(text):
            self.clock.cut()

    def end(self, code: int, seconds: float) -> Iterator[Event]:
        if self.output:
            yield from gsplat_statistics(self.output)
        yield from super().end(code, seconds)


def gsplat_statistics(output: Path) -> Iterator[Evaluated]:
    """stats/val_step6999.json is what it measured after 7000 steps: it counts from zero."""
    for path in sorted((output / "stats").glob("val_step*.json")):
        number = re.search(r"val_step(\d+)", path.name)
        try:
            record = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if number and isinstance(record, dict):
            names = ("psnr", "ssim", "lpips")
            metrics = {
                name: float(record[name]) for name in names if isinstance(record.get(name), (int, float))
            }
            yield Evaluated(int(number[1]) + 1, "test", metrics, files={"statistics": str(path)})


_OPENSPLAT = re.compile(rf"^Step (\d+): ({NUMBER})(?: \(\d+%\))?")
_OPENSPLAT_SAVED = re.compile(r"Wrote (\S+\.ply)")


class OpenSplat(Foreign):
    """`Step 10: 0.2345 (0%)`, then `Wrote splat.ply`."""

    def __init__(self, start_step: int = 0, end_step: int = 0, directory: Path | None = None) -> None:
        super().__init__(start_step, end_step)
        self.directory = directory or Path()

    def read(self, stream: str, text: str, seconds: float) -> Iterator[Event]:
        if found := _OPENSPLAT.search(text):
            self.loss = float(found[2])
            yield from self.progress(int(found[1]), seconds)
        elif found := _OPENSPLAT_SAVED.search(text):
            self.clock.cut()
            path = self.directory / found[1]
            self.gaussians = vertex_count(path) or self.gaussians
            yield Saved(self.step, str(path), "model")


METRICS = ("l1", "psnr", "ssim", "lpips")


class Generic(Foreign):
    """Patterns with named groups: `progress` (step, total, loss, gaussians), `evaluation` (step, split,
    metrics).
    """

    def __init__(self, patterns: Mapping[str, str], start_step: int = 0, end_step: int = 0) -> None:
        super().__init__(start_step, end_step)
        self.patterns = {name: _compiled(name, pattern) for name, pattern in patterns.items()}
        if "progress" in self.patterns and "step" not in self.patterns["progress"].groupindex:
            raise UsageError("The pattern `progress` needs a group named step, such as (?P<step>\\d+)/\\d+.")

    def read(self, stream: str, text: str, seconds: float) -> Iterator[Event]:
        for name, pattern in self.patterns.items():
            found = pattern.search(text)
            if not found:
                continue
            groups = {key: item for key, item in found.groupdict().items() if item is not None}
            if name == "progress":
                yield from self._progress(groups, seconds)
            else:
                self.clock.cut()
                yield from self._evaluated(groups)
            return

    def _progress(self, groups: dict[str, str], seconds: float) -> Iterator[Event]:
        self.loss = float(groups.get("loss", self.loss))
        self.gaussians = int(groups.get("gaussians", self.gaussians))
        step = int(groups["step"])
        total = int(groups.get("total", 0))
        yield from self.progress(self.absolute(step, total) if total else step, seconds)

    def _evaluated(self, groups: dict[str, str]) -> Iterator[Event]:
        metrics = {name: float(groups[name]) for name in METRICS if name in groups}
        if metrics:
            step = int(groups.get("step", self.step))
            yield Evaluated(step, groups.get("split", "test").lower(), metrics)


def _compiled(name: str, pattern: str) -> re.Pattern[str]:
    if name not in ("progress", "evaluation", "pause"):
        raise UsageError(f"{name!r} is not a pattern the lab uses; there are progress, evaluation and pause.")
    try:
        return re.compile(pattern)
    except re.error as problem:
        raise UsageError(f"The pattern {name!r} is not a regular expression: {problem}.") from None
