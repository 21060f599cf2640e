"""A model in the host's memory: all that is done to it between steps, in NumPy over an engine's kernels.

A device's model does the same in its own memory, and is compared with this one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter import process_memory
from splatmeter.backend import Change, EngineMemory, Exposures, GrowthRule, OptimizerState, TrainStep
from splatmeter.backends import exposure_step
from splatmeter.backends.kernels import Kernels, Picture, exploration
from splatmeter.backends.lazy_adam import LazyAdam, LazyTable, Pending, lazy
from splatmeter.densify import prune
from splatmeter.densify.strategies import STRATEGIES
from splatmeter.densify.strategy import Operation
from splatmeter.densify.surgery import removal
from splatmeter.errors import NotEnoughMemory, UsageError
from splatmeter.gaussians import filter3d, gaussians
from splatmeter.ops import F32, F64, HARMONICS_WIDTH, Pinhole, RasterSettings, Similarity, Table, empty_table
from splatmeter.units import bytes_text, count_text

CHUNK_ROWS = 8192
"""Rows brought up to date at a time where a copy is read: moments are copied for these only, 6 MiB."""

_NO_NUMBERS = Similarity(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class Done:
    """The ticket of an engine that waits for itself."""

    similarity: Similarity

    @property
    def ready(self) -> bool:
        return True

    def read(self) -> Similarity:
        return self.similarity


def host_memory(
    per_gaussian: int,
    per_pixel: int,
    fixed: int,
    buffers: Callable[[], int] = lambda: 0,
    per_pair: int = 0,
) -> EngineMemory:
    """For an engine that lives in this process."""
    return EngineMemory(
        per_gaussian=per_gaussian,
        per_pixel=per_pixel,
        fixed=fixed,
        available=lambda: process_memory.available_bytes(),
        held=lambda: process_memory.resident_bytes(),
        peak=lambda: process_memory.peak_bytes(),
        reset_peak=lambda: process_memory.reset_peak(),
        buffers=buffers,
        per_pair=per_pair,
    )


class HostModel(ABC):
    """What is left to an engine: how it steps and renders, and where it keeps lazy Adam's account."""

    def __init__(self, kernels: Kernels, held: EngineMemory, table: Table) -> None:
        self._kernels = kernels
        self._memory = held
        self._table = table
        self._trainable = table.trainable
        self._current = False  # every row is up to date for certain
        self._broken = False  # a loss was not a number: nothing learns any more
        self._exposures: Exposures | None = None

    @property
    def count(self) -> int:
        return self._table.count

    # ---- what an engine adds ------------------------------------------------------------------------------
    @abstractmethod
    def _learn(self, order: TrainStep) -> tuple[Similarity, bool]:
        """The step, and whether its loss is a number; where it is not, nothing changes."""

    @abstractmethod
    def render(self, camera: Pinhole, settings: RasterSettings) -> Picture: ...

    @abstractmethod
    def optimizer(self) -> OptimizerState: ...

    @abstractmethod
    def _pending(self) -> Pending | None: ...

    @abstractmethod
    def _spare_buffers(self) -> None:
        """Choosing and moving rows takes memory for a moment; what only steps need gives way to it."""

    @abstractmethod
    def _let_go(self) -> None:
        """The arrays are about to be replaced one by one: hold none of them."""

    @abstractmethod
    def _take_up(self, optimizer: OptimizerState) -> None:
        """They have been; the optimizer goes on as before."""

    # ---- learning -----------------------------------------------------------------------------------------
    def train_step(self, order: TrainStep) -> Done:
        if not self._trainable:
            raise UsageError(
                "This model was read from a file: without optimizer moments it cannot be trained."
            )
        if self._broken:
            return Done(_NO_NUMBERS)
        self._current = self._current and not order.learns
        similarity, finite = self._learn(order)
        self._broken = not finite
        if finite and order.explore is not None and self.count:
            asked = exploration(order.explore, order.rates, self._steps, self.count)
            self._kernels.explore(self._owing(), asked)
        return Done(similarity)

    def expose(self, exposures: Exposures) -> None:
        self._exposures = exposures

    def exposures(self) -> Exposures | None:
        return None if self._exposures is None else self._exposures.copy()

    @property
    def _steps(self) -> int:
        return self.optimizer().steps

    # ---- the set of Gaussians -----------------------------------------------------------------------------
    def grow(self, rule: GrowthRule) -> Change:
        plan = STRATEGIES[rule.strategy].plan
        if plan is None:
            return Change(0, 0, 0)
        self.settle()
        self._spare_buffers()
        return self._perform(plan(self._table, rule))

    def prune(self, lowest_opacity: float) -> Change:
        self.settle()
        self._spare_buffers()
        return self._perform(removal(prune.faint(self._table, lowest_opacity)))

    def _perform(self, operation: Operation) -> Change:
        self._require_room(operation.change)
        optimizer = self.optimizer()
        self._let_go()
        try:
            self._table = operation.perform(self._table, self._kernels)
        finally:
            if self._whole():
                self._take_up(optimizer)
            process_memory.give_back()  # the old arrays' holes are too small for the next, larger ones
        return operation.change

    def _require_room(self, change: Change) -> None:
        """Ending with a checkpoint is better than being killed by the system in the middle."""
        more = change.added
        if more <= 0:
            return
        needed = more * self._memory.per_gaussian + (self.count + more) * 4 * HARMONICS_WIDTH
        free = self._memory.available()
        if needed > free:
            raise NotEnoughMemory(
                f"Densification wants {count_text(self.count + more)} Gaussians and {bytes_text(needed)} "
                f"more memory, but {bytes_text(free)} are free. Go on with --max-gaussians {self.count} or a "
                "higher --densify-grad-threshold."
            )

    def reset_opacities(self) -> None:
        self.settle()
        prune.reset_opacities(self._table)

    def refresh_filter(self, cameras: Sequence[Pinhole]) -> None:
        self.settle()
        filter3d.refresh(self._table, cameras, self._kernels.sampling_distance)

    def settle(self) -> None:
        if not self._current:
            self._kernels.settle(self._owing())
            self._current = True

    def _owing(self) -> LazyTable:
        """The table itself, with what its rows are owed."""
        return lazy(self._table, self._pending() if self._trainable else None)

    # ---- looking ------------------------------------------------------------------------------------------
    def mean_opacity(self) -> float:
        if not self.count:
            return math.nan
        if self._current:
            return gaussians.mean_opacity(self._table)
        parts = (self._settled(part) for part in chunks(range(self.count)))
        return sum(part.count * gaussians.mean_opacity(part) for part in parts) / self.count

    def intact(self) -> bool:
        return self._whole() and bool(gaussians.finite_rows(self._table).all())

    def _whole(self) -> bool:
        table = self._table
        moments = (table.geometry_moments, table.harmonics_first, table.harmonics_second)
        arrays = (table.harmonics, *moments) if self._trainable else (table.harmonics,)
        return all(len(array) == table.count for array in arrays)

    def download(self, rows: slice) -> Table:
        wanted = range(self.count)[rows]
        if len(wanted) <= CHUNK_ROWS:
            return self._settled(wanted)
        geometry = np.empty((len(wanted), self._table.geometry.shape[1]), np.float32)
        harmonics = np.empty((len(wanted), HARMONICS_WIDTH), np.float32)
        for number, chunk in enumerate(chunks(wanted)):
            part = self._settled(chunk)
            place = slice(number * CHUNK_ROWS, number * CHUNK_ROWS + part.count)
            geometry[place], harmonics[place] = part.geometry, part.harmonics
        return without_moments(geometry, harmonics)

    def _settled(self, rows: range) -> Table:
        """Copies of these rows, up to date: the table itself is settled by nothing but the schedule."""
        taken = slice(rows.start, rows.stop, rows.step)
        table, pending = self._table, self._pending()
        if self._current or pending is None or not table.trainable:
            return without_moments(table.geometry[taken].copy(), table.harmonics[taken].copy())
        part = LazyTable(
            geometry=table.geometry[taken].copy(),
            harmonics=table.harmonics[taken].copy(),
            geometry_moments=table.geometry_moments[taken].copy(),
            harmonics_first=table.harmonics_first[taken].copy(),
            harmonics_second=table.harmonics_second[taken].copy(),
            pending=pending,
        )
        self._kernels.settle(part)
        return without_moments(part.geometry, part.harmonics)

    def stored(self, array: str, rows: slice | NDArray[np.int64]) -> F32:
        return getattr(self._table, array)[rows]


