"""Models behind the seam, on the stand-in: the same story as on the CPU, told by the same trainer."""

from __future__ import annotations

import dataclasses
import math
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "backends"))
sys.path.append(str(Path(__file__).parents[1] / "train"))
sys.path.append(str(Path(__file__).parents[1] / "story"))

from running import bits, of, run, with_models
from standin import Standin
from test_models import NEW, WAITING, fresh, order, rule
from test_on_an_imitation import broken_at
from tiny_scene import write_tiny_scene

from splatmeter.backend import Backend, Explore, Model, OptimizerState, TrainStep
from splatmeter.backends.cuda import cuda_backend
from splatmeter.backends.native import native_backend
from splatmeter.errors import Diverged, NotEnoughMemory, UsageError
from splatmeter.events import Densified, Evaluated, Failed, Finished, Warned
from splatmeter.ops import WIDTHS, RasterSettings, Rates, empty_table
from splatmeter.train import container
from splatmeter.train.config import TrainConfig
from splatmeter.train.loop import train


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture
def card(standin: Standin) -> Backend:
    return cuda_backend(0, threads=1)


@pytest.fixture(scope="module")
def cpu() -> Backend:
    return native_backend(1)


def there(backend: Backend, step: TrainStep) -> TrainStep:
    return dataclasses.replace(step, photo=backend.photo(step.photo))


def story(
    backend: Backend, strategy: str, begun: OptimizerState = NEW
) -> tuple[Model, list[Any], list[float]]:
    model, changes, tickets = backend.upload(fresh(), begun), [], []
    for number in range(1, 31):
        tickets.append(model.train_step(there(backend, order(number, learns=number % 13 != 0))))
        if number in (14, 22):
            changes.append(model.grow(rule(strategy)))
        if number == 18:
            model.refresh_filter([order(number).camera])
            model.reset_opacities()
        if number == 26:
            changes.append(model.prune(0.008))
    return model, changes, [ticket.read().l1 for ticket in tickets]


@pytest.mark.parametrize(
    ("strategy", "begun"),
    [("gof", NEW), ("3dgs", NEW), ("cut", NEW), ("mcmc", NEW), ("cut", WAITING), ("mcmc", WAITING)],
    ids=["gof", "3dgs", "cut", "mcmc", "cut waiting", "mcmc waiting"],
)
def test_a_story_ends_as_on_the_cpu(
    card: Backend, cpu: Backend, strategy: str, begun: OptimizerState
) -> None:
    both = (story(engine, strategy, begun) for engine in (card, cpu))
    (one, changes, losses), (other, expected, wanted) = both
    assert changes == expected and one.count == other.count
    assert losses == pytest.approx(wanted, abs=2e-5)
    for name in ("geometry", "harmonics"):
        found, right = (getattr(model.download(slice(None)), name) for model in (one, other))
        np.testing.assert_allclose(found[:, :12], right[:, :12], atol=2e-4)
    assert one.mean_opacity() == pytest.approx(other.mean_opacity(), abs=1e-6)
    assert one.intact()


def test_reading_changes_no_later_bit(card: Backend) -> None:
    ends = []
    for look in (False, True):
        model = card.upload(fresh())
        for number in range(1, 13):
            model.train_step(there(card, order(number)))
            if look:
                model.download(slice(3, 40, 5))
                model.mean_opacity()
                model.optimizer()
                assert model.render(order(1).camera, RasterSettings()).color.any()
        ends.append([model.stored(name, slice(None)).tobytes() for name in WIDTHS])
    assert ends[0] == ends[1]


def test_stored_rows_are_those_asked_for(card: Backend) -> None:
    table = fresh()
    kept = {name: getattr(table, name).copy() for name in WIDTHS}
    model = card.upload(table)
    for rows in (slice(None), slice(3, 50, 7), slice(5, 5), np.array([70, 2, 2, 31])):
        for name in WIDTHS:
            np.testing.assert_array_equal(model.stored(name, rows), kept[name][rows])


def test_steps_are_handed_over_and_their_numbers_come_later(card: Backend) -> None:
    model = card.upload(fresh())
    tickets = [model.train_step(there(card, order(number))) for number in range(1, 8)]
    assert all(ticket.ready for ticket in tickets[:-1]) and not tickets[-1].ready
    assert math.isfinite(tickets[-1].read().l1) and tickets[-1].ready


