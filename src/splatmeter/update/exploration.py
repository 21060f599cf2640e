"""When a budgeted run explores: 3DGS-MCMC's noise and its two regularisers, several steps at once.

Noise of ten steps has the variance of one draw ten times as large, and a gradient that hardly changes moves
ten times as far in ten steps: done together they cost a tenth, and mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from splatmeter.ops import Backend, Exploration, Rates, Table
from splatmeter.update.optimizer import Optimizer

EXPLORING_INTERVAL = 10


@dataclass(frozen=True, slots=True)
class ExplorationSettings:
    """Weights of the paper; its regularisers are means over all Gaussians (and all axes)."""

    seed: int = 0
    noise: float = 5e5
    """Times the positions' rate."""
    opacity: float = 0.01
    scale: float = 0.01


@dataclass(frozen=True, slots=True)
class Explorer:
    settings: ExplorationSettings
    backend: Backend

    def __call__(self, step: int, table: Table, optimizer: Optimizer, rates: Rates) -> None:
        """By the number of the step alone: a resumed run explores at the same steps, with the same draws."""
        if step % EXPLORING_INTERVAL or not table.count:
            return
        exploration = Exploration(
            seed=self.settings.seed,
            number=optimizer.steps,
            steps=EXPLORING_INTERVAL,
            rates=rates,
            noise=self.settings.noise,
            opacity_weight=self.settings.opacity / table.count,
            scale_weight=self.settings.scale / (3 * table.count),
        )
        self.backend.explore(table, exploration)
