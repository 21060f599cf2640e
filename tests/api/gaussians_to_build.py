"""Arrays of Gaussians in front of a camera, as somebody would bring them along."""

from __future__ import annotations

from typing import Any

import numpy as np

from splatmeter import api
from splatmeter.ops import F64


def arrays(count: int = 40, degree: int = 2, seed: int = 1) -> dict[str, F64]:
    generator = np.random.default_rng(seed)
    return {
        "means": generator.normal(0, 0.6, (count, 3)),
        "scales": generator.uniform(0.02, 0.3, (count, 3)),
        "rotations": generator.normal(size=(count, 4)),
        "opacities": generator.uniform(0.1, 0.95, count),
        "harmonics": generator.normal(0, 0.3, (count, (degree + 1) ** 2, 3)),
    }


def built(changes: dict[str, Any] | None = None, **settings: Any) -> api.Model:
    return api.Model(**(arrays() | (changes or {})), device="cpu", threads=2, **settings)


def camera(width: int = 48, height: int = 40) -> api.Camera:
    return api.Camera.look_at(
        (0.3, -3, 0.5), (0, 0, 0), up=(0, 0, 1), width=width, height=height, field_of_view=50
    )
