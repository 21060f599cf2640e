"""Each operation of a card against the CPU engine: what decides whether the card may be used at all.

The scenes are made here and small enough for an emulated card; a real one also gets a large one. The bars are
those of the tests, which hold with special functions wrong by two units in the last place. That each can be
missed is tested in tests/cuda/test_selftest_bars.py.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from splatmeter.backend import Backend, Change, Explore, GrowthRule, Model, TrainStep
from splatmeter.ops import (
    ABSOLUTE_SUM,
    F32,
    F64,
    FILTER_3D,
    GRADIENT_SUM,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    SECOND_GEOMETRY,
    VISITS,
    WIDTHS,
    Pinhole,
    RasterSettings,
    Rates,
    Table,
    empty_table,
)

RATES = Rates(mean=1e-3, harmonics_dc=2.5e-3, harmonics_rest=1.25e-4, opacity=0.05, scale=5e-3, rotation=1e-3)
STEPS = 12
EXPLORE = Explore(seed=5, steps=10, noise=1e3, opacity=0.01, scale=0.01)
_SETTINGS = RasterSettings()

COLOUR_BAR = 2e-5
LARGE_COLOUR_BAR = 2e-4
"""Pixels far from the corner have coordinates with fewer digits behind the point."""
WORST_BAR = 0.02
RARE = 2000
"""One pixel in so many may be farther off than COLOUR_BAR, up to WORST_BAR: a contribution that sits exactly
at 1/255 falls either way, and so does a pixel's last one."""
LOSS_BAR = 2e-5
TABLE_BAR = 2e-3
"""Share of the norm of each part below; a contribution of exactly 1/255 may fall either way."""
MANY = 1000
MANY_BAR = 20.0
RARE_ROWS = 500
GROWN_BAR = 1e-2
"""From MANY Gaussians on some sit exactly at a threshold, as they do where the CPU starts one unit in the
last place away. Counts may then differ by MANY_BAR and one row in RARE_ROWS is left out; where rows come and
go they have other numbers afterwards, and pictures are compared instead, by their root mean square."""
RUNS = 2
MANY_RUNS = 20
"""How often the same training is run, whose bits must be equal: in the quick self-test and the full one."""

PARTS: dict[str, Sequence[slice]] = {
    "geometry": (
        MEANS,
        LOG_SCALES,
        ROTATIONS,
        slice(OPACITY_LOGITS, OPACITY_LOGITS + 1),
        slice(FILTER_3D, FILTER_3D + 1),
        slice(GRADIENT_SUM, GRADIENT_SUM + 1),
        slice(ABSOLUTE_SUM, ABSOLUTE_SUM + 1),
        slice(VISITS, VISITS + 1),
    ),
    "geometry_moments": (slice(0, SECOND_GEOMETRY), slice(SECOND_GEOMETRY, None)),
    "harmonics": (slice(0, 3), slice(3, None)),
    "harmonics_first": (slice(0, 3), slice(3, None)),
    "harmonics_second": (slice(0, 3), slice(3, None)),
}
"""What is compared by itself, so that nothing small hides behind something large. Not when a row was last
touched: at a tile's border it may be either."""


@dataclass(frozen=True, slots=True)
class Size:
    gaussians: int
    width: int
    height: int


QUICK = Size(300, 75, 41)
LARGE = Size(200_000, 1297, 840)


@dataclass(frozen=True, slots=True)
class Check:
    operation: str
    error: float
    bar: float

    @property
    def passed(self) -> bool:
        return self.error <= self.bar  # what is no number has not passed


def checks(card: Backend, cpu: Backend, size: Size = QUICK, runs: int = RUNS) -> Iterator[Check]:
    """One after the other, so that whoever waits sees them come."""
    yield from _pictures(card, cpu, size)
    for settings in (RasterSettings(absolute_gradients=True), RasterSettings(1, 0.3, False, (1.0, 1.0, 1.0))):
        yield from _training(card, cpu, size, settings)
    for strategy in ("gof", "3dgs", "cut", "mcmc"):
        yield from _growth(card, cpu, size, strategy)
    yield from _rows(card, cpu, size)
    yield _equal_bits(card, size, runs)