def test_a_loss_that_is_no_number_puts_the_optimizer_back_too(card: Backend, cpu: Backend) -> None:
    """The account of lazy Adam moved on before the card said so: it must be that of the step before."""
    hole = RasterSettings(background=(math.nan, 0.0, 0.0))
    states = []
    for engine in (card, cpu):
        model = engine.upload(fresh())
        for number in range(1, 4):
            model.train_step(there(engine, order(number)))
        tickets = [model.train_step(there(engine, order(4, settings=hole)))]
        tickets += [model.train_step(there(engine, order(number))) for number in range(5, 8)]
        assert all(math.isnan(ticket.read().l1) for ticket in tickets)
        states.append((model.optimizer(), model.download(slice(None))))
    (one, found), (other, right) = states
    assert one.steps == other.steps == 3 and one.rates == other.rates
    for name in one.owed:
        np.testing.assert_array_equal(one.owed[name], other.owed[name])
    np.testing.assert_allclose(found.geometry[:, :12], right.geometry[:, :12], atol=1e-4)


def test_exploring_moves_rows_as_on_the_cpu(card: Backend, cpu: Backend) -> None:
    explore = Explore(seed=5, steps=10, noise=1e3, opacity=0.01, scale=0.01)
    ends = []
    for engine in (card, cpu):
        model = engine.upload(fresh())
        for number in range(1, 11):
            asked = explore if number == 10 else None
            model.train_step(there(engine, order(number, explore=asked)))
        ends.append(model.download(slice(None)).geometry[:, :12])
    np.testing.assert_allclose(*ends, atol=1e-4)


def test_what_the_card_cannot_do_yet_is_refused_by_name(card: Backend) -> None:
    with pytest.raises(UsageError, match=r"newest is not there yet on a card; use --device cpu"):
        card.upload(fresh()).grow(rule("newest"))
    with pytest.raises(UsageError, match="cannot be trained"):
        card.upload(empty_table(3, trainable=False)).train_step(there(card, order(1)))


# ---- the trainer ------------------------------------------------------------------------------------------
def config(scene: Path, folder: Path, **changes: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "source_path": scene,
        "model_path": folder,
        "eval": True,
        "iterations": 24,
        "test_iterations": (24,),
        "save_iterations": (),
        "checkpoint_iterations": (24,),
        "densify_from_iter": 5,
        "densify_until_iter": 20,
        "densification_interval": 8,
        "opacity_reset_interval": 13,
        "max_gaussians": 180,
    }
    return TrainConfig(**(settings | changes))


def test_a_training_densifies_alike_and_ends_within_a_twentieth_of_a_decibel(
    scene: Path, tmp_path: Path, card: Backend, cpu: Backend
) -> None:
    told = {}
    for name, engine in (("card", card), ("cpu", cpu)):
        events = run(config(scene, tmp_path / name), engine)
        told[name] = of(Densified, events)[0], of(Evaluated, events)[0].metrics["psnr"]
    (first, psnr), (expected, wanted) = told["card"], told["cpu"]
    assert (first.cloned, first.split, first.pruned) == (expected.cloned, expected.split, expected.pruned)
    assert psnr == pytest.approx(wanted, abs=0.05)


def test_stopping_and_resuming_on_the_card_changes_no_bit(scene: Path, tmp_path: Path, card: Backend) -> None:
    straight = config(scene, tmp_path / "straight")
    run(straight, card)
    cut = config(scene, tmp_path / "cut")
    answers = iter([False] * 10 + [True])
    run(cut, card, interrupted=lambda: next(answers))
    run(dataclasses.replace(cut, resume=True), card)
    one, other = (tmp_path / name / "chkpnt24.safetensors" for name in ("straight", "cut"))
    assert bits(one) == bits(other)


@pytest.mark.parametrize("first", ["card", "cpu"])
def test_a_checkpoint_of_either_device_goes_on_with_the_other(
    scene: Path, tmp_path: Path, card: Backend, cpu: Backend, first: str
) -> None:
    engines = {"card": card, "cpu": cpu}
    second = "cpu" if first == "card" else "card"
    still = {"densification": "none", "test_iterations": ()}
    run(config(scene, tmp_path / "a", iterations=8, checkpoint_iterations=(8,), **still), engines[first])
    ends = []
    for engine in (first, second):
        start = tmp_path / "a" / "chkpnt8.safetensors"
        events = run(
            config(
                scene,
                tmp_path / engine,
                start_checkpoint=start,
                iterations=16,
                checkpoint_iterations=(16,),
                **still,
            ),
            engines[engine],
        )
        said = any("not to the last bit" in event.message for event in of(Warned, events))
        assert said == (engine == second)
        ends.append(container.read(tmp_path / engine / "chkpnt16.safetensors")[0])
    for name in ("geometry", "harmonics"):
        np.testing.assert_allclose(ends[0][name][:, :11], ends[1][name][:, :11], atol=2e-4)


