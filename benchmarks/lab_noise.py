"""Machines that disturb a measurement, and the lab's rules on speed for thousands of them at a time.

Rows are comparisons of two arms that do the same; columns are runs or blocks. `BEFORE` is the lab at 308345a,
written down here; `AFTER` is today's: its orders are drawn by the product, its intervals are the product's
formulas over arrays (`tests/benchmarks/test_lab_simulations.py` compares the two).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splatmeter.lab.compare.noise import FAILED, OTHER_NOISE
from splatmeter.lab.compare.sequential import half_width
from splatmeter.lab.plan.block_orders import block_orders, next_orders
from splatmeter.lab.samples.student import quantile, variance_ratio_tail

Array = NDArray[np.floating[Any]]
Noise = Callable[[np.random.Generator, int, int], Array]
JITTER = 0.008
POOL = 20_000
"""Orders drawn from the product, to be shared by all regimes."""


def white(g: np.random.Generator, rows: int, runs: int) -> Array:
    return 0.01 * g.standard_normal((rows, runs))


def autoregressive(correlation: float, spread: float) -> Noise:
    def noise(g: np.random.Generator, rows: int, runs: int) -> Array:
        values = spread * g.standard_normal((rows, runs))
        for i in range(1, runs):
            values[:, i] = correlation * values[:, i - 1] + np.sqrt(1 - correlation**2) * values[:, i]
        return values

    return noise


def walk(g: np.random.Generator, rows: int, runs: int) -> Array:
    return np.cumsum(0.005 * g.standard_normal((rows, runs)), axis=1)


def drift(a_run: float) -> Noise:
    return lambda g, rows, runs: np.broadcast_to(a_run * np.arange(runs), (rows, runs)).copy()


def warming(g: np.random.Generator, rows: int, runs: int) -> Array:
    return np.broadcast_to(0.05 * (1 - np.exp(-np.arange(runs) / 4)), (rows, runs)).copy()


def step(size: float) -> Noise:
    def noise(g: np.random.Generator, rows: int, runs: int) -> Array:
        return size * (np.arange(runs) >= g.integers(1, runs, (rows, 1)))

    return noise


def telegraph(g: np.random.Generator, rows: int, runs: int) -> Array:
    """Two states of the machine, 5 % apart; one run in ten changes the state."""
    return 0.05 * (np.cumsum(g.random((rows, runs)) < 0.1, axis=1) % 2)


def spikes(share: float, size: float) -> Noise:
    return lambda g, rows, runs: size * (g.random((rows, runs)) < share)


def heavy_tails(degrees: float) -> Noise:
    return lambda g, rows, runs: 0.01 * g.standard_t(degrees, (rows, runs))


def modes(g: np.random.Generator, rows: int, runs: int) -> Array:
    """Every process is lucky with its memory layout or is not."""
    return 0.03 * (g.random((rows, runs)) < 0.5)


def second_is_slower(g: np.random.Generator, rows: int, runs: int) -> Array:
    return np.broadcast_to(0.02 * (np.arange(runs) % 2), (rows, runs)).copy()


def sine(period: float, amplitude: float = 0.05) -> Noise:
    def noise(g: np.random.Generator, rows: int, runs: int) -> Array:
        phase = g.uniform(0, 2 * np.pi, (rows, 1))
        return amplitude * np.sin(2 * np.pi * np.arange(runs) / period + phase)

    return noise


def together(*parts: Noise) -> Noise:
    return lambda g, rows, runs: sum((part(g, rows, runs) for part in parts), np.zeros((rows, runs)))


REGIMES: dict[str, Noise] = {
    "white, 1 %": white,
    "AR(1) 0.8, 2 %": autoregressive(0.8, 0.02),
    "AR(1) 0.95, 5 %": autoregressive(0.95, 0.05),
    "AR(1) -0.6, 2 %": autoregressive(-0.6, 0.02),
    "random walk, 0.5 % a run": walk,
    "drift -0.4 % a run": drift(-0.004),
    "drift +2 % a run": drift(0.02),
    "warming up by 5 %": warming,
    "one step of 5 %": step(0.05),
    "one step of 20 %": step(0.20),
    "two states, 5 % apart": telegraph,
    "spikes: 10 % of runs, 6.4 %": spikes(0.1, 8 * JITTER),
    "spikes: 30 % of runs, 20 %": spikes(0.3, 0.20),
    "Student t, 3 degrees": heavy_tails(3),
    "Student t, 1.5 degrees": heavy_tails(1.5),
    "lucky and unlucky processes, 3 %": modes,
    "the second of a block is 2 % slower": second_is_slower,
    "sine of 5 %, period 3 runs": sine(3),
    "sine of 5 %, period 4 runs": sine(4),
    "sine of 5 %, period 8 runs": sine(8),
    "sine of 5 %, period 20 runs": sine(20),
    "drift, AR(1) and spikes": together(drift(-0.004), autoregressive(0.8, 0.02), spikes(0.1, 0.064)),
    "sine of 4 runs, step and heavy tails": together(sine(4, 0.02), step(0.05), heavy_tails(3)),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """How blocks are ordered, and what an A/A does to a claim."""

    name: str
    signs: Callable[[np.random.Generator, int, int, bool], Array]
    """(generator, rows, blocks, until decided): +1 where the reference runs first."""
    hurdle: bool
    """The A/A is a hurdle as large as its interval, and fails at 5 %; else it is an estimate of noise."""


def _balanced_signs(g: np.random.Generator, rows: int, blocks: int, until: bool) -> Array:
    batch = 4 if until else blocks
    parts: list[Array] = []
    for start in range(0, blocks, batch):
        size = min(batch, blocks - start) if not until else batch
        plain = np.where(np.arange(size) < (size + 1) // 2, 1.0, -1.0)
        turned = np.where(g.random((rows, 1)) < 0.5, plain, -plain) if size % 2 else np.tile(plain, (rows, 1))
        parts.append(g.permuted(turned, axis=1))
    return np.concatenate(parts, axis=1)[:, :blocks]


@lru_cache
def _drawn(blocks: int, until: bool) -> Array:
    draw = (
        (lambda seed: next_orders("AB", 0, blocks, seed))
        if until
        else (lambda seed: block_orders("AB", blocks, seed))
    )
    return np.array([[1.0 if order[0] == "A" else -1.0 for order in draw(seed)] for seed in range(POOL)])


def _product_signs(g: np.random.Generator, rows: int, blocks: int, until: bool) -> Array:
    pool = _drawn(blocks, until)
    return pool[g.integers(0, len(pool), rows)]


BEFORE = Rule("before", _balanced_signs, hurdle=True)
AFTER = Rule("after", _product_signs, hurdle=False)


def log_ratios(
    rule: Rule,
    noise: Noise,
    g: np.random.Generator,
    rows: int,
    blocks: int,
    until: bool = False,
    jitter: float = JITTER,
) -> Array:
    """ln(T_A / T_B) of arms that do the same, in runs one after the other."""
    times = noise(g, rows, 2 * blocks) + jitter * g.standard_normal((rows, 2 * blocks))
    return (times[:, 0::2] - times[:, 1::2]) * rule.signs(g, rows, blocks, until)


@dataclass(frozen=True, slots=True)
class Interval:
    mean: Array
    half: Array
    variance: Array
    blocks: int


def interval(d: Array, until: bool = False) -> Interval:
    n = d.shape[1]
    mean, variance = d.mean(1), d.var(1, ddof=1)
    unit = half_width(n - 1.0, n, 0.05) if until else quantile(0.975, n - 1) / np.sqrt(n)
    return Interval(mean, unit * np.sqrt(variance), variance, n)


@lru_cache
def _largest_ratio(upper: int, lower: int) -> float:
    """Of two variances that still go together, by bisection of the product's F test."""
    low, high = 1.0, 1e9
    for _ in range(200):
        middle = float(np.sqrt(low * high))
        low, high = (
            (middle, high) if variance_ratio_tail(middle, upper, lower) >= OTHER_NOISE else (low, middle)
        )
    return low


