"""What a checkpoint holds, for everybody who reads one: to go on training, to draw or describe its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Momentum, OptimizerState
from splatmeter.errors import CheckpointError
from splatmeter.ops import WIDTHS, Rates, Table, normalize_moments
from splatmeter.train import container, photo_exposures


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    path: Path
    arrays: Mapping[str, NDArray[Any]]
    record: Mapping[str, Any]
    """Everything that is not an array: step, settings, the order of views, and so on."""

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Around whatever takes values out of the record: what is missing becomes a CheckpointError."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise CheckpointError(
                f"The checkpoint {self.path} is damaged: {problem} is missing or makes no sense. "
                "Use an earlier checkpoint."
            ) from problem

    def table(self) -> Table:
        """Reads every version of the file; moments of the first versions are brought into today's form."""
        count = len(self.arrays["geometry"])
        for name, width in WIDTHS.items():
            array = self.arrays[name]
            if array.shape != (count, width) or array.dtype != np.float32:
                raise CheckpointError(
                    f"The checkpoint {self.path} is damaged: {name} has shape {array.shape}. "
                    "Use an earlier checkpoint."
                )
        table = Table(**{name: self.arrays[name] for name in WIDTHS})
        if self.record.get("moments") != "normalized":
            normalize_moments(table)
        return table

    def optimizer(self) -> OptimizerState:
        rates = self.record["rates"]
        others = {name: array for name, array in self.arrays.items() if name not in WIDTHS}
        owed = {name: array for name, array in others.items() if not name.startswith(photo_exposures.PREFIX)}
        steps = int(self.record["optimizer_steps"])
        return OptimizerState(steps, None if rates is None else Rates(**rates), owed, self._momentum())

    def _momentum(self) -> Momentum:
        """Before it could be chosen, everybody had the published one."""
        settings = self.record["config"]
        return Momentum(float(settings.get("momentum", Momentum().kept)), settings.get("unseen") == "wait")


def read(path: Path) -> Content:
    """CheckpointError for a file that is not whole."""
    return Content(path, *container.read(path))
