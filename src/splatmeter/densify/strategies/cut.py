"""Cut: gof's candidates are cut in two across their longest axis, and nothing is cloned.

Until a copy and its original have moved apart they look like one with more opacity, and a short training has
no time for that. Two halves lie side by side at once, and each is free to follow its own detail.
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
