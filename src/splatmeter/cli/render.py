"""`splatmeter render`: a scene's views in the original's folders, or a camera path as pictures or film."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from splatmeter.cli import arguments, film, models
from splatmeter.cli.models import ModelArguments
from splatmeter.errors import UsageError
from splatmeter.evaluate.metrics import Pixels
from splatmeter.evaluate.renders import RenderFolder
from splatmeter.models.drawing import raster_settings
from splatmeter.models.opening import Opened, finite_table, open_model
from splatmeter.ops import Pinhole
from splatmeter.photos.photo import read
from splatmeter.render.path import orbit
from splatmeter.render.pictures import to_8bit
from splatmeter.scene.scene import Scene

DESCRIPTION = """Render test views, training views, or a camera path.

Without --path, renders and photos go to {test,train}/ours_N/{test_preds,gt}_R/00000.png in the run folder,
as the original's render script puts them. With --path orbit, a smooth turn through the training cameras is
rendered to --output: a folder of PNGs, a .gif, or an .mp4 (needs ffmpeg).

Examples:
  splatmeter render -m output/garden --skip-train
  splatmeter render -m output/garden --path orbit --frames 120 -o garden.gif
  splatmeter render -m point_cloud.ply -s scenes/garden -r 4 --path orbit -o turn.mp4"""

SHORT = {**models.SHORT, "-o": "--output"}

Picture = Callable[[Pinhole], Pixels]


@dataclass(frozen=True)
class RenderArguments(ModelArguments):
    skip_train: bool = False
    """Leave the training views out."""
    skip_test: bool = False
    """Leave the test views out."""
    path: Literal["orbit"] | None = None
    """Render a camera path instead of the scene's views."""
    frames: int = 120
    """Pictures along the path."""
    fps: int = 30
    """Pictures per second of a film."""
    output: Path | None = None
    """Folder for views; folder, .gif or .mp4 for a path. By default inside the run folder."""
    quiet: bool = False
    """Do not say what was written."""


def run(words: Sequence[str]) -> int:
    words = arguments.without_ignored(arguments.normalise(words, SHORT))
    chosen = arguments.parse(RenderArguments, "splatmeter render", words, DESCRIPTION, SHORT)
    if chosen.frames < 1 or not 1 <= chosen.fps <= 120:
        raise UsageError("--frames must be at least 1, and --fps between 1 and 120.")
    opened = open_model(chosen.model_path, chosen.iteration, chosen.engine)
    config = models.scene_config(opened, chosen)
    target = _target(chosen, opened)
    save = film.saver(target) if chosen.path else None  # complains before the work begins
    settings = raster_settings(opened, config, chosen.kernel_size, models.say)
    scene = models.open_scene(config)
    model = chosen.engine().upload(finite_table(opened, models.say))

    def picture(camera: Pinhole) -> Pixels:
        return to_8bit(model.render(camera, settings).color)

    if save is not None:
        cameras = orbit([view.camera for view in scene.train], chosen.frames)
        save(target, (picture(camera) for camera in cameras), chosen.fps)
        told = [f"{target}: {chosen.frames} frames"]
    else:
        told = list(_views(scene, chosen, target, picture, (opened.step, config.resolution)))
    if not told:
        models.say(_nothing_to_render(chosen, config.eval))
    elif not chosen.quiet:
        print("\n".join(told))
    return 0


def _nothing_to_render(chosen: RenderArguments, held_out: bool) -> str:
    if chosen.skip_train and chosen.skip_test:
        return "Nothing to render: --skip-train and --skip-test together leave out every view."
    if chosen.skip_test:
        return "Nothing to render: there are no training views, and --skip-test leaves out the others."
    why = "this scene has none" if held_out else "the run held none out (no --eval)"
    return f"Nothing to render: there are no test views, as {why}, and --skip-train leaves out the others."


def _target(chosen: RenderArguments, opened: Opened) -> Path:
    if chosen.output is not None:
        return chosen.output
    if opened.folder is None:
        raise UsageError("A bare model file has no folder for renders; pass --output.")
    return opened.folder / "path" / f"ours_{opened.step}" if chosen.path else opened.folder


def _views(
    scene: Scene, chosen: RenderArguments, target: Path, picture: Picture, label: tuple[int, int]
) -> Iterator[str]:
    """Photos are decoded one at a time; nothing is kept."""
    for split, views, skipped in (
        ("train", scene.train, chosen.skip_train),
        ("test", scene.test, chosen.skip_test),
    ):
        if skipped or not views:
            continue
        folder = RenderFolder(target, split, *label)
        for number, view in enumerate(views):
            folder.write(number, picture(view.camera), read(view.photo))
        yield f"{folder.render_path(0).parent}: {len(views)} views"
