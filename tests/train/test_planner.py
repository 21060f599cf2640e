"""Runs on invented machines: no clock, no pictures, only costs. They end on time whatever it does."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from splatmeter.errors import OutputError
from splatmeter.events import Densified
from splatmeter.train.config import TrainConfig
from splatmeter.train.keeper import Keeper, saving_seconds
from splatmeter.train.plan import Plan, from_record, stretched, to_record
from splatmeter.train.planner import (
    Machine,
    Recipe,
    Situation,
    first_entry,
    lowest_threshold,
    most_steps,
    natural_growth,
    next_entry,
    regularization,
)
from splatmeter.train.stopwatch import Stopwatch

RECIPE = Recipe(3200, 0.09, 0.62, ((4, 0.125), (2, 0.4)), 250_000.0, (1, 2, 4))
LENGTHS = {
    "iterations": 3200,
    "densify_from_iter": 288,
    "densify_until_iter": 1984,
    "progressive": "4:400,2:1280",
}

Cost = Callable[[float, float, float], float]
"""(seconds gone, pixels, Gaussians) -> seconds of a step."""


def steady(_: float, pixels: float, gaussians: float) -> float:
    """Not the shape that the planner expects."""
    return 0.004 + 2.5e-7 * pixels + 2e-8 * gaussians


def crowded(gone: float, pixels: float, gaussians: float) -> float:
    return steady(gone, pixels, gaussians) + 1e-7 * gaussians


@dataclass
class Invented:
    """A scene that would grow evenly to `natural` Gaussians, on a machine with these costs."""

    cost: Cost
    seconds: float
    natural: int = 600_000
    start: int = 100_000
    most: int = 10_000_000
    now: float = 0.0
    ends: list[int] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    recipe: Recipe = RECIPE

    def run(self) -> Keeper:
        clock = Stopwatch(now=lambda: self.now)
        clock.start()
        first = first_entry(self.recipe, self.start, self.most)
        keeper = Keeper(
            config=TrainConfig(seconds=self.seconds, **LENGTHS),
            recipe=self.recipe,
            plan=Plan(self.seconds, LENGTHS, (first,)),
            ahead=(),
            clock=clock,
            guess=400_000,
            most=self.most,
            machine=Machine(0.15 * self.seconds),
        )
        self.now = 1.0  # for the scene
        keeper.begin()
        step, gaussians = 0, self.start
        while step < keeper.plan.end:
            step += 1
            entry = keeper.plan.entries[-1]
            pixels = RECIPE.pixels / RECIPE.divisor(keeper.plan.done(step), entry.finest) ** 2
            self.now += self.cost(self.now, pixels, gaussians)
            keeper.stepped(step, pixels, gaussians)
            gaussians = self._grown(keeper, step, gaussians)
            self.widths.append(pixels)
        self.now += saving_seconds(gaussians)
        self.gaussians = gaussians
        return keeper

    def _grown(self, keeper: Keeper, step: int, gaussians: int) -> int:
        entry, done = keeper.plan.entries[-1], keeper.plan.done(step)
        if not RECIPE.grows_from < done < RECIPE.grows_until or step % entry.interval:
            return gaussians
        share = entry.interval / max(1, entry.end - entry.step) * (1 - entry.done) / 0.53
        wanted = gaussians + round(share * (self.natural - self.start) / entry.threshold)
        grown = max(gaussians, min(wanted, entry.budget))
        keeper.densified(Densified(step, 0, grown - gaussians, 0, grown, 0.5))
        return grown


def slowing(factor: float, at: float) -> Cost:
    return lambda gone, pixels, gaussians: steady(gone, pixels, gaussians) * (factor if gone > at else 1.0)


def noisy() -> Cost:
    chance = random.Random(3)
    return lambda gone, pixels, gaussians: steady(gone, pixels, gaussians) * chance.lognormvariate(0, 0.7)


@pytest.mark.parametrize("seconds", [10, 30, 60, 300, 900])
@pytest.mark.parametrize(
    "machine", ["steady", "half as fast early", "half as fast late", "twice as fast", "noisy", "nearly stops"]
)
def test_a_run_ends_on_time_whatever_the_machine_does(machine: str, seconds: float) -> None:
    costs = {
        "steady": steady,
        "half as fast early": slowing(2.0, 0.3 * seconds),
        "half as fast late": slowing(2.0, 0.9 * seconds),
        "twice as fast": slowing(0.5, 0.5 * seconds),
        "noisy": noisy(),
        "nearly stops": slowing(8.0, 0.97 * seconds),
    }
    world = Invented(costs[machine], seconds)
    world.run()
    assert 0.95 * seconds < world.now < 1.05 * seconds


def test_the_share_that_is_done_rises_evenly_enough_and_never_falls() -> None:
    world = Invented(slowing(2.0, 30), 60)
    plan = world.run().plan
    shares = [plan.done(step) for step in range(plan.end + 1)]
    steps = [two - one for one, two in itertools.pairwise(shares)]
    assert shares[0] == 0 and shares[-1] == 1
    assert min(steps) > 0 and max(steps) < 20 / plan.end


def test_more_time_gives_more_steps_and_more_gaussians() -> None:
    found = []
    for seconds in (10, 30, 60, 300, 900):
        world = Invented(steady, seconds)
        found.append((world.run().plan.end, world.gaussians))
    assert found == sorted(found) and len({steps for steps, _ in found}) == 5
    assert found[0][1] < 0.6 * 600_000 < 600_000 < found[-1][1]


def test_few_photos_get_more_steps_for_more_time_but_no_lower_threshold() -> None:
    few, many = (dataclasses.replace(RECIPE, lowest_threshold=lowest_threshold(n)) for n in (42, 161))
    short, long = (Invented(steady, seconds, recipe=few).run() for seconds in (60.0, 600.0))
    free = Invented(steady, 600.0, recipe=many).run()
    thresholds = [{entry.threshold for entry in run.plan.entries} for run in (short, long)]
    assert thresholds == [{1.0}, {1.0}] and min(entry.threshold for entry in free.plan.entries) < 0.6
    assert long.plan.entries[-1].end > short.plan.entries[-1].end
    assert lowest_threshold(0) == lowest_threshold(65) == 1.0 and lowest_threshold(100) < 0.5


def test_few_photos_are_not_looked_at_without_end() -> None:
    few, many = (dataclasses.replace(RECIPE, lowest_threshold=1.0, photos=n) for n in (4, 66))
    capped, free = (Invented(steady, 600.0, recipe=recipe).run() for recipe in (few, many))
    assert capped.plan.entries[-1].end == most_steps(4) == 1600 < free.plan.entries[-1].end
    assert capped.plan.done(1600) == 1.0


def test_few_photos_that_are_looked_at_very_often_get_a_pull_on_opacities() -> None:
    assert regularization(42, 42 * 80) == regularization(100, 100 * 500) == 0.0
    assert 0 < regularization(42, 42 * 100) < regularization(42, 42 * 180) == regularization(42, 42 * 900)
    few = dataclasses.replace(RECIPE, lowest_threshold=1.0, photos=42)
    short, long = (Invented(steady, seconds, recipe=few).run() for seconds in (30.0, 600.0))
    assert {entry.regularize for entry in short.plan.entries} == {0.0}
    entry = long.plan.entries[-1]
    assert entry.regularize == regularization(42, 42 * 180)
    config = TrainConfig(**LENGTHS)
    assert stretched(config, long.plan).regularize == entry.regularize
    for own in (0.5, 0.0):
        assert stretched(dataclasses.replace(config, regularize=own), long.plan).regularize == own
    mcmc = dataclasses.replace(config, densification="mcmc", max_gaussians=1000)
    assert stretched(mcmc, long.plan).regularize == 0.0, "it has weights of its own"


def test_a_longer_run_has_no_more_rounds_of_growth() -> None:
    """Each adds Gaussians above the same threshold: with 34 instead of 17 the built-in scene lost 0.4 dB."""
    few = dataclasses.replace(RECIPE, lowest_threshold=1.0)
    runs = [Invented(steady, seconds, recipe=few).run() for seconds in (300.0, 900.0)]
    assert runs[1].plan.end > 2 * runs[0].plan.end > 6000
    assert all(14 <= len(run.rounds) <= 20 for run in runs)  # growth is a half of the run: 0.53 / 0.03


def test_cheap_steps_before_growth_do_not_put_growth_off() -> None:
    """By what steps cost at first, there is time for 27 000 of them: growth would begin after 2500."""
    machine = Machine(45.0)
    machine.observe(0.1, 50, RECIPE.pixels / 16, 5000)
    before = first_entry(RECIPE, 5000, 10_000_000)
    here = Situation(50, 50 / 3200, 5000, left=299.0, used=1.0, natural=5000, most=10_000_000, rounds=0)
    assert next_entry(RECIPE, machine, here, before).end <= RECIPE.steps + 1
    shown = dataclasses.replace(here, rounds=4)
    assert next_entry(RECIPE, machine, shown, before).end > 5 * RECIPE.steps


def test_little_time_is_spent_on_smaller_photos() -> None:
    assert Invented(steady, 12).run().plan.entries[-1].finest > 1
    assert Invented(steady, 120).run().plan.entries[-1].finest == 1


def test_a_scene_that_asks_for_few_gaussians_gets_the_time_as_steps() -> None:
    small, large = Invented(crowded, 90, natural=120_000), Invented(crowded, 90, natural=3_000_000)
    assert small.run().plan.end > 1.2 * large.run().plan.end
    assert small.gaussians < 150_000 < 400_000 < large.gaussians


def test_no_more_gaussians_than_there_is_memory_for() -> None:
    world = Invented(steady, 900, most=150_000)
    assert world.run().plan.end > 3200 and world.gaussians <= 150_000


def test_saving_is_tried_once_and_counts_as_no_step() -> None:
    keeper = (world := Invented(steady, 30)).run()
    seen = []

    def save() -> int:
        seen.append(world.now)
        world.now += 2.0
        return 1000

    guess, begun = keeper.saving, keeper._window[0]
    keeper.try_saving(199, save)
    assert keeper.saving == guess and not seen
    for step in (200, 201):
        keeper.try_saving(step, save)
    assert len(seen) == 1 and keeper.saving == pytest.approx(1.2 * 2.0 / 1000)
    assert keeper._window[0] == pytest.approx(begun + 2.0)


def test_a_full_disk_does_not_end_a_run_at_the_trial() -> None:
    keeper = Invented(steady, 30).run()
    guess = keeper.saving

    def full() -> int:
        raise OutputError("no space")

    keeper.try_saving(200, full)
    assert keeper.saving == guess


def test_a_machine_is_known_after_it_has_shown_its_sizes() -> None:
    machine = Machine(1000.0)
    for _ in range(10):
        for pixels, gaussians in ((16_000, 1e5), (64_000, 2e5), (250_000, 4e5), (250_000, 1e5)):
            machine.observe(50 * steady(0, pixels, gaussians), 50, pixels, gaussians)
    for pixels, gaussians in ((250_000, 6e5), (64_000, 1e5)):
        assert machine.prices().of(pixels, gaussians) == pytest.approx(steady(0, pixels, gaussians), rel=0.2)


def test_a_machine_that_slows_down_is_believed_soon() -> None:
    machine = Machine(9.0)
    for _ in range(100):
        machine.observe(1.0, 20, 250_000, 1e5)
    for _ in range(4):
        machine.observe(1.0, 10, 250_000, 1e5)
    assert machine.prices().of(250_000, 1e5) == pytest.approx(0.1, rel=0.2)


def test_natural_growth_is_guessed_until_it_shows() -> None:
    assert natural_growth([], 0.6, 5000.0) == 5000
    assert natural_growth([(0.1, 7000)], 0.6, 5000.0) == 7000
    rounds = [(0.1 * k, 1000 * k) for k in range(1, 6)]
    assert natural_growth(rounds, 0.6, 5000.0) == pytest.approx(6000)


def test_without_time_left_a_run_ends_where_it_is() -> None:
    machine, before = Machine(9.0), first_entry(RECIPE, 1000, 10**6)
    machine.observe(1.0, 20, 250_000, 1e5)
    here = Situation(500, 0.7, 10_000, 0.0, 60.0, 1e5, 10**6)
    entry = next_entry(RECIPE, machine, here, before)
    assert (entry.end, entry.at(500)) == (500, 1.0)
    assert entry.finest == before.finest == 1, "no step sees smaller photos, and none is to be told of"


def test_what_an_invented_run_recorded_is_a_plan_that_can_be_read_again() -> None:
    plan = Invented(noisy(), 30).run().plan
    assert from_record(to_record(plan)) == plan