# ---- scenes -----------------------------------------------------------------------------------------------
def table_of(size: Size, seed: int = 1) -> Table:
    """A cloud in front of the cameras: large and small, faint and opaque, round and thin."""
    random, count = np.random.default_rng(seed), size.gaussians
    table = empty_table(count)
    table.geometry[:, MEANS] = random.normal(0, 1, (count, 3))
    typical = 0.5 * (300 / count) ** (1 / 3)
    table.geometry[:, LOG_SCALES] = np.log(typical) + random.normal(-1, 0.7, (count, 3))
    table.geometry[:, ROTATIONS] = random.normal(size=(count, 4))
    table.geometry[:, OPACITY_LOGITS] = random.normal(0, 2, count)
    table.harmonics[:] = random.normal(0, 0.2, table.harmonics.shape)
    table.harmonics[:, :3] += random.normal(0, 0.8, (count, 3))
    return table


def cameras(size: Size) -> list[Pinhole]:
    """Three around the cloud, each missing some of it, so that rows fall behind and catch up."""
    found = []
    for number, shift in enumerate((0.7, -0.7, 0.0)):
        angle = 2.0 * number
        turn = np.array(
            [[math.cos(angle), 0, math.sin(angle)], [0, 1, 0], [-math.sin(angle), 0, math.cos(angle)]]
        )
        place = np.array([shift, 0.1 * number, 3.0])
        focal = 1.1 * size.width
        found.append(
            Pinhole(turn, place, focal, focal, size.width / 2, size.height / 2, size.width, size.height)
        )
    return found


def photos(size: Size) -> list[np.ndarray]:
    y, x = np.mgrid[0 : size.height, 0 : size.width] / size.height
    waves = [np.stack([np.sin(5 * x + k + c) * np.cos(4 * y - c) for c in range(3)]) for k in range(3)]
    return [np.ascontiguousarray(127 + 100 * wave).astype(np.uint8) for wave in waves]


def orders(backend: Backend, size: Size, settings: RasterSettings = _SETTINGS) -> list[TrainStep]:
    pictures = [backend.photo(photo) for photo in photos(size)]
    return [
        TrainStep(camera, picture, settings, 0.2, RATES)
        for camera, picture in zip(cameras(size), pictures, strict=True)
    ]


def trained(backend: Backend, size: Size, settings: RasterSettings, steps: int = STEPS) -> tuple[Model, list]:
    """The seventh step only looks; the tenth explores."""
    model, tickets = backend.upload(table_of(size)), []
    steps_to_do = orders(backend, size, settings)
    for number in range(steps):
        step = steps_to_do[number % len(steps_to_do)]
        explore = EXPLORE if number == 9 else None
        tickets.append(model.train_step(dataclasses.replace(step, learns=number != 6, explore=explore)))
    return model, [ticket.read() for ticket in tickets]


# ---- checks -----------------------------------------------------------------------------------------------
def _pictures(card: Backend, cpu: Backend, size: Size) -> Iterator[Check]:
    models = [engine.upload(table_of(size)) for engine in (card, cpu)]
    bar = LARGE_COLOUR_BAR if size.gaussians >= MANY else COLOUR_BAR
    for name, settings in (
        ("mip", RasterSettings()),
        ("plain", RasterSettings(2, 0.3, False, (1.0, 0.5, 0.0))),
    ):
        one, other = (model.render(cameras(size)[2], settings) for model in models)
        colour = np.abs(one.color - other.color).max(axis=0)  # [H, W]
        yield Check(f"render, {name}", _all_but_few(colour), bar)
        yield Check(f"render, {name}, the worst pixel", _largest(colour), WORST_BAR)
        rest = np.abs(one.transmittance - other.transmittance)
        yield Check(f"transmittance, {name}", _all_but_few(rest), bar)


def _training(card: Backend, cpu: Backend, size: Size, settings: RasterSettings) -> Iterator[Check]:
    (one, losses), (other, expected) = (trained(engine, size, settings) for engine in (card, cpu))
    name = f"{STEPS} steps, {'mip' if settings.compensate else 'plain'}"
    apart = [(a.l1 - b.l1, a.ssim - b.ssim) for a, b in zip(losses, expected, strict=True)]
    yield Check(f"loss over {name}", _largest(np.array(apart)), LOSS_BAR)
    for array in WIDTHS:
        yield Check(f"{array} after {name}", _apart(one, other, array), TABLE_BAR)


def _told_by_both(change: Change) -> tuple[int, ...]:
    """A card does not tell what nobody asks it for: its memory is reserved, and has no forecast."""
    return tuple(getattr(change, field.name) for field in dataclasses.fields(change) if field.compare)


