"""A model in Python: its Gaussians as arrays, rendered, changed and saved."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splatmeter.api.lazy_engine import engine_of
from splatmeter.api.passed_options import folder_given, in_python
from splatmeter.api.picture import Picture
from splatmeter.backend import Backend
from splatmeter.backend import Model as EngineModel
from splatmeter.camera.camera import Camera, checked
from splatmeter.errors import UsageError
from splatmeter.evaluate.exposure_fit import ExposureProtocol
from splatmeter.evaluate.protocol import Report, evaluate_views
from splatmeter.gaussians import active, gaussians
from splatmeter.gaussians.harmonics import dc_from_rgb
from splatmeter.models import writing
from splatmeter.models.writing import Form
from splatmeter.ops import F32, RasterSettings, Table
from splatmeter.page import from_model
from splatmeter.page.viewpoints import Viewpoint
from splatmeter.photos.cache import PhotoCache
from splatmeter.scene.scene import View
from splatmeter.units import count_text


class Model:
    """Gaussians, and how they are meant to be drawn.

    `load_model` opens one; this builds one from arrays, in the form in which the attributes of the same names
    give them back: any kind of numbers in any memory layout, which are copied into float32.

    `means` [N, 3] are places in the world; `scales` [N, 3] standard deviations along a Gaussian's own axes,
    in units of the world, above 0; `rotations` [N, 4] quaternions (w, x, y, z) of any length but 0, which
    turn these axes into the world; `opacities` [N] lie between 0 and 1; `harmonics` [N, K, 3] are
    coefficients of real spherical harmonics in the order of 3DGS files, the constant one first, with K = 1,
    4, 9 or 16 for the degrees 0 to 3, and red, green, blue last (`harmonics_from_colors` makes them of plain
    colours).

    `kernel_size` is the variance of the 2D Mip filter in squared pixels, and `compensate` whether it keeps
    the light of small Gaussians; plain 3DGS is ``kernel_size=0.3, compensate=False``. `background` is red,
    green, blue from 0 to 1. A model never changes: `select` and `with_settings` give another one.

    >>> dot = Model(
    ...     means=[[0, 0, 0]], scales=[[0.1, 0.1, 0.1]], rotations=[[1, 0, 0, 0]], opacities=[0.9],
    ...     harmonics=harmonics_from_colors([[1, 0.5, 0]]),
    ... )
    >>> dot
    Model(1 Gaussian, harmonics of degree 0)
    >>> front = Camera.look_at((0, 0, -2), (0, 0, 0), up=(0, -1, 0), width=9, height=9, fx=20)
    >>> dot.render(front).depth[4, 4].item()
    2.0
    """

    def __init__(
        self,
        means: ArrayLike,
        scales: ArrayLike,
        rotations: ArrayLike,
        opacities: ArrayLike,
        harmonics: ArrayLike,
        *,
        kernel_size: float = 0.1,
        compensate: bool = True,
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
        threads: int | None = None,
        device: str = "auto",
    ) -> None:
        table, degree = active.table_of(means, scales, rotations, opacities, harmonics)
        drawn = _changed(RasterSettings(degree), kernel_size, compensate, background)
        self._fill(table, drawn, engine_of(threads, device), 0)

    def _fill(self, table: Table, settings: RasterSettings, engine: Callable[[], Backend], step: int) -> None:
        self._table, self._settings, self._engine, self._step = table, settings, engine, step
        self._arrays: dict[str, F32] = {}
        self._uploaded: EngineModel | None = None

    @classmethod
    def _of(
        cls, table: Table, settings: RasterSettings, engine: Callable[[], Backend], step: int = 0
    ) -> Model:
        model = cls.__new__(cls)
        model._fill(table, settings, engine, step)
        return model

    @property
    def settings(self) -> RasterSettings:
        """How it is drawn; `with_settings` gives the same Gaussians drawn in another way."""
        return self._settings

    @property
    def step(self) -> int:
        """The training step at which it was saved; 0 if the file does not say."""
        return self._step

    # ---- its Gaussians ------------------------------------------------------------------------------------
    @property
    def count(self) -> int:
        """How many Gaussians it has."""
        return self._table.count

    @property
    def sh_degree(self) -> int:
        """Highest degree of its spherical harmonics: 0 (a colour does not depend on the direction) to 3."""
        return self.settings.sh_degree

    @property
    def means(self) -> NDArray[np.float32]:
        """Where the Gaussians are in the world: float32 [N, 3], read-only."""
        return self._kept("means", active.means_of)

    @property
    def scales(self) -> NDArray[np.float32]:
        """Standard deviations along each Gaussian's axes, in units of the world: float32 [N, 3], read-only.

        As they are drawn: the 3D filter of a trained model is inside, in `opacities` too.
        """
        return self._kept("scales", gaussians.filtered_scales)

    @property
    def rotations(self) -> NDArray[np.float32]:
        """Unit quaternions (w, x, y, z) from a Gaussian's axes to the world: float32 [N, 4], read-only."""
        return self._kept("rotations", gaussians.rotations)

    @property
    def opacities(self) -> NDArray[np.float32]:
        """Opacity at the centre of each Gaussian, 0 to 1, 3D filter included: float32 [N], read-only."""
        return self._kept("opacities", gaussians.filtered_opacities)

    @property
    def harmonics(self) -> NDArray[np.float32]:
        """Coefficients of the colour by direction: float32 [N, K, 3], read-only, the constant one first.

        The colour seen from a direction is 0.5 plus the sum of coefficients times real spherical harmonics,
        and never below 0.
        """
        return self._kept("harmonics", lambda table: active.harmonics_of(table, self.sh_degree))

    def _kept(self, name: str, make: Callable[[Table], F32]) -> F32:
        if name not in self._arrays:
            self._arrays[name] = make(self._table)
            self._arrays[name].flags.writeable = False
        return self._arrays[name]

    # ---- other models of it -------------------------------------------------------------------------------
    def select(self, rows: ArrayLike) -> Model:
        """A part of the Gaussians: `rows` is a mask [N] of booleans, or row numbers.

        >>> near = model.select(np.linalg.norm(model.means, axis=1) < 2)
        >>> near.count < model.count
        True
        """
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_ and chosen.shape != (self.count,):
            raise UsageError(f"The mask has the shape {chosen.shape}, but must be ({self.count},).")
        if chosen.ndim != 1 or not (chosen.dtype == np.bool_ or np.issubdtype(chosen.dtype, np.integer)):
            raise UsageError("rows must be a mask of booleans, one a Gaussian, or a list of row numbers.")
        try:
            table = active.rows_of(self._table, chosen)
        except IndexError:
            raise UsageError(f"rows has a number outside of 0 to {self.count - 1}.") from None
        return Model._of(table, self.settings, self._engine, self.step)

    def with_settings(
        self,
        *,
        kernel_size: float | None = None,
        compensate: bool | None = None,
        background: tuple[float, float, float] | None = None,
    ) -> Model:
        """The same Gaussians drawn in another way; what is not given stays as it is.

        >>> plain = model.with_settings(kernel_size=0.3, compensate=False)  # as plain 3DGS draws
        >>> plain.settings.kernel_size
        0.3
        """
        drawn = _changed(self.settings, kernel_size, compensate, background)
        model = Model._of(self._table, drawn, self._engine, self.step)
        model._uploaded = self._uploaded
        return model

    # ---- drawing and saving -------------------------------------------------------------------------------
    def _on_engine(self) -> EngineModel:
        """The same Gaussians where the engine wants them."""
        if self._uploaded is None:
            self._uploaded = self._engine().upload(self._table)
        return self._uploaded

    def render(self, camera: Camera, *, background: tuple[float, float, float] | None = None) -> Picture:
        """What the camera sees: a `Picture` with 8-bit pixels, float colours, alpha and depth.

        `background` is red, green, blue from 0 to 1, by default the model's own.

        >>> picture = model.render(scene.test[0].camera, background=(1, 1, 1))
        >>> picture.color.shape, picture.alpha.shape, picture.depth.shape
        ((96, 128, 3), (96, 128), (96, 128))
        """
        checked(camera)
        drawn = _changed(self.settings, None, None, background)
        rendering = self._on_engine().render(camera, drawn)
        return Picture(camera, rendering, partial(self._depth, camera))

    def _depth(self, camera: Camera) -> F32:
        flat = dataclasses.replace(self.settings, sh_degree=0, background=(0.0, 0.0, 0.0))
        colored = self._engine().upload(active.colored_by_depth(self._table, camera))
        depth, weight, _ = colored.render(camera, flat).color  # [H, W] each
        return np.divide(depth, weight, out=np.full_like(depth, np.nan), where=weight > 0)

    def _judged(
        self, views: Sequence[View], scale: int, exposure: ExposureProtocol, photos: PhotoCache
    ) -> Report:
        """For `evaluate`."""
        return evaluate_views(
            views,
            lambda view: self._on_engine().render(view.camera, self.settings).color,
            photos,
            self._engine().similarity,
            scale=scale,
            exposure=exposure,
        )

    def save(
        self, path: str | Path, format: Form | None = None, *, cameras: Sequence[Camera] = ()
    ) -> Path:
        """Writes the model in any format that splatmeter writes, by the file's ending, and returns its path.

        .ply, .compressed.ply, .spz (needs the extra 'spz'), .splat, .glb, .gltf, .npz, and .html: a page with
        a viewer, where `cameras` are places to jump to. `format` says it more exactly: "fused", "unfused" or
        "plain" for .ply, "spz3" for older readers of SPZ; ``splatmeter export --help`` explains each. What
        the format cannot hold is told as a warning.

        >>> model.save("garden.ply").name
        'garden.ply'
        """
        target = folder_given(path, "path")
        with in_python():
            form = writing.form_of(target, format)
            if form == "page":
                writing.write_page(target, self._page(target.stem, cameras))
                return target
            notes = writing.write(target, self._table, self.sh_degree, form, self.settings, self.step)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return target

    def _page(self, title: str, cameras: Sequence[Camera]) -> str:
        if self.count > from_model.MOST_GAUSSIANS:
            raise UsageError(
                f"This model has {count_text(self.count)} Gaussians, more than a browser can hold; `select` "
                f"at most {count_text(from_model.MOST_GAUSSIANS)} of them."
            )
        views = [Viewpoint(checked(camera)) for camera in cameras]
        return from_model.made(self._table, self.sh_degree, self.settings, views, title).html

    def __repr__(self) -> str:
        counted = "1 Gaussian" if self.count == 1 else f"{count_text(self.count)} Gaussians"
        step = f", step {self.step}" if self.step else ""
        return f"Model({counted}, harmonics of degree {self.sh_degree}{step})"


