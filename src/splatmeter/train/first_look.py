"""The first look at how photos were exposed: do they differ at all, and by how much?

Once a scene has rough colours, every photo's brightness beside its render tells how it was exposed, to some
percent. Where photos agree, nothing is learned: transforms with nothing to find would only move to and fro,
and cost up to 2.4 dB on clean renders. Where photos differ, each begins with its fit, and the rate may be
small. Later would be too late: colours that depend on the direction, and Gaussians in front of single
cameras, then hide the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from splatmeter.evaluate.exposure_fit import fit
from splatmeter.evaluate.metrics import Pixels
from splatmeter.events import Warned
from splatmeter.ops import F32, F64
from splatmeter.photos.cache import PhotoCache
from splatmeter.scene.scene import View
from splatmeter.train.config import TrainConfig
from splatmeter.train.photo_exposures import begun
from splatmeter.train.progressive import Stages
from splatmeter.train.state import TrainingState

STEP = 160
"""Enough for rough colours, and in every preset before they depend on the direction."""
DIFFERENT = 0.08
"""Photos differ from this standard deviation of brightness on. Scenes of one exposure show 0.01 to 0.05,
because renders are still unlike photos; one that was disturbed by gains of 0.7 to 1.4 shows 0.18."""
FEWEST_PIXELS = 100
DARKEST = 1e-3
MOST_PIXELS = 1 << 16


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Between two steps, by the number of steps alone: a resumed run looks when the straight one does."""

    config: TrainConfig
    views: Stages

    def __call__(self, state: TrainingState) -> Iterator[Warned]:
        if self.config.exposure == "none" or state.exposed or state.step != STEP:
            return
        state.catch_up()
        with PhotoCache(0) as photos:  # the host's own: a card keeps photos where we cannot look at them
            looks = [self._look(state, view, photos) for view in self.views.at(state.step)]
        spread = float(np.std([brightness for brightness, _ in looks]))
        if spread < DIFFERENT:
            told = f"brightness differs by {100 * spread:.1f} %"
            yield Warned(f"Photos are exposed alike ({told}), so --exposure learns nothing.")
            return
        exposures = begun(len(looks))
        transforms = np.stack([transform for _, transform in looks])  # [photos, 3, 4]
        exposures.transforms[:] += transforms - transforms.mean(axis=0)  # their mean stays the identity
        state.model.expose(exposures)
        state.exposed = True
        told = f"brightness differs by {100 * spread:.0f} %"
        yield Warned(f"Photos are exposed differently ({told}), so each one's exposure is learned.")

    def _look(self, state: TrainingState, view: View, photos: PhotoCache) -> tuple[float, F64]:
        picture = state.model.render(view.camera, self.config.raster_settings(state.sh_degree)).color
        return looked_at(picture, photos.load(view.photo))


def looked_at(picture: F32, photo: Pixels) -> tuple[float, F64]:
    """Brightness of the photo over that of the picture, and the transform from one to the other."""
    stride = 1 + int(np.sqrt(picture[0].size / MOST_PIXELS))
    picture, photo = np.clip(picture[:, ::stride, ::stride], 0, 1), photo[:, ::stride, ::stride]
    told = ((photo > 0) & (photo < 255)).all(axis=0)  # [H, W] not clipped
    if np.count_nonzero(told) < FEWEST_PIXELS or picture[:, told].mean() < DARKEST:
        return 1.0, np.eye(3, 4)
    return float(photo[:, told].mean() / 255 / picture[:, told].mean()), fit(picture, photo)


def begin(state: TrainingState, look: FirstLook) -> tuple[str, ...]:
    """Whether a run that begins, or goes on, knows exposures already; says so where it will never look."""
    state.exposed = look.config.exposure != "none" and state.model.exposures() is not None
    if look.config.exposure == "none" or state.exposed or state.step <= STEP:
        return ()
    return (
        f"No exposures are learned: photos agreed when they were looked at after step {STEP}, or the "
        "run began without --exposure.",
    )

