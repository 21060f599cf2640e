"""Cut: gof's candidates are cut in two across their longest axis, and nothing is cloned.

An exact copy looks the same as twice the opacity until the two have moved apart, which a short training has no time
for. Two halves side by side look like the whole at once, and each of them is free to follow its own detail.
"""

from __future__ import annotations

from functools import partial

from splatmeter.densify import adaptive, division
from splatmeter.densify.strategies.gof import absolute_criterion
from splatmeter.densify.strategy import Strategy

CUT = Strategy(
    "cut",
    partial(adaptive.plan, criterion=absolute_criterion, division=division.CUT, clones=False),
    absolute_gradients=True,
)
