"""From what a run has measured to the next entry of its plan: pure functions, no clock.

A step's seconds are a sum of three parts: one for the step itself, one for its pixels, one for the
Gaussians there are. How the parts compare is known from other machines, and what this one shows takes its
place. Steps and Gaussians share what time there is: a scene that would like more Gaussians than it has time
for gets fewer of both, and one that has more time than it needs gets more of both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from splatmeter.train.plan import Entry

PRIOR = np.array([1.5e-3, 9e-8, 4.5e-8])
"""Seconds of a step, of a pixel, of a Gaussian on two cores: only how they compare matters."""
BELIEF = 0.15
"""Weight of how the parts compare elsewhere, as a share of everything measured."""
STEPS_POWER, GAUSSIANS_POWER = 0.55, 0.7
"""With x times the time that the settings would take as they are, steps go with a power of x, and below 1
growth does too."""
THRESHOLD_POWER, LOWEST_THRESHOLD = 0.5, 0.4
"""Above 1 the threshold falls with this power of x, but no lower, for more Gaussians."""
FEW_PHOTOS = 65
"""So many, or fewer, are learned by heart by more Gaussians: the threshold stays. With more photos it may
fall by the square of their number."""
REGULARIZED_LOOKS, REGULARIZATION = (90.0, 180.0), 0.002
"""A few photos are learned by heart from the first number of looks at each of them on, and a pull on
opacities helps; its weight is reached at the second."""
MOST_LOOKS = 400
"""At each of a few photos: with more of them quality falls, whatever pulls. 42 photos have 29.7 dB after 240
looks, 29.5 after 570 and 27.9 after 1900."""
FEWEST_STEPS = 450
"""Where there are fewer, smaller photos give more of them."""
HESITATION = 1.3
"""A decision for smaller or larger photos is changed only if its reason has changed by so much."""
ROUNDS_SHARE = 0.03
SHORTEST_INTERVAL = 20
"""Steps between densifications, and so large a share of the run: a longer one has no more of them, because
what more rounds add is learned by heart."""
SURE_ROUNDS = 4
"""Densifications after which a run's own growth tells what it comes to."""
FREE_GROWTH = 1.3
"""Until then, growth is limited only to this much a densification, so that it can show."""
SHORTEST_RUN = 10
"""Steps that a run has at least; what cannot do those in its time is refused."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is to be stretched, with lengths as shares of the whole."""

    steps: int
    """That it was made for."""
    grows_from: float
    grows_until: float
    stages: tuple[tuple[int, float], ...]
    """Divisors of the photos' sides, each with the share at which it ends; then the full size."""
    pixels: float
    """In a photo of full size."""
    finest: tuple[int, ...] = (1,)
    """Divisors that may be the last one, the full size first."""
    lowest_threshold: float = LOWEST_THRESHOLD
    """Of the settings' own."""
    photos: int = 1_000_000

    def divisor(self, share: float, finest: int) -> int:
        return max(finest, next((divisor for divisor, last in self.stages if share < last), 1))


@dataclass(frozen=True, slots=True)
class Situation:
    """Where a run stands when it plans."""

    step: int
    done: float
    gaussians: int
    left: float
    """Seconds for steps."""
    used: float
    natural: float
    """Gaussians that the settings as they are would make of this scene."""
    most: int
    """That memory, or the user, allows."""
    rounds: int = SURE_ROUNDS
    """Densifications that have shown how the scene grows."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds of a step, of each of its pixels, and of each Gaussian."""

    step: float
    pixel: float
    gaussian: float

    def of(self, pixels: float, gaussians: float) -> float:
        return self.step + self.pixel * pixels + self.gaussian * gaussians


