"""Runs that are given a time: they end with it, write down their decisions, and are repeated to the bit."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from running import Around, Make, bits, of, run, with_models

from splatmeter.backend import Backend, Ticket, TrainStep
from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.events import Densified, Evaluated, Finished, Planned, Saved, Started, Warned
from splatmeter.gaussians import ply
from splatmeter.train import keeper, planner
from splatmeter.train import plan as plans
from splatmeter.train.config import TrainConfig
from splatmeter.train.earlier import planned_settings
from splatmeter.train.loop import train
from splatmeter.train.plan import Entry, Plan
from splatmeter.train.stopwatch import Stopwatch

SECONDS = 20.0
RECIPE = {
    "densification": "3dgs",
    "densify_grad_threshold": 1e-7,
    "max_gaussians": 300,
    "opacity_reset_interval": 10**6,
    "progressive": "2:10",
    "sh_interval": 4,
    "position_lr_max_steps": 40,
    "lr_final_share": 0.2,
    "test_iterations": (40,),
    "checkpoint_minutes": 0.0,
}


class World:
    """A clock that only training steps move, and what those steps were."""

    def __init__(self, backend: Backend, seconds: Callable[[float], float] = lambda _: 0.25) -> None:
        world = self
        self.now = 0.0
        self.steps: list[TrainStep] = []

        class Costly(Around):
            def train_step(self, order: TrainStep) -> Ticket:
                world.now += seconds(world.now)
                world.steps.append(order)
                return self.model.train_step(order)

        self.backend = with_models(backend, Costly)

    def run(self, config: Any, **options: Any) -> list[Any]:
        return list(self.events(config, **options))

    def events(self, config: Any, **options: Any) -> Generator[Any, None, None]:
        return train(config, self.backend, command=Stopwatch(now=lambda: self.now), **options)


def folder(config: TrainConfig) -> Path:
    assert config.model_path is not None
    return config.model_path


def model(events: list[Any]) -> str:
    return next(event.sha256 for event in of(Saved, events) if event.content == "model")


def test_a_run_ends_with_its_time_and_its_last_step_is_judged_and_saved(make: Make, backend: Backend) -> None:
    world = World(backend)
    events = world.run(make(seconds=SECONDS, **RECIPE))
    ended = of(Finished, events)[0]
    assert 0.95 * SECONDS < world.now < 1.05 * SECONDS and ended.step == len(world.steps) > 70
    assert {event.step for event in of(Evaluated, events)} == {ended.step}
    assert of(Saved, events)[0].step == ended.step and of(Densified, events)
    assert of(Planned, events)[-1].iterations == ended.step


def test_a_machine_that_becomes_half_as_fast_costs_steps_and_no_time(make: Make, backend: Backend) -> None:
    world = World(backend, lambda now: 0.25 if now < 8 else 0.5)
    world.run(make(seconds=SECONDS, **RECIPE))
    assert 0.95 * SECONDS < world.now < 1.05 * SECONDS and 48 < len(world.steps) < 64


def test_where_more_looks_at_a_few_photos_do_harm_a_run_ends_early_and_says_so(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "MOST_LOOKS", 5)
    world = World(backend)
    events = world.run(make(seconds=SECONDS, **RECIPE))
    photos = len(of(Started, events)[0].train_images)
    assert of(Finished, events)[0].step == len(world.steps) == 5 * photos < 70
    assert sum("by heart" in event.message for event in of(Warned, events)) == 1
    assert of(Saved, events)[0].step == 5 * photos


def test_a_run_that_ends_on_time_says_nothing_of_looks_that_early_plans_promised(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "MOST_LOOKS", 10)
    slower = World(backend, lambda now: 0.05 if now < 1 else 1.0)
    events = slower.run(make(seconds=SECONDS, **RECIPE))
    photos = len(of(Started, events)[0].train_images)
    assert any(event.iterations == 10 * photos for event in of(Planned, events)), "no plan had so many"
    assert of(Finished, events)[0].step < 10 * photos
    assert not [event for event in of(Warned, events) if "by heart" in event.message]


def test_a_plan_says_alone_how_far_gaussians_grow(make: Make, backend: Backend) -> None:
    """A limit for small photos would look like a scene that does not grow, and get it more of everything."""
    settings = RECIPE | {"seconds": SECONDS}
    free = World(backend).run(make("free", **settings))
    held = World(backend).run(make("held", max_per_pixel=1e-3, **settings))
    assert model(free) == model(held)


def test_a_disk_that_is_slow_has_its_time_from_the_start(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files take a hundred times the usual: known from a trial, not found out at the end."""
    world, write, pause = World(backend), ply.write_model, 0.006

    def slow(path: Path, source: Any, *rest: Any) -> None:
        world.now += pause * source.count
        write(path, source, *rest)

    monkeypatch.setattr(keeper, "TRIAL_STEP", 20)
    monkeypatch.setattr(ply, "write_model", slow)
    events = world.run(make(seconds=SECONDS, **RECIPE))
    saving = pause * of(Finished, events)[0].gaussians
    assert saving > 0.05 * SECONDS and 0.92 * SECONDS < world.now < 1.05 * SECONDS
    assert not list((tmp_path / "run").glob(".trial*"))


