"""Settings that belong together, under one name. They take the place of defaults; what is given stays."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

FAST_STEPS = 2600

PRESETS: dict[str, dict[str, Any]] = {
    "fast": {
        "iterations": FAST_STEPS,
        "test_iterations": (FAST_STEPS,),
        "save_iterations": (FAST_STEPS,),
        "progressive": "4:300,2:1050",
        "densification": "cut",
        "densify_grad_threshold": 0.00012,
        "densify_reference_loss": 0.06,
        "densify_from_iter": 300,
        "densify_until_iter": 1550,
        "max_per_pixel": 1.5,
        "opacity_reset_interval": 1_000_000,
        "position_lr_pixels": 0.28,
        "position_lr_max_steps": FAST_STEPS,
        "feature_lr": 0.01,
        "opacity_lr": 0.1,
        "scaling_lr": 0.02,
        "rotation_lr": 0.002,
        "lr_final_share": 0.2,
        "sh_interval": 300,
        "sh_lr_photos": 130,
        "momentum": 0.7,
        "unseen": "wait",
        "light_cut": 0.004,
    },
}
"""fast: coarse to fine, and no more Gaussians than small photos can tell apart; Gaussians are cut and never
cloned, from a threshold that follows the loss and so suits every scene; no opacity resets; colours of full
degree after 900 steps, which learn as fast as there are photos to back them; positions that begin with steps
of 0.28 pixels, and other rates at two to four times the published ones, which are made for 30 000
steps: all fall to the end; Gaussians that stay where they are while nobody sees them, with a momentum that
remembers a few of the steps that did; pixels that are finished when a grey level of light is left."""


OVERRIDDEN_BY = {"position_lr_pixels": ("position_lr_init", "position_lr_final")}
"""Settings that change what others say: whoever gives one of those means it as it stands."""


def preset_settings(name: str, given: Collection[str]) -> dict[str, Any]:
    """As defaults, where the fields `given` are chosen otherwise."""
    return {
        field: value
        for field, value in PRESETS[name].items()
        if not any(other in given for other in OVERRIDDEN_BY.get(field, ()))
    }


def described(name: str) -> str:
    """As options of the command line."""
    return " ".join(f"--{field.replace('_', '-')} {_text(value)}" for field, value in PRESETS[name].items())


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
