"""What a strategy of densification is: all that the rest of the program needs to know about one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from splatmeter.backend import Change, GrowthRule
from splatmeter.ops import F32, Table

EXPLORING_INTERVAL = 10
"""Noise of ten steps has the variance of one draw ten times as large, and a gradient that hardly changes
moves ten times as far in ten steps: done together they cost a tenth, and mean the same."""


class Hands(Protocol):
    """Two operations of the engine that holds the table; every change of the set is made of them."""

    @property
    def morton_order(self) -> Callable[[F32], NDArray[np.int64]]: ...

    @property
    def rearrange(self) -> Callable[[Table, NDArray[np.int64], NDArray[np.bool_]], Table]: ...


class Operation(Protocol):
    """Decided, but not done yet: nothing of the table has changed."""

    @property
    def change(self) -> Change: ...

    def perform(self, table: Table, hands: Hands) -> Table:
        """The table afterwards; the old one is used up."""
        ...


@dataclass(frozen=True, slots=True)
class Strategy:
    name: str
    plan: Callable[[Table, GrowthRule], Operation] | None
    """On a settled table in the host's memory; what a device does instead must come to the same. None: the
    set of Gaussians stays as it is."""
    absolute_gradients: bool = False
    """Steps must gather the per-pixel absolute gradients too."""
    resets_opacities: bool = True
    needs_budget: bool = False
    explores: bool = False
    """Now and then positions are shaken and opacities and sizes pulled down (`backend.Explore`)."""