def widened(own: Interval, control: Interval, until: bool) -> Array:
    """The product's `with_noise`, over rows."""
    n, m = own.blocks - 1, control.blocks - 1
    pooled = (n * own.variance + m * control.variance) / (n + m)
    unit = half_width(float(n), own.blocks, 0.05) if until else quantile(0.975, n + m) / np.sqrt(own.blocks)
    goes_together = control.variance <= _largest_ratio(m, n) * own.variance
    return np.where(goes_together, np.maximum(own.half, unit * np.sqrt(pooled)), own.half)


def claims(
    rule: Rule, d: Array, control: Array | None = None, until: bool = False
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(faster, slower) for each row; `control` are the log ratios of an A/A."""
    own = interval(d, until)
    if control is None:
        return own.mean > own.half, own.mean < -own.half
    aa = interval(control)
    if rule.hurdle:
        fine = np.abs(aa.mean) <= aa.half
        floor = np.abs(aa.mean) + aa.half
        return fine & (own.mean - own.half > floor), fine & (own.mean < -own.half) & (-own.mean > floor)
    fine = (
        np.abs(aa.mean) <= quantile(1 - FAILED / 2, aa.blocks - 1) / quantile(0.975, aa.blocks - 1) * aa.half
    )
    half = widened(own, aa, until)
    leans = np.abs(aa.mean) > aa.half
    hurdle = np.where(leans, np.abs(aa.mean) + np.hypot(half, aa.half) - half, 0.0)
    return fine & (own.mean - half > hurdle), fine & (-own.mean - half > hurdle)


def first_claims(
    rule: Rule, d: Array, control: Array | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(faster, slower) of looking after every block and stopping at the first claim."""
    faster = np.zeros(len(d), bool)
    slower = np.zeros(len(d), bool)
    for n in range(5, d.shape[1] + 1):
        up, down = claims(rule, d[:, :n], control, until=True)
        going = ~(faster | slower)
        faster, slower = faster | (up & going), slower | (down & going)
    return faster, slower