def test_a_bad_step_is_told_with_its_own_view_and_the_state_before_it(
    scene: Path, tmp_path: Path, card: Backend, cpu: Backend
) -> None:
    told = []
    for name, engine in (("card", card), ("cpu", cpu)):
        settings = config(scene, tmp_path / name, progress_interval=1000, test_iterations=())
        with pytest.raises(Diverged):
            for event in train(settings, broken_at(engine, 11)):
                last = event
        assert isinstance(last, Failed) and last.step == 10
        state = container.read(Path(last.checkpoint))[1]
        told.append((last.message.replace("/card/", "/cpu/"), state["step"], state["optimizer_steps"]))
    assert told[0] == told[1]


def test_evaluating_takes_no_more_of_the_card_than_training(
    scene: Path, tmp_path: Path, card: Backend
) -> None:
    often = config(scene, tmp_path / "o", test_iterations=tuple(range(2, 25, 2)), sh_interval=5)
    peaks = of(Finished, run(often, card))[0].peak_memory_bytes
    assert 0 < peaks["evaluation"] <= peaks["training"]
    assert peaks["training"] <= 0.9 * (16 << 30)


def test_nothing_is_allocated_once_a_view_was_seen(scene: Path, tmp_path: Path, standin: Standin) -> None:
    card = cuda_backend(0, threads=1)
    models: list[Any] = []

    def kept(model: Any) -> Any:
        models.append(model)
        return model

    steady = config(scene, tmp_path / "o", densification="none", iterations=40, test_iterations=())
    allocations: list[int] = []
    for _ in train(dataclasses.replace(steady, progress_interval=20), with_models(card, kept)):
        allocations.append(models[0]._card.allocations)
    assert allocations[-1] == allocations[-3]


# ---- what goes wrong --------------------------------------------------------------------------------------
@pytest.mark.parametrize("strategy", ["3dgs", "mcmc"])
def test_growth_without_memory_is_noticed_wherever_it_ends(schedule: Standin, strategy: str) -> None:
    """Either nothing has changed, or the model says that it is not intact any more."""
    seen = set()
    for allocations in range(8, 40, 2):
        model = cuda_backend(0, threads=1).upload(fresh())
        model.settle()
        before = {name: model.stored(name, slice(None)) for name in WIDTHS}
        schedule.option("allocations", allocations)
        try:
            model.grow(rule(strategy, threshold=1e-9))
            seen.add("grown")
        except NotEnoughMemory:
            schedule.option("allocations", -1)
            if model.intact():
                seen.add("as before")
                for name in WIDTHS:
                    np.testing.assert_array_equal(model.stored(name, slice(None)), before[name])
            else:
                seen.add("torn")
                with pytest.raises(ValueError, match="they are lost"):
                    model.stored("geometry", slice(None))
        schedule.option("allocations", -1)
    assert {"grown", "torn"} <= seen


def test_a_photo_in_use_is_never_overwritten(standin: Standin) -> None:
    """Room for two photos, and a thread that brings others all the time."""
    card = cuda_backend(0, threads=1)
    model: Any = card.upload(fresh())
    dark = order(1)
    dark = dataclasses.replace(dark, photo=card.photo(np.zeros_like(dark.photo)))
    model._card.set_photo_budget(2 * dark.photo.pixels.nbytes)
    stop = threading.Event()

    def bring() -> None:
        while not stop.is_set():
            card.photo(np.full_like(dark.photo.pixels, 255))

    still = dataclasses.replace(dark, rates=Rates(*[0.0] * 6))
    expected = model.train_step(still).read().l1
    other = threading.Thread(target=bring)
    other.start()
    try:
        losses = [model.train_step(still).read().l1 for _ in range(40)]
    finally:
        stop.set()
        other.join()
    assert losses == pytest.approx([expected] * 40, rel=1e-6)