@dataclass(slots=True)
class Machine:
    """Costs as measured: all of it, of which older windows count less, and the latest alone."""

    memory: float
    """Seconds after which a measurement counts half; of the latest ones, a fourth of that."""
    _squares: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    _products: np.ndarray = field(default_factory=lambda: np.zeros(3))
    _recent: np.ndarray = field(default_factory=lambda: np.zeros(2))

    @property
    def knows(self) -> bool:
        return bool(self._recent[0] > 0)

    def observe(self, seconds: float, steps: int, pixels: float, gaussians: float) -> None:
        """A window of so many steps, with the means of what they saw."""
        if steps <= 0 or seconds <= 0:
            return
        parts = np.array([1.0, pixels, gaussians]) * PRIOR  # [3] seconds elsewhere, per step
        fade = 0.5 ** (seconds / self.memory)
        self._squares = fade * self._squares + steps * np.outer(parts, parts) / parts.sum() ** 2
        self._products = fade * self._products + steps * parts / parts.sum() ** 2 * (seconds / steps)
        expected = float(parts @ self._factors())
        self._recent = fade**4 * self._recent + np.array([steps * expected, seconds])

    def prices(self) -> Prices:
        """As they are now."""
        latest = self._recent[1] / self._recent[0] if self.knows else 1.0
        return Prices(*map(float, PRIOR * self._factors() * latest))

    def _factors(self) -> np.ndarray:
        """By how much each part costs more here than elsewhere: least squares, pulled towards one for all."""
        weight = float(self._squares.sum())
        if weight <= 0:
            return np.ones(3)
        common = float(self._products.sum()) / weight
        pull = BELIEF * float(np.trace(self._squares)) * np.eye(3) / 3
        found = np.linalg.solve(self._squares + pull, self._products + pull @ np.full(3, common))
        return np.clip(found, 0.2 * common, 5 * common)


# ---- forecasts --------------------------------------------------------------------------------------------
def mean_seconds(recipe: Recipe, prices: Prices, here: Situation, target: float, finest: int) -> float:
    """What a step takes on average until the end, if Gaussians grow evenly to `target` until growth ends."""
    more = max(0.0, target - here.gaussians) * mean_growth(recipe, here.done)
    return prices.of(mean_pixels(recipe, here.done, finest), here.gaussians + more)


def mean_pixels(recipe: Recipe, done: float, finest: int) -> float:
    """Over the steps that are left."""
    at = [done, *(last for _, last in recipe.stages if done < last < 1), 1.0]
    pieces = [(end - begin, recipe.divisor((begin + end) / 2, finest)) for begin, end in pairwise(at)]
    whole = sum(length for length, _ in pieces)
    return (
        recipe.pixels / finest**2 if whole <= 0 else recipe.pixels * sum(n / d**2 for n, d in pieces) / whole
    )


def mean_growth(recipe: Recipe, done: float) -> float:
    """The share of the Gaussians still to come that there are on average, over the steps that are left."""
    begin = max(done, recipe.grows_from)
    if recipe.grows_until <= begin or done >= 1:
        return 0.0
    return ((recipe.grows_until - begin) / 2 + 1 - recipe.grows_until) / (1 - done)


def natural_growth(rounds: list[tuple[float, int]], until: float, guess: float) -> float:
    """Gaussians at the end of growth, of (share done, Gaussians) after rounds that nothing limited."""
    if len(rounds) < SURE_ROUNDS:
        return max(guess, rounds[-1][1] if rounds else 0)
    latest = rounds[-2 * SURE_ROUNDS :]
    (first, before), (last, now) = latest[0], latest[-1]
    slope = max(0.0, (now - before) / (last - first)) if last > first else 0.0
    return now + slope * max(0.0, until - last)


def lowest_threshold(photos: int) -> float:
    return min(1.0, max(LOWEST_THRESHOLD, (FEW_PHOTOS / max(1, photos)) ** 2))


def regularization(photos: int, steps: int) -> float:
    begins, whole = REGULARIZED_LOOKS
    share = (steps / photos - begins) / (whole - begins)
    return round(REGULARIZATION * min(1.0, max(0.0, share)), 5) if photos <= FEW_PHOTOS else 0.0


def most_steps(photos: int) -> float:
    return MOST_LOOKS * photos if photos <= FEW_PHOTOS else math.inf


# ---- the decision -----------------------------------------------------------------------------------------
def first_entry(recipe: Recipe, start: int, most: int) -> Entry:
    """Before anything is known."""
    return Entry(0, 0.0, recipe.steps, _interval(recipe.steps, 0), max(start, most))


