"""How many blocks a question needs: exact power of the t rules, by integrating over the chance of s_d.

Given the true noise σ and effect, each rule is a normal probability once s_d/σ = u is known; u follows a
scaled chi distribution with n-1 degrees of freedom. Simpson's rule over u does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from splatmeter.lab.compare.ratio import FEWEST_BLOCKS, Estimate
from splatmeter.lab.compare.sequential import FEWEST_TO_DECIDE, half_width
from splatmeter.lab.samples.student import normal_cdf, quantile

WANTED_POWER = 0.9
MOST_BLOCKS = 2000
"""Beyond this more blocks are no advice: lengthen the runs or slice them."""
_PANELS = 200


def power_to_detect(effect: float, deviation: float, blocks: int, floor: float = 0.0) -> float:
    """Chance that the 95 % interval lies wholly beyond `floor`, on the side of the effect."""
    if deviation <= 0:
        return float(abs(effect) > floor)
    shift = (abs(effect) - floor) * math.sqrt(blocks) / deviation
    t = quantile(0.975, blocks - 1)
    return _over_deviation(blocks - 1, lambda u: normal_cdf(shift - t * u))


def power_of_equivalence(effect: float, deviation: float, blocks: int, tolerated: float) -> float:
    """Chance that the 90 % interval lies inside [1 - tolerated, 1 + tolerated]."""
    low, high = math.log1p(-tolerated), math.log1p(tolerated)
    if deviation <= 0:
        return float(low < effect < high)
    scale = math.sqrt(blocks) / deviation
    t = quantile(0.95, blocks - 1)
    above, below = (high - effect) * scale, (low - effect) * scale
    return _over_deviation(
        blocks - 1, lambda u: max(0.0, normal_cdf(above - t * u) - normal_cdf(below + t * u))
    )


def blocks_to_detect(effect: float, deviation: float, floor: float = 0.0) -> int | None:
    """Fewest blocks with power .9; None if there is no such number below MOST_BLOCKS."""
    return _fewest(lambda n: power_to_detect(effect, deviation, n, floor))


def blocks_to_prove_equal(effect: float, deviation: float, tolerated: float) -> int | None:
    return _fewest(lambda n: power_of_equivalence(effect, deviation, n, tolerated))


def samples_to_settle(distance: float, deviation: float, confidence: float = 0.95) -> int | None:
    """Fewest samples whose one-sided bound excludes a limit at `distance`, with power .9."""
    if deviation <= 0:
        return FEWEST_BLOCKS if distance else None

    def power(n: int) -> float:
        shift = abs(distance) * math.sqrt(n) / deviation
        t = quantile(confidence, n - 1)
        return _over_deviation(n - 1, lambda u: normal_cdf(shift - t * u))

    return _fewest(power) if math.isfinite(distance) and math.isfinite(deviation) else None


def more_blocks(estimate: Estimate, tolerated: float, floor: float = 0.0) -> int | None:
    """About how many more blocks until either question is answered, if estimate and s_d are the truth."""
    if estimate.blocks < 2 or not math.isfinite(estimate.log_deviation):
        return max(1, FEWEST_BLOCKS - estimate.blocks)
    effect, deviation = estimate.log_mean, estimate.log_deviation
    if estimate.method.startswith("anytime"):
        wanted = _anytime_blocks(effect, deviation, tolerated, floor)
    else:
        answers = (
            blocks_to_detect(effect, deviation, floor),
            blocks_to_prove_equal(effect, deviation, tolerated),
        )
        wanted = min((n for n in answers if n is not None), default=None)
    return None if wanted is None else max(1, wanted - estimate.blocks)


def _anytime_blocks(effect: float, deviation: float, tolerated: float, floor: float) -> int | None:
    low, high = math.log1p(-tolerated), math.log1p(tolerated)
    for n in range(FEWEST_TO_DECIDE, MOST_BLOCKS + 1):
        squares = deviation * deviation * (n - 1)
        shown = abs(effect) - half_width(squares, n, 0.05) > floor
        narrow = half_width(squares, n, 0.10)
        if shown or (low < effect - narrow and effect + narrow < high):
            return n
    return None


def _fewest(power: Callable[[int], float]) -> int | None:
    if power(FEWEST_BLOCKS) >= WANTED_POWER:
        return FEWEST_BLOCKS
    low, high = FEWEST_BLOCKS, 2 * FEWEST_BLOCKS
    while power(high) < WANTED_POWER:
        low, high = high, 2 * high
        if low > MOST_BLOCKS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if power(middle) < WANTED_POWER else (low, middle)
    return high if high <= MOST_BLOCKS else None


def _over_deviation(degrees: int, chance: Callable[[float], float]) -> float:
    """Expectation of `chance(s/σ)`."""
    spread = 1.0 / math.sqrt(2.0 * degrees)
    low, high = max(0.0, 1.0 - 8.0 * spread), 1.0 + 8.0 * spread
    step = (high - low) / _PANELS
    log_front = math.log(2.0) + 0.5 * degrees * math.log(degrees / 2.0) - math.lgamma(degrees / 2.0)
    total = 0.0
    for i in range(_PANELS + 1):
        u = low + i * step
        if u <= 0.0:
            continue
        weight = 1.0 if i in (0, _PANELS) else 4.0 if i % 2 else 2.0
        density = math.exp(log_front + (degrees - 1) * math.log(u) - 0.5 * degrees * u * u)
        total += weight * density * chance(u)
    return total * step / 3.0
