"""Evaluation between steps: all test views and five training views, read-only and off the clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splatmeter.evaluate.protocol import Perceptual, evaluate_views, evenly
from splatmeter.evaluate.renders import write_png
from splatmeter.events import Evaluated
from splatmeter.files.atomic import replacing
from splatmeter.gaussians import gaussians
from splatmeter.ops import F32
from splatmeter.photos.cache import PhotoCache
from splatmeter.process_memory import StagePeaks, peak_bytes
from splatmeter.scene.scene import View
from splatmeter.train.assemble import Parts
from splatmeter.train.output_folder import folder_of
from splatmeter.train.state import TrainingState

HISTOGRAM_SAMPLES = 10_000


@dataclass(slots=True, eq=False)
class Judge:
    """Renders the model as it is: the backend brings rows up to date on the fly, so no bit changes."""

    parts: Parts

    def __post_init__(self) -> None:
        with self._lpips():
            pass  # missing weights or packages show now, not after hours

    def __call__(self, state: TrainingState, peaks: StagePeaks) -> Iterator[Evaluated]:
        for split, views in (
            ("test", list(self.parts.scene.test)),
            ("train", evenly(self.parts.scene.train)),
        ):
            if not views:
                continue
            with peaks.during("evaluation"):
                event = self._evaluate(state, split, views)
            yield event

    def _evaluate(self, state: TrainingState, split: str, views: list[View]) -> Evaluated:
        files: dict[str, str] = {}
        settings = self.parts.config.raster_settings(state.sh_degree)

        def render(view: View) -> F32:
            return state.model.render(view.camera, settings).color

        def keep(number: int, view: View, picture: np.ndarray, photo: np.ndarray) -> None:
            if number < self.parts.config.evaluation_images:
                for kind, pixels in (("render", picture), ("ground_truth", photo)):
                    path = self._folder(state) / f"{split}_{number:05d}_{kind}.png"
                    write_png(path, pixels)
                    files[f"{kind}/{view.name}"] = str(path)

        # A cache of its own without room: test photos must not take the room of training ones.
        with PhotoCache(0) as photos, self._lpips() as perceptual:
            report = evaluate_views(
                views,
                render,
                photos,
                self.parts.backend.similarity,
                perceptual=perceptual,
                observe=keep,
                exposure=self.parts.config.exposure_protocol,
            )
        if self.parts.config.evaluation_images:
            files["opacities"] = self._sample_opacities(state)
        told = (report.means, report.per_view, files, peak_bytes(), report.exposure)
        return Evaluated(state.step, split, *told)

    def _folder(self, state: TrainingState) -> Path:
        """Where pictures go, if any are kept."""
        return folder_of(self.parts.config) / "evaluations" / f"step_{state.step}"

    def _sample_opacities(self, state: TrainingState) -> str:
        """Evenly spaced rows: enough for a histogram, whatever the number of Gaussians."""
        path = self._folder(state) / "opacities.npy"
        sampled = slice(None, None, max(1, state.model.count // HISTOGRAM_SAMPLES))
        with replacing(path) as stream:
            np.save(stream, gaussians.opacities(state.model.download(sampled)))
        return str(path)

    def _lpips(self) -> AbstractContextManager[Perceptual | None]:
        if not self.parts.config.lpips:
            return nullcontext()
        from splatmeter.evaluate.lpips import Lpips

        return Lpips()
