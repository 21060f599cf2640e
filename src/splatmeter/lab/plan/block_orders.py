"""Who runs first in each block: a fair draw of its own for every block, from a recorded seed, to be redone.

Strict AB AB is biased by drift, AB BA by its curvature. Balancing the orders helps against both and opens
another door: of the six balanced orders of four blocks two follow a disturbance that returns every four runs,
so one comparison in six called it a speed-up. A fair coin a block follows any pattern, whatever it is, in one
of 2^blocks; what imbalance is left goes into the spread that the interval is made of.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise, product
from typing import TypeVar

T = TypeVar("T")

FEW = 4
"""Blocks that are too few for fair coins: one order in sixteen would follow a pattern, more than 5 %."""
_ALTERNATING, _CONSTANT, _OTHER = 5, 6, 8
"""Weights of the orders of four blocks: those that never change or always change stand against the patterns
that a run is most easily locked to (its place in the block, every other block), so they are rarer: 6/118 and
5/118 each instead of 8/118. A sine of any period then follows an order in less than 5 % of comparisons.
"""


def block_orders(arms: Sequence[str], blocks: int, seed: int) -> list[tuple[str, ...]]:
    """The order of the arms in each block, for a number of blocks that is fixed beforehand."""
    if blocks != FEW or len(arms) != 2:
        return next_orders(arms, 0, blocks, seed)
    _check(arms)
    first, second = arms
    turned = _one_of_sixteen(random.Random(seed).random())
    return [(second, first) if turn else (first, second) for turn in turned]


def next_orders(arms: Sequence[str], already: int, more: int, seed: int) -> list[tuple[str, ...]]:
    """Orders of blocks `already` … `already + more - 1`: for resuming, extending, and `--until-decided`.

    Each block draws from a seed of its own, so that what has run never changes when more are asked for.
    """
    _check(arms)
    numbers = range(already, already + more)
    return [tuple(_shuffled(arms, random.Random(seed + 1_000_003 * (block + 1)))) for block in numbers]


def _one_of_sixteen(chance: float) -> tuple[bool, ...]:
    orders = list(product((False, True), repeat=FEW))
    weights = [_weight(order) for order in orders]
    left = chance * sum(weights)
    for order, weight in zip(orders, weights, strict=True):
        left -= weight
        if left < 0:
            return order
    return orders[-1]


def _weight(order: Sequence[bool]) -> int:
    changes = {a != b for a, b in pairwise(order)}
    if len(changes) == 2:
        return _OTHER
    return _ALTERNATING if True in changes else _CONSTANT


def _check(arms: Sequence[str]) -> None:
    if len(set(arms)) != len(arms) or len(arms) < 2:
        raise ValueError(f"an order needs at least two different arms, not {list(arms)}")


def _shuffled(items: Sequence[T], generator: random.Random) -> list[T]:
    """Fisher-Yates on `random()` alone, the one method whose sequence Python promises to keep."""
    result = list(items)
    for i in range(len(result) - 1, 0, -1):
        j = int(generator.random() * (i + 1))
        result[i], result[j] = result[j], result[i]
    return result
