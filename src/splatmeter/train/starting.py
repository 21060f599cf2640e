"""The first thing that a run says: its settings, and everything needed to judge it later."""

from __future__ import annotations

import os
import platform

import numpy as np

from splatmeter import __version__
from splatmeter.backend import Backend
from splatmeter.events import Started
from splatmeter.files.hashes import sha256_of
from splatmeter.scene.scene import fingerprint
from splatmeter.train.assemble import Parts
from splatmeter.train.config import to_json
from splatmeter.train.state import poses_fingerprint


def started(parts: Parts) -> Started:
    scene, state = parts.scene, parts.state
    return Started(
        config=to_json(parts.config),
        step=state.step,
        gaussians=state.model.count,
        train_images=[view.name for view in scene.train],
        test_images=[view.name for view in scene.test],
        ancestor_images=state.ancestry.listed(),
        hashes=_hashes(parts),
        environment=_environment(parts.backend),
        photo_sizes=scene.photo_sizes,
        memory=parts.prediction.told(),
    )


def _hashes(parts: Parts) -> dict[str, str]:
    start, scene = parts.started_from, parts.scene
    origin = {} if start is None else {"checkpoint": sha256_of(start)}
    return {"scene": fingerprint(scene), "poses": poses_fingerprint(scene), **origin}


def _environment(backend: Backend) -> dict[str, object]:
    return {
        "splatmeter": __version__,
        "backend": backend.facts.name,
        **{f"backend_{name}": value for name, value in backend.facts.recorded().items()},
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": platform.platform(),
        "processors": os.cpu_count(),
    }
