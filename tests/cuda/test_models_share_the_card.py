"""One card for all models of a backend: its figures count all of them, and what a model held goes with it."""

from __future__ import annotations

import dataclasses
import gc
import math
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "backends"))

from standin import Standin
from test_models import fresh, order, rule

from splatmeter.backend import Backend, Explore, Model
from splatmeter.backends import lazy_adam
from splatmeter.backends.cuda import cuda_backend
from splatmeter.errors import NotEnoughMemory
from splatmeter.ops import WIDTHS, RasterSettings

EXPLORE = Explore(seed=5, steps=10, noise=1e3, opacity=0.01, scale=0.01)


@pytest.fixture
def card(schedule: Standin) -> Backend:
    gc.collect()  # what other tests left on the stand-in must not go in the middle of this one
    return cuda_backend(0, threads=1)


def step(backend: Backend, model: Model, number: int, **changes: Any) -> Any:
    asked = order(number, **changes)
    return model.train_step(dataclasses.replace(asked, photo=backend.photo(asked.photo)))


def trained(backend: Backend, steps: int = 6, strategy: str = "gof") -> Model:
    model = backend.upload(fresh())
    for number in range(1, steps + 1):
        step(backend, model, number, explore=EXPLORE if number == 5 else None)
        if number == 4:
            model.grow(rule(strategy))
    return model


def kept(model: Model) -> list[bytes]:
    return [model.stored(name, slice(None)).tobytes() for name in WIDTHS]


def test_a_models_memory_comes_back_when_nobody_wants_it(card: Backend, schedule: Standin) -> None:
    """Even with steps under way; tickets that somebody keeps keep their model."""
    model = trained(card)
    del model
    before, on_card = card.memory.held(), schedule.count("bytes")
    for _ in range(3):
        model = trained(card)
        assert card.memory.held() > before + 50_000
        ticket = step(card, model, 7)
        del model
        assert math.isfinite(ticket.read().l1)
        del ticket
        assert card.memory.held() == before and schedule.count("bytes") == on_card


def test_figures_are_those_of_all_models(card: Backend, schedule: Standin) -> None:
    free, of_others = card.memory.available(), schedule.count("bytes") - card.memory.held()
    models = [trained(card) for _ in range(3)]
    assert card.memory.held() == schedule.count("bytes") - of_others
    assert card.memory.available() < free - 3 * 50_000
    assert card.memory.peak() >= card.memory.held()
    assert len({model.count for model in models}) == 1


def test_models_on_one_card_do_not_disturb_each_other(card: Backend) -> None:
    """Step by step in turn, and in two threads at once."""
    expected = {strategy: kept(trained(card, strategy=strategy)) for strategy in ("gof", "mcmc")}
    found: dict[str, list[bytes]] = {}

    def train(strategy: str) -> None:
        found[strategy] = kept(trained(card, strategy=strategy))

    others = [threading.Thread(target=train, args=(strategy,)) for strategy in expected]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert found == expected
    one, two = card.upload(fresh()), card.upload(fresh())
    for number in range(1, 7):
        for model in (one, two):
            step(card, model, number)
            model.render(order(2).camera, RasterSettings())
    assert kept(one) == kept(two)


def test_models_share_one_limit(schedule: Standin) -> None:
    schedule.option("foreign", (16 << 30) - schedule.count("bytes") - 400_000)
    card = cuda_backend(0, threads=1)
    first = trained(card)
    with pytest.raises(NotEnoughMemory, match="may be used"):
        others = [trained(card) for _ in range(20)]
        assert not others
    assert card.memory.peak() <= 0.9 * 400_000
    assert first.intact()


@pytest.mark.parametrize("strategy", ["gof", "mcmc"])
def test_the_host_waits_at_most_once_a_step(
    card: Backend, schedule: Standin, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a step explores or settles all rows, or both."""
    monkeypatch.setattr(lazy_adam, "SETTLE_INTERVAL", 4)
    explore = EXPLORE if strategy == "mcmc" else None
    model = card.upload(fresh())
    tickets, waits, launches = [], [], []
    for number in range(1, 17):
        asked = order(number, explore=explore if number % 3 == 0 else None)
        asked = dataclasses.replace(asked, photo=card.photo(asked.photo))
        before, launched = schedule.count("waits"), schedule.count("launches")
        tickets.append(model.train_step(asked))
        waits.append(schedule.count("waits") - before)
        launches.append(schedule.count("launches") - launched)
    assert set(waits) == {1}
    usual = launches[0]
    more = [2 * (n % 4 == 0) + (n % 3 == 0 and explore is not None) for n in range(1, 17)]
    assert launches == [usual + extra for extra in more]
    assert all(math.isfinite(ticket.read().l1) for ticket in tickets)


def test_a_bad_step_is_neither_settled_nor_explored_from(
    card: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host has not heard of it yet when it asks for both."""
    monkeypatch.setattr(lazy_adam, "SETTLE_INTERVAL", 4)
    hole = RasterSettings(background=(math.nan, 0.0, 0.0))
    model = card.upload(fresh())
    for number in range(1, 4):
        step(card, model, number)
    before, owed = kept(model), model.optimizer()
    bad = step(card, model, 4, settings=hole, explore=EXPLORE)
    after = step(card, model, 5, explore=EXPLORE)
    assert math.isnan(bad.read().l1) and math.isnan(after.read().l1)
    assert kept(model) == before
    assert model.optimizer().steps == owed.steps == 3
    model.settle()  # asked for by name it is done, as far as the last step that counts
    last = model.stored("geometry", slice(None))[:, 15]
    np.testing.assert_array_equal(last, 3.0)
