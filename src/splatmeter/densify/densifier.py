"""When the set of Gaussians changes, and by which rule: the schedule around a strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splatmeter.backend import GrowthRule, HalfSpaces
from splatmeter.densify import prune
from splatmeter.densify.strategies import STRATEGIES
from splatmeter.densify.strategy import Strategy

LOSS_POWER = 1 / 6
"""The threshold goes with this power of the loss, where it does: between a fixed one, which gives clean
renders more Gaussians than help them, and the cube root, which gives photos too few."""

RECOVERY_STEPS = 500
"""No aggressive pruning so soon after an opacity reset: everything is faint then."""


@dataclass(frozen=True, slots=True)
class DensifySettings:
    """The original's flags with their defaults, and ours."""

    extent: float
    seed: int = 0
    strategy: str = "gof"
    first: int = 500
    until: int = 15_000
    interval: int = 100
    reset_interval: int = 3000
    threshold: float = 0.0002
    reference_loss: float = 0.0
    """Where it is not 0: the threshold is that of this loss, and goes with its sixth root."""
    percent_dense: float = 0.01
    white_background: bool = False
    size_prune: bool = False
    max_gaussians: int | None = None
    aggressive_opacity: float | None = None
    aggressive_interval: int = 1000
    region: HalfSpaces = ()


class Densifier:
    """Asks of a step number what is due, and by which rule."""

    def __init__(self, settings: DensifySettings) -> None:
        self.settings = settings
        self.strategy: Strategy = STRATEGIES[settings.strategy]

    def grows_at(self, step: int) -> bool:
        rule = self.settings
        return self.observes(step) and step > rule.first and step % rule.interval == 0

    def resets_at(self, step: int) -> bool:
        rule = self.settings
        if not self.observes(step) or not self.strategy.resets_opacities:
            return False
        return step % rule.reset_interval == 0 or (rule.white_background and step == rule.first)

    def prunes_at(self, step: int) -> bool:
        """Aggressive pruning, also after densification has ended; never soon after a reset."""
        rule = self.settings
        if rule.aggressive_opacity is None or step % rule.aggressive_interval:
            return False
        since = [step - at for at in range(max(1, step - RECOVERY_STEPS + 1), step) if self.resets_at(at)]
        return not since

    def observes(self, step: int) -> bool:
        """Whether statistics of this step are going to be used."""
        return self.strategy.plan is not None and 0 < step < self.settings.until

    def observed(self, step: int) -> int:
        """Steps whose statistics a densification after this one has: those since the one before."""
        before = step - self.settings.interval
        return self.settings.interval if self.grows_at(before) else step

    def rule(self, step: int, loss: float = math.nan) -> GrowthRule:
        """How the set changes after this step; `loss` is the recent mean, where it is known."""
        settings = self.settings
        limit = prune.LARGEST_SHARE * settings.extent if self._size_matters(step) else math.inf
        return GrowthRule(
            strategy=self.strategy.name,
            seed=settings.seed,
            step=step,
            threshold=self.threshold(loss),
            dense_scale=settings.percent_dense * settings.extent,
            lowest_opacity=self.lowest_opacity(aggressive=self.prunes_at(step)),
            largest_scale=limit,
            budget=settings.max_gaussians,
            region=settings.region,
        )

    def threshold(self, loss: float) -> float:
        """Gradients shrink with what is left to learn. A scene that is nearly right still has places that are
        not; one that never gets right would be densified everywhere."""
        reference = self.settings.reference_loss
        if not reference or not math.isfinite(loss):
            return self.settings.threshold
        return self.settings.threshold * (loss / reference) ** LOSS_POWER

    def lowest_opacity(self, aggressive: bool) -> float:
        extra = self.settings.aggressive_opacity if aggressive else None
        return max(prune.LOWEST_OPACITY, extra or 0.0)

    def _size_matters(self, step: int) -> bool:
        return self.settings.size_prune and step > self.settings.reset_interval
