"""The settings by which the Gaussians of a file are drawn, where the file does not say."""

from __future__ import annotations

import dataclasses

from splatmeter.errors import UsageError
from splatmeter.models.opening import Opened, Say
from splatmeter.ops import RasterSettings
from splatmeter.train.config import PLAIN_KERNEL_SIZE, TrainConfig


def raster_settings(
    opened: Opened, config: TrainConfig, kernel_size: float | None, say: Say
) -> RasterSettings:
    """The run's own, else what the file says in a comment, else what its columns suggest."""
    base = config.raster_settings(opened.model.sh_degree)
    if opened.config is None:
        told = opened.model.settings()
        if told is None and not opened.model.filtered and kernel_size is None:
            say(
                f"{opened.path} does not say how it is to be rendered: taking it for plain 3DGS (kernel 0.3, "
                "no compensation). Pass -k 0.1 (in Python kernel_size=0.1) for a fused Mip-Splatting model."
            )
            told = RasterSettings(kernel_size=PLAIN_KERNEL_SIZE, compensate=False)
        if told is not None:
            base = dataclasses.replace(base, kernel_size=told.kernel_size, compensate=told.compensate)
    if kernel_size is not None:
        if not 0 <= kernel_size < 100:
            raise UsageError(f"--kernel-size is {kernel_size}, but must be between 0 and 100.")
        base = dataclasses.replace(base, kernel_size=kernel_size)
    return base
