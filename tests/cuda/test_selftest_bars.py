"""Every bar of the self-test can be missed: a card that is wrong in one operation is named with it, and one
that only rounds otherwise passes, also where a million pixels sit at some threshold."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from splatmeter.backend import Backend, TrainStep
from splatmeter.backends.cuda import selftest
from splatmeter.backends.cuda.selftest import QUICK, Check, Size
from splatmeter.backends.native import native_backend
from splatmeter.ops import FILTER_3D, OPACITY_LOGITS, RasterSettings, Similarity, Table

MIP = RasterSettings(absolute_gradients=True)
DEGREE_2 = dataclasses.replace(MIP, sh_degree=2)
MIDDLE = Size(1500, 120, 80)
Change = Callable[[Any, str], Callable[..., Any]]


class Wrong:
    """A model whose one operation is replaced."""

    def __init__(self, model: Any, operation: str, change: Change) -> None:
        self._model = model
        setattr(self, operation, change(model, operation))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def wrong(operation: str, change: Change) -> Backend:
    cpu = native_backend(1)
    return dataclasses.replace(cpu, upload=lambda *table: Wrong(cpu.upload(*table), operation, change))


def nothing(model: Any, name: str) -> Callable[..., Any]:
    return lambda *_: None


def after(alter: Callable[[Any], Any]) -> Change:
    """What comes back is altered."""
    return lambda model, name: lambda *given: alter(getattr(model, name)(*given))


def before(alter: Callable[[Any], Any]) -> Change:
    """What is asked for is altered."""
    return lambda model, name: lambda asked: getattr(model, name)(alter(asked))


def picture(**changes: Callable[[Any], Any]) -> Change:
    def alter(rendering: Any) -> Any:
        parts = {name: change(getattr(rendering, name)) for name, change in changes.items()}
        return dataclasses.replace(rendering, **parts)

    return after(alter)


def one_row(values: np.ndarray, by: float) -> np.ndarray:
    values = values.copy()
    values[..., 20, :] += by
    return values


class Loss:
    def __init__(self, ticket: Any, l1: float) -> None:
        self._ticket, self._more = ticket, l1

    def read(self) -> Similarity:
        told = self._ticket.read()
        return dataclasses.replace(told, l1=told.l1 + self._more)


def filtered(model: Any, name: str) -> Callable[..., Any]:
    """Half a percent too coarse."""

    def refresh(cameras: Any) -> Any:
        told = model.refresh_filter(cameras)
        model._table.geometry[:, FILTER_3D] *= 1.005
        return told

    return refresh


def halved(model: Any, name: str) -> Callable[..., Any]:
    """Halves that are a little too opaque: rows whose moments are fresh."""

    def grow(rule: Any) -> Any:
        told = model.grow(rule)
        fresh = ~model._table.geometry_moments.any(axis=1)
        model._table.geometry[fresh, OPACITY_LOGITS] += 0.01
        return told

    return grow


def training(card: Backend, cpu: Backend, size: Size) -> Iterator[Check]:
    return selftest._training(card, cpu, size, MIP)


def growth(strategy: str) -> Callable[[Backend, Backend, Size], Iterator[Check]]:
    return lambda card, cpu, size: selftest._growth(card, cpu, size, strategy)


def faster(by: float) -> Callable[[TrainStep], TrainStep]:
    def alter(order: TrainStep) -> TrainStep:
        rates = dataclasses.replace(order.rates, scale=by * order.rates.scale)
        return dataclasses.replace(order, rates=rates)

    return alter


def changed(**changes: Any) -> Callable[[Any], Any]:
    return lambda asked: dataclasses.replace(asked, **changes)


PICTURES, ROWS = selftest._pictures, selftest._rows
CASES: list[tuple[str, Any, str, Change]] = [
    ("render, mip", PICTURES, "render", picture(color=lambda colour: one_row(colour, 1e-4))),
    ("render, plain", PICTURES, "render", picture(color=lambda colour: colour + np.float32(1e-4))),
    ("worst pixel", PICTURES, "render", picture(color=lambda colour: one_row(colour, np.nan))),
    ("transmittance", PICTURES, "render", picture(transmittance=lambda rest: one_row(rest, 1e-4))),
    ("loss over", training, "train_step", after(lambda ticket: Loss(ticket, 1e-4))),
    ("loss over", training, "train_step", after(lambda ticket: Loss(ticket, float("nan")))),
    ("geometry after", training, "train_step", before(faster(1.02))),
    ("geometry after", training, "train_step", before(changed(explore=None))),
    ("_moments after", training, "train_step", before(changed(learns=True))),
    ("harmonics after", training, "train_step", before(changed(settings=DEGREE_2))),
    ("counts of growth", growth("gof"), "grow", before(changed(threshold=1.3e-4))),
    ("counts of growth", growth("3dgs"), "grow", before(changed(dense_scale=0.12))),
    ("counts of growth", growth("cut"), "grow", before(changed(threshold=1.3e-4))),
    ("counts of growth", growth("mcmc"), "grow", before(changed(budget=305))),
    ("rows after growth", growth("3dgs"), "grow", before(changed(seed=4))),
    ("rows after growth", growth("cut"), "grow", halved),
    ("rows after growth", growth("mcmc"), "grow", before(changed(seed=4))),
    ("settling", ROWS, "settle", nothing),
    ("3D filter", ROWS, "refresh_filter", nothing),
    ("3D filter", ROWS, "refresh_filter", filtered),
    ("opacity reset", ROWS, "reset_opacities", nothing),
    ("left after pruning", ROWS, "prune", nothing),
    ("mean opacity", ROWS, "mean_opacity", after(lambda opacity: 1.01 * opacity)),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "section", "replaced", "change"), CASES)
def test_a_wrong_operation_is_named(operation: str, section: Any, replaced: str, change: Change) -> None:
    told = list(section(wrong(replaced, change), native_backend(1), QUICK))
    assert any(operation in check.operation for check in told if not check.passed), told


def test_a_card_that_is_right_misses_nothing() -> None:
    cpu = native_backend(1)
    for section in {id(section): section for _, section, _, _ in CASES}.values():
        assert all(check.error == 0 for check in section(native_backend(1), cpu, QUICK))


def test_bits_that_differ_in_one_run_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine in the host's memory works for one thread at a time: nobody keeps it company."""
    monkeypatch.setattr(selftest, "_company", lambda _: contextlib.nullcontext())
    cpu, made = native_backend(1), []

    def upload(table: Table) -> Any:
        made.append(table)
        if len(made) == 3:
            table.harmonics[7, 3] = np.nextafter(table.harmonics[7, 3], np.float32(9))
        return cpu.upload(table)

    found = selftest._equal_bits(dataclasses.replace(cpu, upload=upload), Size(60, 40, 24), 4)
    assert not found.passed and len(made) == 4 and "4 runs" in found.operation
    assert selftest._equal_bits(cpu, Size(60, 40, 24), 3).passed


