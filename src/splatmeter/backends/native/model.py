"""Gaussians that the C++ engine trains: a whole step is one call of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from splatmeter.backend import EngineMemory, Exposures, ExposureStep, OptimizerState, TrainStep
from splatmeter.backends import lazy_adam
from splatmeter.backends.host_model import HostModel
from splatmeter.backends.kernels import Kernels, Picture
from splatmeter.backends.lazy_adam import PENDING_AGES, Pending
from splatmeter.backends.native.engine import Engine, camera_row, look, rates_row
from splatmeter.ops import F64, Pinhole, RasterSettings, Rates, Similarity, Table

_AS_IT_IS = ExposureStep(-1, 0.0, 0.0)


class NativeModel(HostModel):
    """Lazy Adam's account lies with the extension's handle of the table, and moves on inside a step."""

    def __init__(
        self, engine: Engine, kernels: Kernels, memory: EngineMemory, table: Table, optimizer: OptimizerState
    ) -> None:
        super().__init__(kernels, memory, table)
        self._engine = engine
        self._handle: Any = None
        self._momentum = optimizer.momentum
        self._take_up(optimizer)

    def _spare_buffers(self) -> None:
        self._engine.native.release_workspace()

    def _let_go(self) -> None:
        self._handle = None

    def _take_up(self, optimizer: OptimizerState) -> None:
        self._handle = self._engine.handle(self._table, optimizer)
        if self._exposures is not None:
            self.expose(self._exposures)

    def expose(self, exposures: Exposures) -> None:
        super().expose(exposures)
        arrays = (exposures.transforms, exposures.first, exposures.second)
        self._handle.set_exposures(*arrays, exposures.visits)

    def _learn(self, order: TrainStep) -> tuple[Similarity, bool]:
        exposed = order.exposure or _AS_IT_IS
        l1, ssim, finite = self._engine.native.train_step(
            self._handle,
            camera_row(order.camera),
            *look(order.settings),
            order.photo,
            order.ssim_weight,
            rates_row(order.rates),
            order.learns,
            exposed.photo,
            exposed.rate,
            exposed.pull,
        )
        return Similarity(l1, ssim), finite

    def render(self, camera: Pinhole, settings: RasterSettings) -> Picture:
        return self._engine.render(self._handle, camera, settings)[0]

    def optimizer(self) -> OptimizerState:
        owed = lazy_adam.owed_of(self._drifts())
        return OptimizerState(self._handle.steps, self._rates(), owed, self._momentum)

    def _pending(self) -> Pending | None:
        return lazy_adam.pending(self._handle.steps, self._rates(), self._drifts(), self._momentum)

    def _rates(self) -> Rates | None:
        rates = self._handle.rates
        return Rates(*rates) if rates else None

    def _drifts(self) -> F64:
        drifts = np.empty((2, PENDING_AGES))
        self._handle.copy_drifts(drifts)
        return drifts
