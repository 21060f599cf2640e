"""When the set of Gaussians changes, and into what: the schedule around criteria, surgery and pruning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splatmeter import memory
from splatmeter.densify import prune, relocate, statistics
from splatmeter.densify.adaptive import CRITERIA, Candidates, within_budget
from splatmeter.densify.surgery import SHRINK, Plan, operate
from splatmeter.errors import NotEnoughMemory
from splatmeter.ops import HARMONICS_WIDTH, Backend, Table
from splatmeter.units import bytes_text, count_text

MCMC = "mcmc"
"""The criterion of 3DGS-MCMC: none, but relocation within a fixed budget; opacities are never reset."""

Rows = NDArray[np.bool_]  # [N]

RECOVERY_STEPS = 500
"""No aggressive pruning so soon after an opacity reset: everything is faint then."""


@dataclass(frozen=True, slots=True)
class DensifySettings:
    """The original's flags with their defaults, and ours."""

    extent: float
    criterion: str = "gof"
    """'gof', '3dgs', 'mcmc', or 'none' for a fixed set of Gaussians (and no opacity resets)."""
    first: int = 500
    until: int = 15_000
    interval: int = 100
    reset_interval: int = 3000
    threshold: float = 0.0002
    percent_dense: float = 0.01
    white_background: bool = False
    size_prune: bool = False
    max_gaussians: int | None = None
    aggressive_opacity: float | None = None
    aggressive_interval: int = 1000


@dataclass(frozen=True, slots=True)
class Change:
    cloned: int
    split: int
    pruned: int


class Densifier:
    """Asks of a step number what is due, and does it on a settled table."""

    def __init__(self, settings: DensifySettings, backend: Backend) -> None:
        self.settings = settings
        self.backend = backend

    # ---- the schedule -------------------------------------------------------------------------------------
    def grows_at(self, step: int) -> bool:
        rule = self.settings
        return self._active(step) and step > rule.first and step % rule.interval == 0

    def resets_at(self, step: int) -> bool:
        rule = self.settings
        if not self._active(step) or rule.criterion == MCMC:
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
        return self._active(step)

    def _active(self, step: int) -> bool:
        return self.settings.criterion != "none" and 0 < step < self.settings.until

    # ---- the changes --------------------------------------------------------------------------------------
    def grow(self, step: int, table: Table, generator: np.random.Generator) -> tuple[Table, Change]:
        """Clone, split and prune in one rearrangement; NotEnoughMemory, nothing changed, if it cannot fit."""
        rule = self.settings
        if rule.criterion == MCMC:
            return self._relocate(table, generator)
        candidates = CRITERIA[rule.criterion](statistics.read(table), rule.threshold)
        plan, change = self._plan(step, table, candidates)
        require_room(table.count, change)
        return operate(table, plan, self.backend, generator), change

    def _relocate(self, table: Table, generator: np.random.Generator) -> tuple[Table, Change]:
        budget = self.settings.max_gaussians or table.count
        relocation = relocate.plan(table, budget, generator)
        change = Change(len(relocation.hosts), 0, table.count - len(relocation.live))
        require_room(table.count, change)
        return relocate.relocate(table, relocation, self.backend), change

    def prune(self, table: Table, generator: np.random.Generator) -> tuple[Table, Change]:
        """Only what is fainter than the aggressive threshold goes."""
        gone = prune.faint(table, self._lowest_opacity(aggressive=True))
        none = np.zeros_like(gone)
        table = operate(table, Plan(~gone, none, none), self.backend, generator)
        return table, Change(0, 0, int(np.count_nonzero(gone)))

    def _plan(self, step: int, table: Table, candidates: Candidates) -> tuple[Plan, Change]:
        rule = self.settings
        faint = prune.faint(table, self._lowest_opacity(self.prunes_at(step)))  # [N]
        scales = prune.largest_scales(table)  # [N]
        limit = prune.LARGEST_SHARE * rule.extent if self._size_matters(step) else np.inf
        small = scales <= rule.percent_dense * rule.extent  # [N]
        gone = faint | (scales > limit)  # [N] what pruning takes of rows and their exact copies
        gone_child = faint | (scales / SHRINK > limit)  # [N] and of children
        chosen = self._affordable(candidates, gone, np.where(small, gone, gone_child))
        clone, split = chosen & small, chosen & ~small
        plan = Plan(keep=~split & ~gone, clone=clone & ~gone, split=split & ~gone_child)
        pruned = (gone & ~split).sum() + (gone & clone).sum() + 2 * (gone_child & split).sum()
        return plan, Change(int(clone.sum()), int(split.sum()), int(pruned))

    def _affordable(self, candidates: Candidates, gone: Rows, wasted: Rows) -> Rows:
        """Candidates within the budget: each adds a row, children of a parent too large to stay add two."""
        budget = self.settings.max_gaussians
        if budget is None:
            return candidates.chosen
        stay = np.count_nonzero(~gone)
        doubled = np.count_nonzero(candidates.chosen & gone & ~wasted)
        if stay + np.count_nonzero(candidates.chosen & ~wasted) + doubled <= budget:
            return candidates.chosen
        return within_budget(candidates, ~gone, budget - stay)

    def _size_matters(self, step: int) -> bool:
        return self.settings.size_prune and step > self.settings.reset_interval

    def _lowest_opacity(self, aggressive: bool) -> float:
        extra = self.settings.aggressive_opacity if aggressive else None
        return max(prune.LOWEST_OPACITY, extra or 0.0)


def require_room(count: int, change: Change) -> None:
    """Ending with a checkpoint is better than being killed by the system in the middle."""
    more = change.cloned + change.split - change.pruned
    if more <= 0:
        return
    needed = more * memory.NATIVE_BYTES_PER_GAUSSIAN + (count + more) * 4 * HARMONICS_WIDTH
    free = memory.available_bytes()
    if needed > free:
        raise NotEnoughMemory(
            f"Densification wants {count_text(count + more)} Gaussians and {bytes_text(needed)} more memory, "
            f"but {bytes_text(free)} are free. Go on with --max-gaussians {count} or a higher "
            "--densify-grad-threshold."
        )
