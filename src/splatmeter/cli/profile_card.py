"""`splatmeter profile` on a card: milliseconds of each kernel by the card's own clock, beside its limits."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splatmeter.backend import Backend
    from splatmeter.cli.profile import ProfileArguments


def card_of(device: str, threads: int | None) -> Backend | None:
    """None: the CPU is meant, or auto found no card to use."""
    from splatmeter.backends import registry

    if device == "cpu":
        return None
    found = registry.backend(device=device, threads=threads)
    if registry.card_number(found.facts.device) is not None:
        return found
    if "card_not_used" in found.facts.details:
        print(found.facts.details["card_not_used"], file=sys.stderr)
    return None


def run(chosen: ProfileArguments, engine: Backend) -> int:
    from splatmeter.backend import TrainStep
    from splatmeter.backends.cuda.speed import measured
    from splatmeter.cli.profile import MOST_COUNTED, TINY_RATE, gaussians, open_scene, write
    from splatmeter.models.opening import open_model
    from splatmeter.ops import RasterSettings, Rates
    from splatmeter.photos.photo import read

    path = chosen.model_path
    opened = None if path is None else open_model(path, chosen.iteration, lambda: engine)
    scene = open_scene(chosen, opened)
    model, degree = gaussians(opened, scene, engine)
    settings, rates = RasterSettings(sh_degree=degree), Rates(*[TINY_RATE] * 6)
    orders = [
        TrainStep(view.camera, engine.photo(read(view.photo)), settings, 0.2, rates)
        for view in scene.train[:MOST_COUNTED]
    ]
    speed = measured(model, orders, chosen.iterations)
    print(f"{model.count:,} Gaussians on {engine.facts.details['card']}, {engine.facts.details['image']}")
    print("\n".join(speed.lines()))
    if chosen.json is not None:
        write(chosen.json, {"engine": engine.facts.recorded(), **dataclasses.asdict(speed)})
    return 0
