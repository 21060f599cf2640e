"""Student's t distribution without SciPy, which costs more to import than the whole lab.

The cdf is the regularised incomplete beta function by its continued fraction (modified Lentz); the quantile
is found by bisection inside a bracket, so it cannot diverge. Both agree with SciPy to 1e-10.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_EPSILON = 1e-16
_MOST_TERMS = 10_000


def regularized_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), from the side on which the continued fraction converges fast."""
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"x must lie in [0, 1], not {x}")
    if x in (0.0, 1.0):
        return x
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _scaled_fraction(b, a, 1.0 - x)
    return _scaled_fraction(a, b, x)


def _scaled_fraction(a: float, b: float, x: float) -> float:
    log_front = a * math.log(x) + b * math.log1p(-x) - _log_beta(a, b)
    return math.exp(log_front) * _continued_fraction(a, b, x) / a


def _log_beta(a: float, b: float) -> float:
    """ln B(a, b); for b = 1/2 and large a by Stirling's series, because lgamma(a) would cancel to nothing."""
    small, large = min(a, b), max(a, b)
    if small == 0.5 and large > 100.0:
        inverse = 1.0 / large
        step = 0.5 * math.log(large) - inverse / 8 + inverse**3 / 192 - inverse**5 / 640
        return 0.5 * math.log(math.pi) - step
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _continued_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < _EPSILON * 4:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def cdf(t: float, degrees: float) -> float:
    """P(T <= t) with `degrees` of freedom."""
    if degrees <= 0:
        raise ValueError(f"degrees of freedom must be positive, not {degrees}")
    if math.isinf(t):
        return 0.0 if t < 0 else 1.0
    # The smaller of x and 1-x is formed directly, so that neither tail nor centre loses digits.
    square = t * t
    x = degrees / (degrees + square)
    if x <= 0.5:
        both_tails = regularized_beta(degrees / 2, 0.5, x)
    else:
        both_tails = 1.0 - regularized_beta(0.5, degrees / 2, square / (degrees + square))
    return both_tails / 2 if t < 0 else 1.0 - both_tails / 2


@lru_cache(maxsize=4096)
def quantile(probability: float, degrees: float) -> float:
    """The t with cdf(t) = probability."""
    if not 0.0 < probability < 1.0:
        raise ValueError(f"a probability inside (0, 1) is needed, not {probability}")
    if probability == 0.5:
        return 0.0
    if probability > 0.5:
        return -quantile(1.0 - probability, degrees)
    low, high = -1.0, 0.0  # search in the lower tail, where the cdf keeps its relative precision
    while cdf(low, degrees) > probability:
        low, high = 2.0 * low, low
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if cdf(middle, degrees) > probability:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def variance_ratio_tail(ratio: float, upper: float, lower: float) -> float:
    """P(F >= ratio) for the ratio of two variances with `upper` and `lower` degrees of freedom."""
    if ratio <= 0.0:
        return 1.0
    if math.isinf(ratio):
        return 0.0
    return regularized_beta(lower / 2, upper / 2, lower / (lower + upper * ratio))


def normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))
