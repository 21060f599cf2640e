"""The strategies by name. A new one is a file beside this, and its name in both lists here."""

from __future__ import annotations

from typing import Literal

from splatmeter.densify.strategies.cut import CUT
from splatmeter.densify.strategies.fixed import FIXED
from splatmeter.densify.strategies.gof import GOF
from splatmeter.densify.strategies.mcmc import MCMC
from splatmeter.densify.strategies.three_dgs import THREE_DGS

StrategyName = Literal["gof", "3dgs", "cut", "mcmc", "none"]

STRATEGIES = {strategy.name: strategy for strategy in (GOF, THREE_DGS, CUT, MCMC, FIXED)}
