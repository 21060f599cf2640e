"""The rules on aims and scenes keep what they promise: benchmarks/aim_simulations.py with fewer trials.

A rate may exceed its promise by four binomial standard errors: a rule that keeps it fails such a test once in
30,000.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import aim_simulations as simulations

TRIALS = 120
PROMISE = 0.05


@pytest.mark.parametrize("name", simulations.FALSE)
def test_a_gain_that_is_not_there_is_rarely_claimed(name: str) -> None:
    case, kind = simulations.FALSE[name]
    share = simulations.shares(case, TRIALS)[kind] / TRIALS
    assert share <= PROMISE + 4 * math.sqrt(PROMISE * (1 - PROMISE) / TRIALS)


@pytest.mark.parametrize("name", [name for name in simulations.TRUE if "s_d of speed 2 %" not in name])
def test_a_gain_that_is_there_is_usually_found(name: str) -> None:
    case, kind = simulations.TRUE[name]
    assert simulations.shares(case, 40)[kind] >= 0.5 * 40