def test_evaluations_do_not_count(make: Make, backend: Backend) -> None:
    world = World(backend)

    class Slow(Around):
        def render(self, camera: Any, settings: Any) -> Any:
            world.now += 5.0
            return self.model.render(camera, settings)

    world.backend = with_models(world.backend, Slow)
    settings = RECIPE | {"test_iterations": (30, 40)}
    events = world.run(make(seconds=SECONDS, **settings))
    spent = 5.0 * sum(len(event.per_view) for event in of(Evaluated, events))
    assert spent > 20 and 0.95 * SECONDS < world.now - spent < 1.05 * SECONDS


def test_lengths_are_stretched_and_rates_fall_to_their_last(
    make: Make, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "FEWEST_STEPS", 10)  # so that these few are enough for photos of full size
    world = World(backend)
    events = world.run(make(seconds=SECONDS, **RECIPE))
    opacity = [order.rates.opacity for order in world.steps]
    assert all(one >= two for one, two in itertools.pairwise(opacity))
    assert opacity[-1] == pytest.approx(0.2 * 0.05) and world.steps[-1].settings.sh_degree == 3
    widths = [order.camera.width for order in world.steps]
    assert 0.1 * len(widths) < widths.count(16) < 0.4 * len(widths) and widths == sorted(widths)
    grown = [event.step for event in of(Densified, events)]
    assert 0.7 * len(widths) < grown[-1] <= 0.95 * len(widths)


def test_a_plan_repeats_a_run_to_the_bit_whatever_the_clock_says(make: Make, backend: Backend) -> None:
    first = World(backend, lambda now: 0.25 if now < 8 else 0.6)
    config = make("first", seconds=SECONDS, **RECIPE)
    once = first.run(config)
    again = World(backend, lambda _: 77.0)
    twice = again.run(make("second", plan=folder(config) / plans.NAME, **RECIPE))
    assert model(once) == model(twice) and len(first.steps) == len(again.steps)
    assert [e.iterations for e in of(Planned, once)] == [e.iterations for e in of(Planned, twice)]


def test_a_plan_with_other_settings_leaves_a_record_that_repeats_those(make: Make, backend: Backend) -> None:
    first = make("first", seconds=SECONDS, **RECIPE)
    World(backend).run(first)
    other = make("other", plan=folder(first) / plans.NAME, **(RECIPE | {"momentum": 0.5, "unseen": "wait"}))
    once = World(backend).run(other)
    settings = plans.read(folder(other) / plans.NAME).settings
    assert (settings["momentum"], settings["unseen"]) == (0.5, "wait")
    again = planned_settings(folder(other) / plans.NAME)
    assert model(once) == model(World(backend).run(make("again", **again, plan=folder(other) / plans.NAME)))


def test_a_resumed_run_with_other_settings_says_that_its_plan_does_not_repeat_it(
    make: Make, backend: Backend
) -> None:
    steps = iter(range(1, 100))
    World(backend).run(make(seconds=SECONDS, **RECIPE), interrupted=lambda: next(steps) == 13)
    events = World(backend).run(make(seconds=SECONDS, resume=True, **(RECIPE | {"momentum": 0.5})))
    assert any("plan of this run will not repeat it" in event.message for event in of(Warned, events))


def test_a_resumed_run_follows_the_record_and_then_the_time_that_was_left(
    make: Make, backend: Backend
) -> None:
    """Killed well after its checkpoint: what the record says of the lost steps is done again, bit by bit."""
    settings = RECIPE | {"checkpoint_iterations": (20, 35)}
    config = make(seconds=SECONDS, **settings)
    killed, resumed = World(backend), World(backend)
    for event in (events := killed.events(config)):
        if isinstance(event, Planned) and event.step > 40:
            events.close()
            break
    before = plans.read(folder(config) / plans.NAME)
    later = folder(config) / "chkpnt35.safetensors"
    lost = bits(later, "timing")
    later.unlink()
    resumed.run(dataclasses.replace(config, resume=True))
    assert bits(later, "timing") == lost
    assert plans.read(folder(config) / plans.NAME).entries[: len(before.entries)] == before.entries
    assert resumed.now == pytest.approx(SECONDS - 5.0, rel=0.05)


def test_an_interrupted_run_goes_on_with_the_time_that_is_left(make: Make, backend: Backend) -> None:
    first = World(backend)
    config = make(seconds=SECONDS, **RECIPE)
    first.run(config, interrupted=lambda: first.now > 12)
    rest = World(backend)
    rest.run(dataclasses.replace(config, resume=True))
    assert first.now + rest.now == pytest.approx(SECONDS, rel=0.05)