def _growth(card: Backend, cpu: Backend, size: Size, strategy: str) -> Iterator[Check]:
    rule = GrowthRule(
        strategy,
        seed=3,
        step=600,
        threshold=1e-4,
        dense_scale=0.1,
        lowest_opacity=0.05,
        largest_scale=2.0,
        budget=int(1.5 * size.gaussians),
    )
    settings = RasterSettings(absolute_gradients=True)
    models = [trained(engine, size, settings)[0] for engine in (card, cpu)]
    changes = [_told_by_both(model.grow(rule)) for model in models]
    apart = max(abs(a - b) for a, b in zip(*changes, strict=True))
    yield Check(f"counts of growth, {strategy}", float(apart), MANY_BAR if size.gaussians >= MANY else 0.0)
    yield from _changed(f"after growth, {strategy}", models, size)


def _rows(card: Backend, cpu: Backend, size: Size) -> Iterator[Check]:
    models = [trained(engine, size, RasterSettings(), steps=5)[0] for engine in (card, cpu)]
    operations: dict[str, Callable[[Model], object]] = {
        "settling": lambda model: model.settle(),
        "3D filter": lambda model: model.refresh_filter(cameras(size)),
        "opacity reset": lambda model: model.reset_opacities(),
    }
    for name, operation in operations.items():
        for model in models:
            operation(model)
        yield Check(name, _all_apart(*models), TABLE_BAR)
    yield Check("mean opacity", abs(models[0].mean_opacity() - models[1].mean_opacity()), COLOUR_BAR)
    for model in models:
        model.prune(0.009)
    apart = abs(models[0].count - models[1].count)
    yield Check("how many are left after pruning", float(apart), MANY_BAR if size.gaussians >= MANY else 0.0)
    yield from _changed("after pruning", models, size)


def _changed(what: str, models: Sequence[Model], size: Size) -> Iterator[Check]:
    if size.gaussians >= MANY:
        pictures = [model.render(cameras(size)[2], RasterSettings()).color for model in models]
        yield Check(f"picture {what}", _root_mean_square(*pictures), GROWN_BAR)
    elif models[0].count == models[1].count:  # else the count was wrong, and that was said
        yield Check(f"rows {what}", _all_apart(*models), TABLE_BAR)


def _equal_bits(card: Backend, size: Size, runs: int) -> Check:
    """Every second run beside another model that trains on the same card at the same time: blocks then run in
    another order, which is what shows a race on hardware that keeps to one order when it is left alone."""
    settings = RasterSettings(absolute_gradients=True)
    first, differ = trained(card, size, settings)[0], 0
    for number in range(1, runs):
        with _company(card) if number % 2 else nullcontext():
            other = trained(card, size, settings)[0]
        for name in WIDTHS:
            one, again = (model.stored(name, slice(None)).view(np.uint32) for model in (first, other))
            differ += int((one != again).sum())
    return Check(f"numbers that differ in their bits, {runs} runs", float(differ), 0.0)


@contextmanager
def _company(card: Backend) -> Iterator[None]:
    """Somebody else's steps on the card meanwhile."""
    model, steps, done = card.upload(table_of(QUICK, seed=2)), orders(card, QUICK), threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while not done.is_set():
                for step in steps:
                    model.train_step(step).read()
        except BaseException as problem:  # told by the thread that waits
            failed.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if failed:
        raise failed[0]


# ---- distances: what is no number stays none, and passes no bar -------------------------------------------
def _largest(difference: F32) -> float:
    return float(np.abs(difference).max())


def _all_but_few(difference: F32) -> float:
    """The largest but for one in RARE, of which there is at least one."""
    if not np.isfinite(difference).all():
        return math.nan
    few = 1 + difference.size // RARE
    return float(np.sort(difference, axis=None)[-1 - min(few, difference.size - 1)])


def _root_mean_square(one: F32, other: F32) -> float:
    return float(np.sqrt(np.mean(np.square(one.astype(np.float64) - other))))


def _apart(one: Model, other: Model, array: str) -> float:
    """The worst of an array's parts, each by its norm."""
    rows, expected = (model.stored(array, slice(None)).astype(np.float64) for model in (one, other))
    return float(np.max([_part_apart(rows[:, part], expected[:, part]) for part in PARTS[array]]))


def _part_apart(rows: F64, expected: F64) -> float:
    squares = np.square(rows - expected).sum(axis=1)
    if not np.isfinite(squares).all():
        return math.nan
    few = len(squares) // RARE_ROWS if len(squares) >= MANY else 0
    kept = np.sort(squares)[: len(squares) - few]
    return math.sqrt(float(kept.sum())) / max(float(np.linalg.norm(expected)), 1e-30)


def _all_apart(one: Model, other: Model) -> float:
    return float(np.max([_apart(one, other, array) for array in WIDTHS]))
