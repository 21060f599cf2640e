"""Splatmeter from Python: scenes, training, models and pictures in a handful of names.

>>> from splatmeter import api
>>> scene = api.load_scene(api.demo_scene(quick=True), eval=True)
>>> for event in api.train(scene.source, "output/first", eval=True, iterations=50):
...     if isinstance(event, api.Finished):
...         print("done after", event.step, "steps")
done after 50 steps
>>> model = api.load_model("output/first")
>>> picture = model.render(scene.test[0].camera)
>>> picture.pixels.shape, picture.depth.shape
((96, 128, 3), (96, 128))
>>> api.evaluate(model, scene.test).means["psnr"] > 10
True

docs/notebooks.md goes through all of it. Whatever goes wrong for a reason that one can do something about is
a `SplatmeterError` with one sentence: what, where, and what to do.
"""

from __future__ import annotations

from splatmeter.api.loading import load_model
from splatmeter.api.model import Model, harmonics_from_colors
from splatmeter.api.options import TrainOptions
from splatmeter.api.picture import Picture
from splatmeter.api.scenes import demo_scene, evaluate, load_scene
from splatmeter.api.training import Training, train
from splatmeter.camera.camera import Camera
from splatmeter.errors import SplatmeterError
from splatmeter.evaluate.protocol import Report
from splatmeter.events import (
    Densified,
    Evaluated,
    Event,
    Failed,
    Finished,
    Planned,
    Progress,
    Saved,
    Started,
    Warned,
)
from splatmeter.render.path import orbit
from splatmeter.scene.scene import Scene, View

__all__ = [
    "Camera",
    "Densified",
    "Evaluated",
    "Event",
    "Failed",
    "Finished",
    "Model",
    "Picture",
    "Planned",
    "Progress",
    "Report",
    "Saved",
    "Scene",
    "SplatmeterError",
    "Started",
    "TrainOptions",
    "Training",
    "View",
    "Warned",
    "demo_scene",
    "evaluate",
    "harmonics_from_colors",
    "load_model",
    "load_scene",
    "orbit",
    "train",
]