def test_without_the_folders_record_the_checkpoint_has_it(make: Make, backend: Backend) -> None:
    config = make(seconds=SECONDS, **RECIPE)
    first = World(backend)
    first.run(config, interrupted=lambda: first.now > 5)
    kept = json.loads((folder(config) / plans.NAME).read_text())
    (folder(config) / plans.NAME).unlink()
    World(backend).run(dataclasses.replace(config, resume=True))
    found = json.loads((folder(config) / plans.NAME).read_text())
    assert found["entries"][: len(kept["entries"])] == kept["entries"]


def test_a_run_may_be_given_more_time_when_it_goes_on(make: Make, backend: Backend) -> None:
    config = make(seconds=SECONDS, **RECIPE)
    first, rest = World(backend), World(backend)
    first.run(config, interrupted=lambda: first.now > 10)
    rest.run(dataclasses.replace(config, resume=True, seconds=2 * SECONDS))
    assert first.now + rest.now == pytest.approx(2 * SECONDS, rel=0.05)


def test_what_has_ended_as_planned_does_not_go_on(make: Make, backend: Backend) -> None:
    config = make(seconds=SECONDS, **(RECIPE | {"checkpoint_minutes": 5.0}))
    World(backend).run(config)
    with pytest.raises(UsageError, match="has ended as planned"):
        World(backend).run(dataclasses.replace(config, resume=True))


def test_a_run_with_a_number_of_steps_does_not_go_on_with_a_time(make: Make, backend: Backend) -> None:
    run(make(iterations=10, checkpoint_iterations=(10,)), backend)
    with pytest.raises(UsageError, match="begun with a number of steps"):
        run(make(resume=True, seconds=SECONDS), backend)


def test_too_little_time_is_refused_before_the_folder_is_touched(make: Make, backend: Backend) -> None:
    config = make(seconds=2.0, **RECIPE)
    clock = Stopwatch(3.0)
    with pytest.raises(
        UsageError, match=r"take 3\.\d s, which leaves no time to train of 2\.0 s\. Give it 20"
    ):
        run(config, backend, command=clock)
    assert not folder(config).exists()


def test_a_limit_of_gaussians_is_kept(make: Make, backend: Backend) -> None:
    events = World(backend).run(make(seconds=SECONDS, **(RECIPE | {"max_gaussians": 70})))
    assert max(event.gaussians for event in of(Densified, events)) <= 70


@pytest.mark.parametrize(
    "changes", [{"seconds": 0.0}, {"seconds": -3.0}, {"seconds": 5.0, "plan": Path("x")}]
)
def test_times_without_sense_are_refused(make: Make, changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"--seconds|--plan"):
        make(**changes)


# ---- plans as data ----------------------------------------------------------------------------------------
ENTRIES = (Entry(0, 0.0, 100, 10, 50), Entry(20, 0.2, 60, 10, 50), Entry(40, 0.6, 120, 10, 50))


def test_the_share_that_is_done_has_no_jumps_and_tells_its_step() -> None:
    plan = Plan(9.0, {}, ENTRIES)
    assert [plan.done(step) for step in (0, 10, 20, 30, 40, 80, 120)] == pytest.approx(
        [0, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    )
    assert [plan.step_at(share) for share in (0.1, 0.2, 0.4, 0.8, 1.0)] == [10, 20, 30, 80, 120]
    assert [plan.upto(30).step_at(share) for share in (0.1, 0.4, 0.8)] == [10, 30, 50]


@pytest.mark.parametrize(
    "change",
    [
        {"plan": 99},
        {"entries": []},
        {"entries": [{"step": 5}]},
        {"entries": [dataclasses.asdict(ENTRIES[1])]},
        {"entries": [dataclasses.asdict(ENTRIES[k]) for k in (0, 2, 1)]},
        {"entries": [dataclasses.asdict(ENTRIES[0]) | {"interval": 0}]},
        {"entries": [dataclasses.asdict(ENTRIES[0]) | {"regularize": 1e300}]},
        {"entries": [dataclasses.asdict(ENTRIES[0]) | {"regularize": 10**400}]},
        {"entries": [dataclasses.asdict(ENTRIES[0]) | {"used": "x"}]},
        {"entries": [dataclasses.asdict(ENTRIES[0]) | {"target": None}]},
        {"seconds": None},
    ],
)
def test_what_is_no_plan_is_told(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plans.to_record(Plan(9.0, {}, ENTRIES)) | change))
    with pytest.raises(InputError, match=r"plan\.json"):
        plans.read(path)
    with pytest.raises(MissingFile):
        plans.read(tmp_path / "none.json")
