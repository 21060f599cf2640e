"""One interface over two engines, the CPU's and the card's, through the binding's low-level calls.

All that these tests know of the rest of splatmeter is in this file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from splatmeter import _native  # type: ignore[attr-defined]
from splatmeter.ops import Pinhole, RasterSettings, Rates, Table

IMAGES = Path(__file__).parents[2] / "src" / "splatmeter" / "backends" / "cuda" / "images"
ARRAYS = ("geometry", "harmonics", "geometry_moments", "harmonics_first", "harmonics_second")
RATES = Rates(mean=1e-3, harmonics_dc=2.5e-3, harmonics_rest=1.25e-4, opacity=0.05, scale=5e-3, rotation=1e-3)
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-15
AGES = 512


@dataclass(frozen=True, eq=False)
class Owed:
    """What rows owe by age: drift, mean drift, first and second decay [512, 4], after `step` steps."""

    step: int
    by_age: np.ndarray
    rates: Rates = RATES


@dataclass(eq=False)
class Gradients:
    geometry: np.ndarray
    harmonics: np.ndarray
    mean2d: np.ndarray
    absolute: np.ndarray
    visible: np.ndarray

    @staticmethod
    def empty(count: int) -> Gradients:
        shapes = ((count, 16), (count, 48), (count, 2), (count,))
        return Gradients(*(np.zeros(shape, np.float32) for shape in shapes), np.zeros(count, np.bool_))


def owed_after(step: int, rates: Rates = RATES) -> Owed:
    """Term by term from Adam's definition; see backends/lazy_adam.py."""
    drift = np.zeros(AGES)
    for age in range(1, AGES):
        last = step - age  # the last step the row took part in
        if last < 0:
            drift[age] = drift[age - 1]
            continue
        number = np.arange(last + 1, step + 1)
        power = number - last
        term = BETA1**power * BETA2 ** (-power / 2) * np.sqrt(1 - BETA2**number) / (1 - BETA1**number)
        drift[age] = term.sum()
    ages = np.arange(AGES)
    by_age = np.stack([drift, drift * rates.mean, BETA1**ages, BETA2**ages], axis=1)
    return Owed(step, by_age.astype(np.float32), rates)


def arrays_of(table: Table) -> list[np.ndarray]:
    return [getattr(table, name) for name in ARRAYS]


def copied(table: Table) -> Table:
    return Table(*(array.copy() for array in arrays_of(table)))


def camera_row(c: Pinhole) -> list[float]:
    pose = [*c.rotation.ravel().tolist(), *c.translation.tolist()]
    return [*pose, c.fx, c.fy, c.cx, c.cy, float(c.width), float(c.height)]


def rates_row(r: Rates) -> list[float]:
    return [r.mean, r.harmonics_dc, r.harmonics_rest, r.opacity, r.scale, r.rotation]


def settings_tuple(s: RasterSettings) -> tuple[Any, ...]:
    return (s.sh_degree, s.kernel_size, s.compensate, list(s.background), s.max_alpha, s.absolute_gradients)


def adam_tuple(number: int, rates: Rates = RATES) -> tuple[Any, ...]:
    return (number, rates_row(rates), BETA1, BETA2, EPSILON)


def images() -> list[tuple[int, bool, bytes]]:
    return [(int(path.stem.split("_")[1]), True, path.read_bytes()) for path in sorted(IMAGES.glob("*.ptx"))]


def empty_image(camera: Pinhole) -> tuple[np.ndarray, np.ndarray]:
    shape = (camera.height, camera.width)
    return np.empty((3, *shape), np.float32), np.empty(shape, np.float32)


class CardTwin:
    def __init__(self, device: int = 0) -> None:
        self.card = _native.CardModel(_native.Card(device, images()))
        self.count = 0

    def put(self, table: Table, owed: Owed | None = None) -> None:
        self.count = table.count
        self.card.upload(*arrays_of(table))
        self.owe(owed)

    def owe(self, owed: Owed | None) -> None:
        if owed is None:
            self.card.set_pending(0, [], None)
        else:
            self.card.set_pending(owed.step, rates_row(owed.rates), owed.by_age)

    def get(self) -> Table:
        count = self.card.count
        widths = (16, 48, 24, 48, 48)
        table = Table(*(np.empty((count, width), np.float32) for width in widths))
        self.card.download(0, *arrays_of(table))
        return table

    def forward(self, camera: Pinhole, settings: RasterSettings) -> tuple[np.ndarray, np.ndarray]:
        color, transmittance = empty_image(camera)
        self.card.forward(camera_row(camera), settings_tuple(settings), color, transmittance)
        return color, transmittance

    def gradients(self, weights: np.ndarray, extra: np.ndarray | None = None) -> Gradients:
        out = Gradients.empty(self.card.count)
        self.card.gradients(weights, extra, *(getattr(out, field.name) for field in fields(out)))
        return out

    def loss(
        self, photo: np.ndarray, weight: float, shape: tuple[int, ...]
    ) -> tuple[float, float, np.ndarray]:
        gradient = np.empty(shape, np.float32)
        return (*self.card.loss(photo, weight, gradient), gradient)

    def update(self, weights: np.ndarray, number: int) -> None:
        """Number 0: statistics only."""
        self.card.update(weights, adam_tuple(number))


class NativeTwin:
    """The CPU engine, one thread."""

    def __init__(self) -> None:
        self.engine = _native.Engine(1)
        self.table: Table | None = None

    def put(self, table: Table, owed: Owed | None = None) -> None:
        self.table = copied(table)
        self.owe(owed)

    def owe(self, owed: Owed | None) -> None:
        self.handle = _native.Table(*arrays_of(self.table))
        if owed is not None:
            drift, mean_drift, first, second = (np.ascontiguousarray(column) for column in owed.by_age.T)
            self.handle.set_optimizer(BETA1, BETA2, EPSILON, AGES, np.zeros(AGES), first, second)
            drifts = np.stack([drift, mean_drift]).astype(np.float64)
            self.handle.set_account(owed.step, rates_row(owed.rates), drifts)

    def get(self) -> Table:
        return copied(self.table)

    def forward(self, camera: Pinhole, settings: RasterSettings) -> tuple[np.ndarray, np.ndarray]:
        self.image = empty_image(camera)  # the engine reads it again in backward
        self.number = self.engine.forward(
            self.handle, camera_row(camera), *settings_tuple(settings), settings.light_cut, *self.image
        )
        return self.image[0].copy(), self.image[1].copy()

    def gradients(self, weights: np.ndarray, extra: np.ndarray | None = None) -> Gradients:
        out = Gradients.empty(self.table.count)
        arrays = (getattr(out, field.name) for field in fields(out))
        self.engine.gradients(self.number, weights, extra, *arrays)
        return out

    def loss(
        self, photo: np.ndarray, weight: float, shape: tuple[int, ...]
    ) -> tuple[float, float, np.ndarray]:
        gradient = np.empty(shape, np.float32)
        return (*self.engine.loss(self.image[0], photo, weight, gradient), gradient)

    def update(self, weights: np.ndarray, number: int) -> None:
        self.engine.update(self.number, weights, *adam_tuple(number))