def next_entry(recipe: Recipe, machine: Machine, here: Situation, before: Entry) -> Entry:
    prices = machine.prices()
    finest = _finest(recipe, prices, here, before)
    times = _times(recipe, prices, here, finest)
    target = max(here.gaussians, _target(here, times))
    mean = mean_seconds(recipe, prices, here, target, finest)
    growing = here.done < recipe.grows_until
    steps = max(0, math.floor(here.left / mean))
    if growing and here.rounds < SURE_ROUNDS:
        # Before a scene grows, steps are cheap and nobody knows how long: a run of all the steps that they
        # promise would spend most of its time on the smallest photos.
        steps = min(steps, math.ceil(_shortest_to_show_growth(recipe) * (1 - here.done)))
    steps = math.floor(min(steps, max(0.0, most_steps(recipe.photos) - here.step)))
    steps = max(steps, SHORTEST_RUN - here.step)
    interval = _interval(steps / max(1e-9, 1 - here.done), before.interval) if growing else before.interval
    threshold = before.threshold
    if growing and here.rounds >= SURE_ROUNDS:  # until then the settings as they are show how the scene grows
        threshold = round(min(1.0, max(recipe.lowest_threshold, times**-THRESHOLD_POWER)), 4)
    budget = here.most  # where there is time enough, the threshold alone says how many there are
    if times < 1:
        budget = _allowed(recipe, here, target, interval / max(1, steps) * (1 - here.done))
    return Entry(
        step=here.step,
        done=here.done if steps else 1.0,
        end=here.step + steps,
        interval=interval,
        budget=budget if growing else before.budget,
        target=round(target) if growing else here.gaussians,
        threshold=threshold,
        finest=finest if steps else before.finest,  # where none is left, no step sees it
        regularize=regularization(recipe.photos, here.step + steps) if growing else before.regularize,
        used=round(here.used, 3),
    )


def _shortest_to_show_growth(recipe: Recipe) -> float:
    """Steps of a whole run: those of the settings, or so many that growth has its first rounds in them."""
    rounds = SURE_ROUNDS * SHORTEST_INTERVAL / max(1e-9, recipe.grows_until - recipe.grows_from)
    return max(recipe.steps, rounds)


def _times(recipe: Recipe, prices: Prices, here: Situation, finest: int) -> float:
    """The time there is over the time that the settings as they are would take, such that the steps and the
    Gaussians that it gives take that time together."""
    low, high = 1e-4, 1e4
    for _ in range(40):
        middle = math.sqrt(low * high)
        target = _target(here, middle)
        wanted = recipe.steps * middle**STEPS_POWER * (1 - here.done)
        if wanted * mean_seconds(recipe, prices, here, target, finest) < here.left:
            low = middle
        else:
            high = middle
    return low


def _target(here: Situation, times: float) -> float:
    """Gaussians at the end of growth: with little time, a share of those that would still come."""
    more = max(0.0, here.natural - here.gaussians) * min(1.0, times) ** GAUSSIANS_POWER
    return min(here.most, here.gaussians + more)


def _finest(recipe: Recipe, prices: Prices, here: Situation, before: Entry) -> int:
    """The largest photos that leave steps enough."""
    for finest in recipe.finest:
        steps = recipe.steps * _times(recipe, prices, here, finest) ** STEPS_POWER
        needed = FEWEST_STEPS
        if finest >= before.finest:
            needed /= HESITATION
        elif finest < before.finest:
            needed *= HESITATION
        if steps >= needed:
            return finest
    return recipe.finest[-1]


def _interval(steps: float, before: int) -> int:
    """Steps between densifications, for a run of so many; a small change is not worth making."""
    wanted = max(SHORTEST_INTERVAL, round(ROUNDS_SHARE * steps))
    return before if before and 0.8 < wanted / before < 1.25 else wanted


def _allowed(recipe: Recipe, here: Situation, target: float, ahead: float) -> int:
    """Most Gaussians at the next densification, on a straight line to the target: what is added late is added
    where full-sized photos ask for it."""
    begin = max(here.done, recipe.grows_from)
    grown = min(1.0, max(0.0, (here.done + ahead - begin) / max(1e-9, recipe.grows_until - begin)))
    allowed = here.gaussians + grown * (target - here.gaussians)
    if here.rounds < SURE_ROUNDS:
        allowed = max(allowed, FREE_GROWTH * here.gaussians)
    return max(1, min(here.most, round(allowed)))
