"""Events into TensorBoard, under the original's names where it has them and ours beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from splatmeter.errors import MissingExtra
from splatmeter.events import Densified, Evaluated, Event, Finished, Progress

IMAGES = 5
"""Views shown per split."""


class TensorBoard:
    """Writes next to the run; needs the extra `tensorboard`."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise MissingExtra("Writing for TensorBoard", "tensorboard") from None
        self._open = lambda: SummaryWriter(str(folder))
        self._writer: Any = None  # made at the first event: the folder may yet be refused
        self._last: Progress | None = None
        self._shown: set[str] = set()

    def __call__(self, event: Event) -> None:
        if self._writer is None:
            self._writer = self._open()
        if isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, Densified):
            for name in ("cloned", "split", "pruned", "gaussians", "mean_opacity"):
                self._scalar(f"densification/{name}", getattr(event, name), event.step)
        elif isinstance(event, Evaluated):
            self._evaluated(event)
        elif isinstance(event, Finished):
            self._scalar("mean_opacity", event.mean_opacity, event.step)
            self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _progress(self, event: Progress) -> None:
        self._scalar("train_loss_patches/l1_loss", event.l1_last, event.step)
        self._scalar("train_loss_patches/total_loss", event.loss_last, event.step)
        self._scalar("train_loss_patches/average_loss", event.loss, event.step)
        self._scalar("total_points", event.gaussians, event.step)
        self._scalar("memory/resident_bytes", event.memory_bytes, event.step)
        before = self._last
        if before is not None and event.step > before.step:
            steps, seconds = event.step - before.step, event.clock_seconds - before.clock_seconds
            self._scalar("iter_time", 1000 * seconds / steps, event.step)
            for name, value in event.passes.items():
                self._scalar(f"pass_ms/{name}", 1000 * value / steps, event.step)
        self._last = event

    def _evaluated(self, event: Evaluated) -> None:
        for name, value in event.metrics.items():
            shown = "l1_loss" if name == "l1" else name
            self._scalar(f"{event.split}/loss_viewpoint - {shown}", value, event.step)
        worst = min((row["psnr"] for row in event.per_view.values() if "psnr" in row), default=math.nan)
        self._scalar(f"{event.split}/worst_view - psnr", worst, event.step)
        self._scalar("memory/evaluation_peak_bytes", event.peak_memory_bytes, event.step)
        self._images(event.split, event.files, event.step)
        if "opacities" in event.files and Path(event.files["opacities"]).exists():
            self._writer.add_histogram(
                "scene/opacity_histogram", np.load(event.files["opacities"]), event.step
            )
        self._writer.flush()

    def _images(self, split: str, files: Mapping[str, str], step: int) -> None:
        """A render each time, the photo only the first time."""
        from PIL import Image

        pictures = [(key.split("/", 1), file) for key, file in files.items() if "/" in key]
        for (kind, name), file in pictures[: 2 * IMAGES]:
            tag = f"{split}_view_{name}/{kind}"
            if (kind == "ground_truth" and tag in self._shown) or not Path(file).exists():
                continue
            self._shown.add(tag)
            with Image.open(file) as image:
                self._writer.add_image(tag, np.asarray(image), step, dataformats="HWC")

    def _scalar(self, name: str, value: float, step: int) -> None:
        """tensorboardX would turn blanks in the original's names into underscores: those go around it."""
        if not math.isfinite(value):
            return
        files = getattr(self._writer, "file_writer", None)
        if files is None or " " not in name:
            self._writer.add_scalar(name, value, step)
            return
        # protobuf makes the class at run time, where type checkers cannot see it
        from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

        files.add_summary(Summary(value=[Summary.Value(tag=name, simple_value=value)]), step)
