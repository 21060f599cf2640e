"""What makes no sense in a training's settings, said by the option's name before anything is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from splatmeter.densify import region
from splatmeter.densify.strategies import STRATEGIES
from splatmeter.errors import UsageError
from splatmeter.train import progressive

if TYPE_CHECKING:
    from splatmeter.train.config import TrainConfig

_POSITIVE = (
    "iterations",
    "sh_interval",
    "position_lr_max_steps",
    "densification_interval",
    "opacity_reset_interval",
    "aggressive_prune_interval",
    "progress_interval",
    "test_every",
    "densify_grad_threshold",
)
_NOT_NEGATIVE = (
    "kernel_size",
    "position_lr_init",
    "position_lr_final",
    "position_lr_pixels",
    "feature_lr",
    "sh_lr_photos",
    "opacity_lr",
    "scaling_lr",
    "rotation_lr",
    "percent_dense",
    "densify_from_iter",
    "densify_reference_loss",
    "max_per_pixel",
    "evaluation_images",
    "seed",
    "noise_lr",
    "opacity_reg",
    "scale_reg",
    "exposure_reg",
)
_UP_TO = {"lambda_dssim": 1, "momentum": 0.99, "light_cut": 0.1, "exposure_lr": 1, "regularize": 1}
"""The most; the least is 0."""


def require_sense(config: TrainConfig) -> None:
    for name in _POSITIVE:
        _require(name, config, lambda value: 0 < value < math.inf, "above 0")
    for name in _NOT_NEGATIVE:
        _require(name, config, lambda value: 0 <= value < math.inf, "0 or more")
    for name, most in _UP_TO.items():
        _require(name, config, _none_or_up_to(most), f"between 0 and {most:g}")
    _require("sh_degree", config, lambda value: value in (0, 1, 2, 3), "0, 1, 2 or 3")
    _require("lr_final_share", config, lambda value: 0 < value <= 1, "above 0 and at most 1")
    _require("unseen", config, lambda value: value in ("move", "wait"), "move or wait")
    _require("max_gaussians", config, lambda value: value is None or value > 0, "above 0")
    _require("checkpoint_interval", config, lambda value: value is None or value > 0, "above 0")
    _require("seconds", config, lambda value: value is None or 0 < value < math.inf, "above 0")
    _require("checkpoint_minutes", config, lambda value: value >= 0, "0 or above")
    _require(
        "aggressive_prune_opacity", config, lambda value: value is None or 0 < value < 1, "between 0 and 1"
    )
    progressive.parse(config.progressive)
    if config.seconds is not None and config.plan is not None:
        raise UsageError(
            "--plan repeats a run to the bit, and --minutes or --seconds makes a plan: choose one."
        )
    if (config.seconds or config.plan) and config.start_checkpoint is not None:
        raise UsageError(
            "--minutes and --plan are for whole runs: go on with --resume, not --start-checkpoint."
        )
    _ = config.memory_bytes  # which reads --memory, or says why it cannot
    region.parse(config.densify_region)
    if STRATEGIES[config.densification].needs_budget and config.max_gaussians is None:
        raise UsageError(
            f"--densification {config.densification} works within a budget: "
            "pass --max-gaussians, such as 500000."
        )
    if config.regularize and STRATEGIES[config.densification].explores:
        raise UsageError(
            f"--densification {config.densification} has weights of its own: "
            "use --opacity-reg and --scale-reg instead of --regularize."
        )
    for name in ("ray_jitter", "resample_gt_image"):
        if getattr(config, name):
            raise UsageError(
                f"{_flag(name)} is not supported: it is off in all published runs. Leave it out."
            )


def _none_or_up_to(most: float) -> Callable[[Any], bool]:
    return lambda value: value is None or 0 <= value <= most


def _require(name: str, config: TrainConfig, holds: Callable[[Any], bool], wish: str) -> None:
    value = getattr(config, name)
    if not holds(value):
        raise UsageError(f"{_flag(name)} is {value}, but must be {wish}.")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
