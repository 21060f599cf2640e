"""The C++ engine as a backend: thin wrappers that check shapes and keep arrays alive."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splatmeter.backends.native.reuse import ImagePool
from splatmeter.errors import SplatmeterError
from splatmeter.ops import (
    F32,
    F64,
    MEANS,
    AdamStep,
    Backend,
    Exploration,
    Gradients,
    Pinhole,
    RasterSettings,
    Rates,
    Rendering,
    Similarity,
    Table,
)


def usable_threads() -> int:
    """Cores this process may use: affinity and the container's CPU quota, not what the machine has."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        cores = min(cores, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return cores


def native_backend(threads: int | None = None, instruction_set: str | None = None) -> Backend:
    """`SPLATMETER_ISA` (or the argument) forces an instruction set, to test each on one machine."""
    try:
        from splatmeter import _native  # type: ignore[attr-defined]
    except ImportError as problem:
        raise SplatmeterError(
            f"The native engine is not built ({problem}). Install splatmeter with: pip install ."
        ) from None
    wanted = instruction_set or os.environ.get("SPLATMETER_ISA")
    if wanted:
        if wanted not in _native.instruction_sets():
            known = ", ".join(_native.instruction_sets())
            raise SplatmeterError(f"Instruction set {wanted!r} cannot run here; this machine has: {known}.")
        _native.force_instruction_set(wanted)
    engine = _Engine(_native.Engine(threads or usable_threads()), _native.Table)
    return Backend(
        name="native",
        forward=engine.forward,
        backward=engine.backward,
        backward_and_update=engine.backward_and_update,
        adam=engine.adam,
        settle=engine.settle,
        image_loss=engine.image_loss,
        similarity=engine.similarity,
        sampling_distance=engine.sampling_distance,
        neighbour_distance=engine.neighbour_distance,
        morton_order=engine.morton_order,
        rearrange=engine.rearrange,
        one_step_older=engine.one_step_older,
        explore=engine.explore,
        timings=engine.timings,
        description=_description(_native, engine.native.threads),
    )


def _description(module, threads: int) -> dict[str, str | int]:  # extension module
    """Asking for the instruction set chooses it, and AVX-512 must pass its self-test for that."""
    facts = {
        "device": "cpu",
        "instruction_set": module.instruction_set(),
        "threads": threads,
        "compiler": module.compiler,
    }
    note = module.instruction_set_note()
    return facts | {"note": note} if note else facts


@dataclass(frozen=True, slots=True, eq=False)
class _Tape:
    number: int
    table: Table
    handle: object
    color: F32
    transmittance: F32


class _Engine:
    def __init__(self, native, table_type) -> None:  # extension types
        self.native = native
        self._table_type = table_type
        self._images = ImagePool()

    def forward(self, table: Table, camera: Pinhole, settings: RasterSettings) -> tuple[Rendering, _Tape]:
        color = self._images.empty((3, camera.height, camera.width))
        transmittance = self._images.empty((camera.height, camera.width))
        handle = self._handle(table)
        number = self.native.forward(
            handle,
            _camera_row(camera),
            settings.sh_degree,
            settings.kernel_size,
            settings.compensate and settings.kernel_size > 0,
            list(settings.background),
            settings.max_alpha,
            settings.absolute_gradients,
            color,
            transmittance,
        )
        return Rendering(color, transmittance), _Tape(number, table, handle, color, transmittance)

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
            rates = _rates(step.rates)
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
            _rates(step.rates),
            step.beta1,
            step.beta2,
            step.epsilon,
        )

    def settle(self, table: Table) -> None:
        if table.pending is not None:
            self.native.settle(self._handle(table))

    def explore(self, table: Table, exploration: Exploration) -> None:
        rates, steps = exploration.rates, exploration.steps
        self.native.explore(
            self._handle(table),
            exploration.random_keys(),
            math.sqrt(steps) * exploration.noise * rates.mean,
            exploration.opacity_weight,
            exploration.scale_weight,
            steps * rates.opacity,
            steps * rates.scale,
            exploration.second_correction,
        )

    def one_step_older(self, drifts: F64, terms: F64, rates: Sequence[float], fallen: float) -> F64:
        """Natively because nothing else runs meanwhile: after a pass over the whole table each call of NumPy
        finds its code far down in the caches."""
        older = np.empty(drifts.shape)
        self._table_type.one_step_older(drifts, terms, *rates, fallen, older)
        return older

    def image_loss(self, render: F32, photo: NDArray[np.uint8], ssim_weight: float) -> tuple[Similarity, F32]:
        gradient = self._images.empty(render.shape)
        return Similarity(*self.native.loss(render, photo, ssim_weight, gradient)), gradient

    def similarity(self, render: F32, photo: NDArray[np.uint8]) -> Similarity:
        return Similarity(*self.native.loss(np.ascontiguousarray(render, np.float32), photo, 0.0, None))

    def sampling_distance(self, means: F32, cameras: Sequence[Pinhole]) -> F32:
        distance = np.full(len(means), np.inf, np.float32)
        if len(cameras):
            rows = np.array([_camera_row(camera) for camera in cameras])  # [C, 18]
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
        less the workspace, which is given up meanwhile."""
        self.native.release_workspace()
        sources = np.ascontiguousarray(sources, np.int64)
        fresh = np.ascontiguousarray(fresh, np.bool_)
        moved: dict[str, F32] = {}
        for name in ("harmonics_second", "harmonics_first", "geometry_moments", "harmonics", "geometry"):
            old: F32 = getattr(table, name)
            is_moment = name not in ("geometry", "harmonics")
            rows = len(sources) if not is_moment or table.trainable else 0
            new = np.empty((rows, old.shape[1]), np.float32)
            if rows:
                self.native.take_rows(old, sources, fresh if is_moment else None, new)
            moved[name] = new
            if name != "geometry":
                setattr(table, name, new[:0])
            del old
        moved["geometry"][:, MEANS.stop + 9 : 15] = 0  # statistics start anew
        return Table(**moved, pending=table.pending)

    def timings(self) -> dict[str, float]:
        return self.native.timings()

    def _handle(self, table: Table):  # extension type
        handle = self._table_type(*_arrays(table))
        pending = table.pending
        if pending is not None:
            handle.set_pending(
                pending.step,
                pending.drift,
                pending.mean_drift,
                pending.first_decay,
                pending.second_decay,
                _rates(pending.rates),
            )
        return handle


def _arrays(table: Table) -> tuple[F32, F32, F32, F32, F32]:
    return (
        table.geometry,
        table.harmonics,
        table.geometry_moments,
        table.harmonics_first,
        table.harmonics_second,
    )


def _rates(r: Rates) -> list[float]:
    return [r.mean, r.harmonics_dc, r.harmonics_rest, r.opacity, r.scale, r.rotation]


def _camera_row(c: Pinhole) -> list[float]:
    pose = [*c.rotation.ravel().tolist(), *c.translation.tolist()]
    return [*pose, c.fx, c.fy, c.cx, c.cy, float(c.width), float(c.height)]