def harmonics_from_colors(colors: ArrayLike) -> NDArray[np.float32]:
    """Colours [N, 3], red, green and blue from 0 to 1, as harmonics [N, 1, 3] that show them from all sides.

    >>> harmonics_from_colors([[0.5, 0.5, 0.5]]).tolist()
    [[[0.0, 0.0, 0.0]]]
    """
    found = np.asarray(colors)
    if found.ndim != 2 or found.shape[1] != 3:
        raise UsageError(f"colors has the shape {found.shape}, but must be (N, 3).")
    if np.issubdtype(found.dtype, np.integer) and found.max(initial=0) > 1:
        raise UsageError("colors are numbers from 0 to 1; divide those of 8 bits by 255.")
    return dc_from_rgb(found)[:, None, :]


def _changed(
    settings: RasterSettings,
    kernel_size: float | None,
    compensate: bool | None,
    background: tuple[float, float, float] | None,
) -> RasterSettings:
    if kernel_size is not None:
        if not 0 <= kernel_size < 100:
            raise UsageError(f"kernel_size is {kernel_size}, but must be between 0 and 100.")
        settings = dataclasses.replace(settings, kernel_size=float(kernel_size))
    if compensate is not None:
        settings = dataclasses.replace(settings, compensate=bool(compensate))
    if background is not None:
        color = np.asarray(background, np.float64)
        if color.shape != (3,) or not ((color >= 0) & (color <= 1)).all():
            raise UsageError(
                f"background is {background!r}, but must be red, green and blue, each from 0 to 1."
            )
        settings = dataclasses.replace(settings, background=tuple(color.tolist()))
    return settings