# ---- a card that rounds otherwise -------------------------------------------------------------------------
def rounding_otherwise() -> Backend:
    """The CPU's own engine from a start two units in the last place away: at QUICK that is as far from it as
    the card's kernels are on the stand-in (moments 1.3e-4 in both)."""
    cpu = native_backend(1)

    def moved(table: Table) -> Any:
        random = np.random.default_rng(9)
        for part in (table.geometry[:, :FILTER_3D], table.harmonics):
            part *= (1 + random.integers(-2, 3, part.shape) * 2.0**-23).astype(np.float32)
        return cpu.upload(table)

    return dataclasses.replace(cpu, upload=moved)


@pytest.mark.parametrize(
    "size", [MIDDLE, pytest.param(selftest.LARGE, marks=pytest.mark.slow)], ids=["middle", "large"]
)
def test_rounding_alone_misses_no_bar(size: Size, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_equal_bits", lambda *_: Check("left out", 0, 0))
    told = list(selftest.checks(rounding_otherwise(), native_backend(1), size))
    assert all(check.passed for check in told), [check for check in told if not check.passed]
    assert any(check.error > 0 for check in told)


@pytest.mark.parametrize(
    ("operation", "section", "replaced", "change"),
    [
        ("picture after growth", growth("gof"), "grow", nothing),
        ("picture after growth", growth("mcmc"), "grow", before(changed(strategy="3dgs"))),
        ("picture after pruning", ROWS, "prune", before(lambda _: 0.02)),
        ("geometry after", training, "train_step", before(faster(1.2))),
        ("3D filter", ROWS, "refresh_filter", filtered),
    ],
)
def test_what_is_left_out_of_many_rows_hides_no_wrong_operation(
    operation: str, section: Any, replaced: str, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    if replaced == "grow":
        monkeypatch.setattr(selftest, "_told_by_both", lambda _: (0, 0, 0, 0))  # the counts alone would tell
    told = list(section(wrong(replaced, change), native_backend(1), MIDDLE))
    assert any(operation in check.operation for check in told if not check.passed), told
