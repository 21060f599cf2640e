"""What a camera sees of a model: colours, opacity and depth."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Rendering
from splatmeter.camera.camera import Camera
from splatmeter.errors import OutputError, UsageError
from splatmeter.render.pictures import to_8bit


class Picture:
    """What a camera sees of a model: `pixels` to look at, `color`, `alpha` and `depth` to compute with.

    Arrays have the picture's rows first: [height, width] or [height, width, 3]. A notebook shows a picture
    that stands at the end of a cell.

    >>> picture = model.render(camera)
    >>> picture.pixels.shape, picture.pixels.dtype
    ((96, 128, 3), dtype('uint8'))
    """

    def __init__(
        self, camera: Camera, rendering: Rendering, depth: Callable[[], NDArray[np.float32]]
    ) -> None:
        """For `Model.render`, which is how one gets a picture."""
        self.camera: Camera = camera
        """From where it is seen."""
        self._rendering = rendering
        self._depth = depth

    @cached_property
    def color(self) -> NDArray[np.float32]:
        """Colours as the engine blends them, background included: float32 [height, width, 3].

        Usually in [0, 1], where 1 is white, but not clamped.
        """
        return np.ascontiguousarray(self._rendering.color.transpose(1, 2, 0))

    @cached_property
    def alpha(self) -> NDArray[np.float32]:
        """How much of each pixel the Gaussians cover: float32 [height, width], 0 to 1.

        The background shows through by ``1 - alpha``, so another one is exactly
        ``color + (1 - alpha)[..., None] * (other - background)``.
        """
        return 1 - self._rendering.transmittance

    @cached_property
    def depth(self) -> NDArray[np.float32]:
        """The expected depth: float32 [height, width], in units of the world; NaN where nothing is.

        The depth of a Gaussian is that of its mean along the optical axis (z in camera coordinates, not the
        distance from the camera). A pixel's is the mean over its Gaussians, weighted as their colours are and
        normalised: the sum of weight times depth over the sum of weights. For the sum that is not normalised,
        multiply by `alpha`. It is found when it is asked for, by a second rendering through the same engine.

        >>> picture = model.render(camera)
        >>> bool(np.nanmin(picture.depth) > 0)
        True
        """
        return self._depth()

    @cached_property
    def pixels(self) -> NDArray[np.uint8]:
        """8-bit colours, rounded and clamped: uint8 [height, width, 3]; this is what evaluations judge."""
        return np.ascontiguousarray(to_8bit(self._rendering.color).transpose(1, 2, 0))

    @cached_property
    def depth_pixels(self) -> NDArray[np.uint8]:
        """`depth` to look at: uint8 [height, width], near is bright, far is dark, and black is nothing.

        The range is that of this picture, without the nearest and farthest hundredth of its pixels.
        """
        seen = np.isfinite(self.depth)
        if not seen.any():
            return np.zeros(self.depth.shape, np.uint8)
        near, far = np.quantile(self.depth[seen], [0.01, 0.99])
        share = np.clip((far - self.depth) / max(far - near, 1e-12), 0, 1)  # [H, W] 1 is near
        return np.where(seen, 40 + 215 * np.where(seen, share, 0), 0).astype(np.uint8)

    def save(self, path: str | Path) -> Path:
        """Writes `pixels` as an image, PNG or JPEG by the file's ending, and returns its path."""
        from PIL import Image

        target = Path(path).expanduser()
        if target.suffix.lower() not in (".png", ".jpg", ".jpeg"):
            raise UsageError(f"{target.name} is no name of an image; end it in .png or .jpg.")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(self.pixels).save(target)
        except OSError as problem:
            raise OutputError(f"Cannot write {target} ({problem.strerror or problem}).") from problem
        return target

    def _repr_png_(self) -> bytes:
        """How notebooks show it."""
        from PIL import Image

        content = io.BytesIO()
        Image.fromarray(self.pixels).save(content, "PNG")
        return content.getvalue()

    def __repr__(self) -> str:
        return f"Picture({self.camera.width}x{self.camera.height})"