class ComposedModel(HostModel):
    """A step as its parts, one kernel after the other: the readable twin of what an engine does in one go."""

    def __init__(self, kernels: Kernels, held: EngineMemory, table: Table, optimizer: OptimizerState) -> None:
        super().__init__(kernels, held, table)
        self._adam = LazyAdam(optimizer)

    def _learn(self, order: TrainStep) -> tuple[Similarity, bool]:
        picture, tape = self._kernels.forward(self._owing(), order.camera, order.settings)
        similarity, gradient, of_exposure = self._compare(picture.color, order)
        if not math.isfinite(similarity.loss(order.ssim_weight)):
            return similarity, False
        if not order.learns:
            self._kernels.backward_and_update(tape, gradient, None)
            return similarity, True
        self._kernels.backward_and_update(tape, gradient, self._adam.next_step(order.rates))
        if order.exposure is not None and self._exposures is not None:
            exposure_step.learn(self._exposures, order.exposure, of_exposure)
        self._adam.advance(order.rates)
        if self._adam.settling:
            self._kernels.settle(self._owing())
        return similarity, True

    def _compare(self, color: F32, order: TrainStep) -> tuple[Similarity, F32, F64]:
        """L1 and SSIM, their gradient by the picture, and by the photo's transform."""
        if order.exposure is None or self._exposures is None:
            plain = self._kernels.image_loss(color, order.photo, order.ssim_weight)
            return *plain, np.zeros((3, 4))
        transform = self._exposures.transforms[order.exposure.photo]
        return self._kernels.exposed_loss(color, order.photo, order.ssim_weight, transform)

    def render(self, camera: Pinhole, settings: RasterSettings) -> Picture:
        return self._kernels.forward(self._owing(), camera, settings)[0]

    def optimizer(self) -> OptimizerState:
        return self._adam.state()

    def _pending(self) -> Pending | None:
        return self._adam.pending()

    def _spare_buffers(self) -> None:
        pass

    def _let_go(self) -> None:
        pass

    def _take_up(self, optimizer: OptimizerState) -> None:
        pass


def without_moments(geometry: F32, harmonics: F32) -> Table:
    nothing = empty_table(0)
    moments = (nothing.geometry_moments, nothing.harmonics_first, nothing.harmonics_second)
    return Table(geometry, harmonics, *moments)


def chunks(rows: range) -> list[range]:
    return [rows[begin : begin + CHUNK_ROWS] for begin in range(0, len(rows), CHUNK_ROWS)]
