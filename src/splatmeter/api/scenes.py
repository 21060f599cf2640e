"""Scenes, and models judged by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from splatmeter.api.model import Model
from splatmeter.api.passed_options import folder_given, in_python, settings
from splatmeter.errors import UsageError
from splatmeter.evaluate.exposure_fit import ExposureProtocol
from splatmeter.evaluate.protocol import Report
from splatmeter.photos.cache import PhotoCache
from splatmeter.scene import scene as scenes
from splatmeter.scene.demo import cached_demo_scene
from splatmeter.scene.scene import Scene, SceneOptions, View


def demo_scene(quick: bool = False) -> Path:
    """The folder of the built-in garden; it is made on the first call and kept for later ones.

    `quick` is a smaller one: 20 photos of 128x96 pixels instead of 48 of 320x240.

    >>> garden = demo_scene(quick=True)
    >>> len(load_scene(garden).train)
    20
    """
    return cached_demo_scene(quick=quick)


def load_scene(
    folder: str | Path,
    *,
    eval: bool = False,
    images: str = "images",
    resolution: int = -1,
    test_every: int = 8,
    test_count: int | None = None,
    white_background: bool = False,
    load_allres: bool = False,
    masks: str | None = None,
) -> Scene:
    """Reads a scene's cameras, its split and its points; photos are decoded when they are needed.

    `folder` is COLMAP's (sparse/ beside images/), NeRF-synthetic, multi-scale Blender or nerfstudio's. `eval`
    holds test views out: every `test_every`-th photo by name, or `test_count` of them, or the scene's own
    split. `resolution` is a divisor up to 64 or a width in pixels; -1 shrinks photos wider than 1600 pixels.
    `images` and `masks` are folders within a COLMAP scene. These options mean the same in `train`.

    >>> scene = load_scene(demo_scene(quick=True), eval=True)
    >>> len(scene.train), len(scene.test)
    (17, 3)
    """
    given = {
        "eval": eval,
        "images": images,
        "resolution": resolution,
        "test_every": test_every,
        "test_count": test_count,
        "white_background": white_background,
        "load_allres": load_allres,
        "masks": masks,
    }
    with in_python():
        source = folder_given(folder, "folder")
        return scenes.load_scene(SceneOptions(source=source, **settings(SceneOptions, given, given)))


def evaluate(
    model: Model, views: Sequence[View], scale: int = 1, exposure_protocol: ExposureProtocol = "none"
) -> Report:
    """Judges a model on views by PSNR, SSIM and L1 of 8-bit pictures.

    `scale` n renders at 1/n of the size, and compares with photos averaged over n x n pixels.
    `exposure_protocol` is "none", or "left-half" for photos whose exposure differs.

    >>> report = evaluate(model, scene.test)
    >>> sorted(report.means)
    ['l1', 'psnr', 'ssim']
    """
    if not isinstance(model, Model):
        raise UsageError(f"model must be a Model, not a {type(model).__name__}; load_model(path) opens one.")
    if exposure_protocol not in get_args(ExposureProtocol):
        known = " or ".join(map(repr, get_args(ExposureProtocol)))
        raise UsageError(f"exposure_protocol is {exposure_protocol!r}, but must be {known}.")
    if not views:
        raise UsageError("There are no views to judge; load the scene with eval=True to hold some out.")
    wrong = next((view for view in views if not isinstance(view, View)), None)
    if wrong is not None:
        raise UsageError(
            f"views must be a scene's, such as scene.test, but one is of type {type(wrong).__name__}."
        )
    if scale < 1:
        raise UsageError(f"scale is {scale}, but must be 1 or more.")
    with PhotoCache(0) as photos:
        return model._judged(views, scale, exposure_protocol, photos)
