"""An imitation of a device: memory only its backend touches, work done late, every crossing counted.

Over a backend of this process it is a second one whose models cannot be peeked at: what was uploaded turns
into NaN on the host, what is downloaded is a copy that cannot be written to, and steps are done as late as
the rules allow, in random gulps. A trainer that gives the same bits on it waits where it must, and nowhere
looks at a model behind its backend's back.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Backend, Change, Exposures, GrowthRule, Model, OptimizerState, TrainStep
from splatmeter.ops import F32, WIDTHS, Pinhole, RasterSettings, Similarity, Table

LONGEST_QUEUE = 7


class Device:
    """One queue of work; `crossings` counts calls by name, `waits` those that had to wait for the queue."""

    def __init__(self, seed: int = 0) -> None:
        self.crossings: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self._queue: list[Callable[[], None]] = []
        self._random = np.random.default_rng(seed)

    def enqueue(self, name: str, work: Callable[[], None]) -> None:
        self.crossings[name] += 1
        self._queue.append(work)
        ahead = len(self._queue)
        self._run(ahead - LONGEST_QUEUE if ahead > LONGEST_QUEUE else int(self._random.integers(0, 2)))

    def wait(self, name: str) -> None:
        self.crossings[name] += 1
        self.waits[name] += bool(self._queue)
        self._run(len(self._queue))

    def _run(self, count: int) -> None:
        for _ in range(count):
            self._queue.pop(0)()


@dataclasses.dataclass(eq=False)
class DeviceTicket:
    device: Device
    similarity: Similarity | None = None

    @property
    def ready(self) -> bool:
        self.device.crossings["ready"] += 1
        return self.similarity is not None

    def read(self) -> Similarity:
        if self.similarity is None:
            self.device.wait("read")
        assert self.similarity is not None
        return self.similarity


class DevicePhoto:
    """Nothing to see for the host."""

    def __init__(self, pixels: NDArray[np.uint8]) -> None:
        self.__pixels = pixels.copy()

    def _on_device(self) -> NDArray[np.uint8]:
        return self.__pixels


class DevicePicture:
    def __init__(self, device: Device, inner: Any) -> None:
        self.__device, self.__color, self.__light = device, inner.color.copy(), inner.transmittance.copy()

    @property
    def color(self) -> F32:
        return self.__download(self.__color)

    @property
    def transmittance(self) -> F32:
        return self.__download(self.__light)

    def __download(self, image: F32) -> F32:
        self.__device.wait("pixels")
        return image.copy()


class DeviceModel:
    """Only what `backend.Model` names; anything else is an AttributeError."""

    def __init__(self, device: Device, inner: Model) -> None:
        self.__device, self.__inner = device, inner

    @property
    def count(self) -> int:
        return self.__inner.count

    def train_step(self, order: TrainStep) -> DeviceTicket:
        ticket = DeviceTicket(self.__device)

        def work() -> None:
            there = dataclasses.replace(order, photo=order.photo._on_device())
            ticket.similarity = self.__inner.train_step(there).read()

        self.__device.enqueue("train_step", work)
        return ticket

    def render(self, camera: Pinhole, settings: RasterSettings) -> DevicePicture:
        return DevicePicture(self.__device, self.__done("render").render(camera, settings))

    def settle(self) -> None:
        self.__done("settle").settle()

    def grow(self, rule: GrowthRule) -> Change:
        return self.__done("grow").grow(rule)

    def prune(self, lowest_opacity: float) -> Change:
        return self.__done("prune").prune(lowest_opacity)

    def reset_opacities(self) -> None:
        self.__done("reset_opacities").reset_opacities()

    def refresh_filter(self, cameras: Sequence[Pinhole]) -> None:
        self.__done("refresh_filter").refresh_filter(cameras)

    def mean_opacity(self) -> float:
        return self.__done("mean_opacity").mean_opacity()

    def intact(self) -> bool:
        return self.__done("intact").intact()

    def download(self, rows: slice) -> Table:
        table = self.__done("download").download(rows)
        return Table(**{name: _copy(getattr(table, name)) for name in WIDTHS})

    def stored(self, array: str, rows: slice | NDArray[np.int64]) -> F32:
        return _copy(self.__done("stored").stored(array, rows))

    def optimizer(self) -> OptimizerState:
        return self.__done("optimizer").optimizer()

    def expose(self, exposures: Exposures) -> None:
        self.__done("expose").expose(exposures.copy())
        for name in ("transforms", "first", "second", "visits"):
            getattr(exposures, name)[:] = np.nan

    def exposures(self) -> Exposures | None:
        return self.__done("exposures").exposures()

    def __done(self, name: str) -> Model:
        self.__device.wait(name)
        return self.__inner


def _copy(array: F32) -> F32:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def imitation(backend: Backend, device: Device) -> Backend:
    def upload(table: Table, optimizer: OptimizerState = OptimizerState()) -> DeviceModel:  # noqa: B008
        device.wait("upload")
        there = Table(**{name: getattr(table, name).copy() for name in WIDTHS})
        for name in WIDTHS:
            here = getattr(table, name)
            here.flags.writeable = True
            here[:] = np.nan
        return DeviceModel(device, backend.upload(there, optimizer))

    return dataclasses.replace(
        backend,
        facts=dataclasses.replace(backend.facts, name="imitation", device="imitation:0"),
        upload=upload,
        photo=DevicePhoto,
        synchronize=lambda: device.wait("synchronize"),
    )
