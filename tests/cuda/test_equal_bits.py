"""The same bits from run to run, whatever the order of blocks, threads and queues, and however late."""

from __future__ import annotations

import dataclasses
import hashlib
import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "backends"))

from standin import Standin
from test_models import fresh, order, rule

from splatmeter.backend import Backend, Explore
from splatmeter.backends import lazy_adam
from splatmeter.backends.cuda import cuda_backend
from splatmeter.ops import WIDTHS, RasterSettings

EXPLORE = Explore(seed=5, steps=10, noise=1e3, opacity=0.01, scale=0.01)


@pytest.fixture(scope="module")
def backend(standin: Standin) -> Backend:
    return cuda_backend(0, threads=1)


def everything(backend: Backend, strategy: str, steps: int) -> str:
    """Steps, some of which only look, explore or settle; growth, the filter, resets, pruning and pictures."""
    model = backend.upload(fresh())
    told = hashlib.sha256()
    tickets = []
    for number in range(1, steps + 1):
        explore = EXPLORE if strategy == "mcmc" and number % 3 == 0 else None
        asked = order(number, learns=number % 5 != 0, explore=explore)
        tickets.append(model.train_step(dataclasses.replace(asked, photo=backend.photo(asked.photo))))
        if number % 6 == 0:
            told.update(str(model.grow(rule(strategy))).encode())
        if number == 7:
            model.refresh_filter([asked.camera])
            model.reset_opacities()
        if number == 8:
            told.update(model.render(asked.camera, RasterSettings()).color.tobytes())
            told.update(str(model.prune(0.008)).encode())
    for ticket in tickets:
        told.update(repr(ticket.read()).encode())
    for name in WIDTHS:
        told.update(model.stored(name, slice(None)).tobytes())
    return told.hexdigest()


def runs(backend: Backend, schedule: Standin, strategy: str, steps: int, repetitions: int) -> set[str]:
    chance = random.Random(7)
    found = set()
    for _ in range(repetitions):
        schedule.option("seed", chance.randrange(1 << 30))
        schedule.option("preempt", chance.randrange(2))
        schedule.option("wander", chance.randrange(2))
        found.add(everything(backend, strategy, steps))
    return found


@pytest.mark.parametrize("strategy", ["gof", "mcmc"])
def test_three_runs_have_the_same_bits(
    backend: Backend, schedule: Standin, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_adam, "SETTLE_INTERVAL", 4)
    assert len(runs(backend, schedule, strategy, steps=8, repetitions=3)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["gof", "3dgs", "cut", "mcmc"])
def test_twenty_runs_have_the_same_bits(
    backend: Backend, schedule: Standin, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_adam, "SETTLE_INTERVAL", 4)
    assert len(runs(backend, schedule, strategy, steps=20, repetitions=20)) == 1
