"""The C++ engine's operations: thin wrappers that check shapes and keep arrays alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import OptimizerState
from splatmeter.backends import lazy_adam
from splatmeter.backends.kernels import Exploration, Gradients, Kernels, Picture
from splatmeter.backends.lazy_adam import AdamStep, drifts_of, pending_of
from splatmeter.backends.native.reuse import ImagePool
from splatmeter.ops import F32, F64, MEANS, Pinhole, RasterSettings, Rates, Similarity, Table, aligned


@dataclass(frozen=True, slots=True, eq=False)
class _Tape:
    number: int
    table: Table
    handle: object
    picture: Picture


class Engine:
    """The extension's engine with its operations one by one, and the table's arrays as its handles."""

    def __init__(self, module: Any, threads: int) -> None:
        self.native = module.Engine(threads)
        self._table_type = module.Table
        self._images = ImagePool()

    def forward(self, table: Table, camera: Pinhole, settings: RasterSettings) -> tuple[Picture, _Tape]:
        handle = self._handle(table)
        picture, number = self.render(handle, camera, settings)
        return picture, _Tape(number, table, handle, picture)

    def render(self, handle: Any, camera: Pinhole, settings: RasterSettings) -> tuple[Picture, int]:
        """The picture, and the number of this forward pass."""
        color = self._images.empty((3, camera.height, camera.width))
        transmittance = self._images.empty((camera.height, camera.width))
        number = self.native.forward(handle, camera_row(camera), *look(settings), color, transmittance)
        return Picture(color, transmittance), number

    def backward(
        self, tape: _Tape, color_gradient: F32, transmittance_gradient: F32 | None = None
    ) -> Gradients:
        count = tape.table.count
        result = Gradients(
            geometry=np.zeros((count, 16), np.float32),
            harmonics=np.zeros((count, 48), np.float32),
            mean2d=np.zeros((count, 2), np.float32),
            mean2d_absolute=np.zeros(count, np.float32),
            visible=np.zeros(count, np.bool_),
        )
        self.native.gradients(
            tape.number,
            np.ascontiguousarray(color_gradient, np.float32),
            None
            if transmittance_gradient is None
            else np.ascontiguousarray(transmittance_gradient, np.float32),
            result.geometry,
            result.harmonics,
            result.mean2d,
            result.mean2d_absolute,
            result.visible,
        )
        return result

    def backward_and_update(self, tape: _Tape, color_gradient: F32, step: AdamStep | None) -> None:
        if step is None:
            self.native.update(tape.number, color_gradient, 0, [], 0.0, 0.0, 0.0)
        else:
            rates = rates_row(step.rates)
            self.native.update(
                tape.number, color_gradient, step.number, rates, step.beta1, step.beta2, step.epsilon
            )

    def adam(self, table: Table, gradients: Gradients, step: AdamStep) -> None:
        handle = self._table_type(*_arrays(table))
        self.native.adam(
            handle,
            gradients.geometry,
            gradients.harmonics,
            step.number,
            rates_row(step.rates),
            step.beta1,
            step.beta2,
            step.epsilon,
        )

    def settle(self, table: Table) -> None:
        if pending_of(table) is not None:
            self.native.settle(self._handle(table))

    def explore(self, table: Table, exploration: Exploration) -> None:
        rates, steps = exploration.rates, exploration.steps
        self.native.explore(
            self._handle(table),
            exploration.random_keys(),
            exploration.noise_distance,
            exploration.opacity_weight,
            exploration.scale_weight,
            steps * rates.opacity,
            steps * rates.scale,
            exploration.second_correction,
        )

    def image_loss(self, render: F32, photo: NDArray[np.uint8], ssim_weight: float) -> tuple[Similarity, F32]:
        gradient = self._images.empty(render.shape)
        return Similarity(*self.native.loss(render, photo, ssim_weight, gradient)), gradient

    def exposed_loss(
        self, render: F32, photo: NDArray[np.uint8], ssim_weight: float, transform: F64
    ) -> tuple[Similarity, F32, F64]:
        gradient, of_transform = self._images.empty(render.shape), np.empty((3, 4))
        rounded = np.ascontiguousarray(transform, np.float32)
        found = self.native.exposed_loss(render, photo, ssim_weight, rounded, gradient, of_transform)
        return Similarity(*found), gradient, of_transform

    def similarity(self, render: F32, photo: NDArray[np.uint8]) -> Similarity:
        return Similarity(*self.native.loss(np.ascontiguousarray(render, np.float32), photo, 0.0, None))

    def sampling_distance(self, means: F32, cameras: Sequence[Pinhole]) -> F32:
        distance = np.full(len(means), np.inf, np.float32)
        if len(cameras):
            rows = np.array([camera_row(camera) for camera in cameras])  # [C, 18]
            self.native.sampling_distance(np.ascontiguousarray(means, np.float32), rows, distance)
        return distance

    def neighbour_distance(self, points: F32) -> F32:
        out = np.empty(len(points), np.float32)
        self.native.neighbour_distance(np.ascontiguousarray(points, np.float32), out)
        return out

    def morton_order(self, means: F32) -> NDArray[np.int64]:
        order = np.empty(len(means), np.int64)
        self.native.morton_order(np.ascontiguousarray(means, np.float32), order)
        return order

    def rearrange(self, table: Table, sources: NDArray[np.int64], fresh: NDArray[np.bool_]) -> Table:
        """One array at a time, each old one released as soon as it is copied: the peak is one array more,
        less the workspace. Whoever chose the rows has given that up already; tapes are stale from here on."""
        self.native.release_workspace()
        sources = np.ascontiguousarray(sources, np.int64)
        fresh = np.ascontiguousarray(fresh, np.bool_)
        moved: dict[str, F32] = {}
        for name in ("harmonics_second", "harmonics_first", "geometry_moments", "harmonics", "geometry"):
            old: F32 = getattr(table, name)
            is_moment = name not in ("geometry", "harmonics")
            rows = len(sources) if not is_moment or table.trainable else 0
            new = aligned((rows, old.shape[1]))
            if rows:
                self.native.take_rows(old, sources, fresh if is_moment else None, new)
            moved[name] = new
            if name != "geometry":
                setattr(table, name, new[:0])
            del old
        moved["geometry"][:, MEANS.stop + 9 : 15] = 0  # statistics start anew
        return Table(**moved)

    def kernels(self) -> Kernels:
        return Kernels(
            forward=self.forward,
            backward_and_update=self.backward_and_update,
            settle=self.settle,
            explore=self.explore,
            image_loss=self.image_loss,
            exposed_loss=self.exposed_loss,
            similarity=self.similarity,
            sampling_distance=self.sampling_distance,
            neighbour_distance=self.neighbour_distance,
            morton_order=self.morton_order,
            rearrange=self.rearrange,
            backward=self.backward,
            adam=self.adam,
            timings=self.timings,
        )

    def timings(self) -> dict[str, float]:
        return self.native.timings()

    # ---- handles ------------------------------------------------------------------------------------------
    def handle(self, table: Table, optimizer: OptimizerState) -> Any:
        """The table's arrays for the extension, with lazy Adam's account; it keeps the arrays alive."""
        handle = self._table_type(*_arrays(table))
        handle.set_optimizer(*lazy_adam.constants(optimizer.momentum))
        if table.trainable:
            rates = [] if optimizer.rates is None else rates_row(optimizer.rates)
            handle.set_account(optimizer.steps, rates, drifts_of(optimizer.owed))
        return handle

    def _handle(self, table: Table) -> Any:
        pending = pending_of(table)
        if pending is None:
            return self._table_type(*_arrays(table))
        owed = {"drift": pending.drift, "mean_drift": pending.mean_drift}
        return self.handle(table, OptimizerState(pending.step, pending.rates, owed, pending.momentum))


def _arrays(table: Table) -> tuple[F32, F32, F32, F32, F32]:
    return (
        table.geometry,
        table.harmonics,
        table.geometry_moments,
        table.harmonics_first,
        table.harmonics_second,
    )


def rates_row(r: Rates) -> list[float]:
    return [r.mean, r.harmonics_dc, r.harmonics_rest, r.opacity, r.scale, r.rotation]


def camera_row(c: Pinhole) -> list[float]:
    pose = [*c.rotation.ravel().tolist(), *c.translation.tolist()]
    return [*pose, c.fx, c.fy, c.cx, c.cy, float(c.width), float(c.height)]


def look(settings: RasterSettings) -> tuple[int, float, bool, list[float], float, bool, float]:
    return (
        settings.sh_degree,
        settings.kernel_size,
        settings.compensate and settings.kernel_size > 0,
        list(settings.background),
        settings.max_alpha,
        settings.absolute_gradients,
        settings.light_cut,
    )
