"""Models of the engines: one call a step against its parts, reading that changes nothing, the sticky flag."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))

from parity_scenes import camera, random_table, smooth_image

from splatmeter.backend import Backend, Explore, GrowthRule, Model, Momentum, OptimizerState, TrainStep
from splatmeter.backends.host_model import ComposedModel
from splatmeter.errors import NotEnoughMemory, UsageError
from splatmeter.gaussians import gaussians
from splatmeter.ops import (
    LAST_UPDATE,
    OPACITY_LOGITS,
    WIDTHS,
    RasterSettings,
    Rates,
    Table,
    empty_table,
)

native = pytest.importorskip("splatmeter.backends.native", reason="the native engine is not built")

RATES = Rates(mean=1e-3, harmonics_dc=2.5e-3, harmonics_rest=1.25e-4, opacity=0.05, scale=5e-3, rotation=1e-3)
SIZE = (33, 17)
NEW, WAITING = OptimizerState(), OptimizerState(momentum=Momentum(0.7, waits=True))


def fresh(count: int = 80) -> Table:
    return Table(**{name: getattr(random_table(count, seed=3), name) for name in WIDTHS})


def order(number: int, **changes: Any) -> TrainStep:
    """From changing sides, so that some rows are seen and others wait."""
    image = smooth_image(*SIZE, seed=number)
    photo = np.ascontiguousarray((127 + 40 * image).clip(0, 255)).astype(np.uint8)
    settings = RasterSettings(absolute_gradients=True)
    view = camera(*SIZE, seed=number, shift=(0.4, 0.0))
    step = TrainStep(view, photo, settings, 0.2, dataclasses.replace(RATES, mean=1e-3 * 0.99**number))
    return dataclasses.replace(step, **changes)


def rule(strategy: str, **changes: Any) -> GrowthRule:
    numbers = {"threshold": 1e-4, "dense_scale": 0.1, "lowest_opacity": 0.005, "largest_scale": math.inf}
    limits = {"budget": 200, "seed": 7, "step": 20}
    return GrowthRule(strategy=strategy, **(numbers | limits | changes))


def stored(model: Model) -> dict[str, bytes]:
    state = model.optimizer()
    arrays = {name: model.stored(name, slice(None)).tobytes() for name in WIDTHS}
    owed = {name: array.tobytes() for name, array in state.owed.items()}
    return arrays | owed | {"steps": bytes(str((state.steps, state.rates)), "ascii")}


def composed(backend: Backend, table: Table, begun: OptimizerState = NEW) -> ComposedModel:
    return ComposedModel(native.native_kernels(2), backend.memory, table, begun)


def story(model: Model, strategy: str) -> None:
    """Steps, steps that only observe, explorations, growth, pruning, a reset and the filter."""
    explore = Explore(seed=5, steps=10, noise=1e3, opacity=0.01, scale=0.01) if strategy == "mcmc" else None
    for number in range(1, 41):
        asked = explore if number % 10 == 0 else None
        model.train_step(order(number, learns=number % 13 != 0, explore=asked)).read()
        if number in (14, 27):
            model.grow(rule(strategy))
        if number == 20:
            model.refresh_filter([order(number).camera])
            model.reset_opacities()
        if number == 33:
            model.prune(0.008)


@pytest.mark.parametrize("begun", [NEW, WAITING], ids=["moving", "waiting"])
@pytest.mark.parametrize("strategy", ["gof", "3dgs", "mcmc", "none"])
def test_a_step_in_one_call_is_its_parts_to_the_last_bit(strategy: str, begun: OptimizerState) -> None:
    backend = native.native_backend(2)
    whole, parts = backend.upload(fresh(), begun), composed(backend, fresh(), begun)
    for model in (whole, parts):
        story(model, strategy)
    assert stored(whole) == stored(parts)
    assert whole.optimizer().momentum == parts.optimizer().momentum == begun.momentum
    assert len(np.unique(whole.stored("geometry", slice(None))[:, LAST_UPDATE])) > 2, "no row was behind"


def test_all_rows_catch_up_every_five_hundred_steps_in_one_call_too() -> None:
    backend = native.native_backend(1)
    whole, parts = backend.upload(fresh(12)), composed(backend, fresh(12))
    for number in range(1, 504):
        for model in (whole, parts):
            model.train_step(order(number % 7))
        if number in (499, 500, 501):
            assert stored(whole) == stored(parts)
            behind = (whole.stored("geometry", slice(None))[:, LAST_UPDATE] < number).any()
            assert behind == (number != 500)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_story_has_the_same_bits_for_any_number_of_threads(threads: int) -> None:
    one, other = (native.native_backend(count).upload(fresh()) for count in (2, threads))
    for model in (one, other):
        story(model, "gof")
    assert stored(one) == stored(other)


def test_reading_changes_no_later_bit() -> None:
    backend = native.native_backend(2)
    quiet, watched = backend.upload(fresh()), backend.upload(fresh())
    looks: list[Callable[[], Any]] = [
        lambda: watched.render(order(1).camera, RasterSettings()).color,
        lambda: watched.download(slice(None)),
        lambda: watched.download(slice(3, 40, 5)),
        lambda: watched.mean_opacity(),
        lambda: watched.intact(),
        lambda: watched.optimizer(),
    ]
    for number in range(1, 25):
        quiet.train_step(order(number))
        watched.train_step(order(number))
        looks[number % len(looks)]()
    assert stored(quiet) == stored(watched)


def test_what_is_downloaded_is_what_settling_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splatmeter.backends.host_model.CHUNK_ROWS", 7)
    backend = native.native_backend(2)
    model = backend.upload(fresh())
    for number in range(1, 9):
        model.train_step(order(number))
    taken, some = model.download(slice(None)), model.download(slice(5, 70, 3))
    mean = model.mean_opacity()
    behind = model.stored("geometry", slice(None))[:, :11].copy()
    model.settle()
    now = model.stored("geometry", slice(None))
    assert not taken.trainable and taken.geometry is not now
    np.testing.assert_array_equal(taken.geometry, now)
    np.testing.assert_array_equal(taken.harmonics, model.stored("harmonics", slice(None)))
    np.testing.assert_array_equal(some.geometry, now[5:70:3])
    assert (behind != now[:, :11]).any()
    assert mean == pytest.approx(float(gaussians.sigmoid(now[:, OPACITY_LOGITS]).mean()), rel=1e-12)


def test_a_loss_that_is_no_number_changes_nothing_then_or_later() -> None:
    hole = RasterSettings(background=(math.nan, 0.0, 0.0))
    backend = native.native_backend(2)
    for model in (backend.upload(fresh()), composed(backend, fresh())):
        model.train_step(order(1))
        before = stored(model)
        assert math.isnan(model.train_step(order(2, settings=hole)).read().loss(0.2))
        assert math.isnan(model.train_step(order(3)).read().l1)
        assert stored(model) == before


def test_a_model_without_moments_renders_but_does_not_learn() -> None:
    model = native.native_backend(1).upload(empty_table(3, trainable=False))
    assert model.render(order(1).camera, RasterSettings()).color.shape == (3, 17, 33)
    assert model.intact() and model.download(slice(None)).count == 3
    with pytest.raises(UsageError, match="cannot be trained"):
        model.train_step(order(1))


def test_growth_without_room_changes_nothing_and_training_goes_on() -> None:
    backend = native.native_backend(1)
    tight = dataclasses.replace(backend.memory, available=lambda: 1000)
    model = native.NativeModel(
        native.native_engine(1), native.native_kernels(1), tight, fresh(), OptimizerState()
    )
    model.train_step(order(1))
    model.settle()
    before = stored(model)
    with pytest.raises(NotEnoughMemory, match="Densification wants"):
        model.grow(rule("3dgs", threshold=1e-9))
    assert stored(model) == before
    model.train_step(order(2)).read()


def test_a_rearrangement_cut_short_is_not_intact() -> None:
    model: Any = native.native_backend(1).upload(fresh())

    for taken in ("harmonics_second", "geometry_moments"):

        def cut(table: Table, *_: Any, taken: str = taken) -> Table:
            setattr(table, taken, getattr(table, taken)[:0])
            raise MemoryError

        model = native.native_backend(1).upload(fresh())
        model._kernels = dataclasses.replace(model._kernels, rearrange=cut)
        assert model.intact()
        with pytest.raises(MemoryError):
            model.prune(0.5)
        assert not model.intact()


def test_a_broken_row_is_not_intact() -> None:
    table = fresh()
    table.harmonics[3, 7] = np.inf
    assert not native.native_backend(1).upload(table).intact()


def test_an_empty_model_is_nothing_but_sound() -> None:
    model = native.native_backend(1).upload(empty_table(0))
    explore = Explore(seed=5, steps=10, noise=1e3, opacity=0.01, scale=0.01)
    assert math.isfinite(model.train_step(order(1, explore=explore)).read().l1)
    model.grow(rule("gof"))
    model.refresh_filter([order(1).camera])
    assert model.count == 0 and math.isnan(model.mean_opacity()) and model.intact()
