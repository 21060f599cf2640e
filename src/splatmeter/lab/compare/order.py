"""Who runs first in each block: balanced and random, so that drift favours nobody; recorded, to be redone.

Strict AB AB is biased by drift, AB BA by its curvature. Here every order comes with its reverse, so each arm
stands before each other arm equally often, and the whole list is shuffled.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations
from typing import TypeVar

T = TypeVar("T")


def block_orders(arms: Sequence[str], blocks: int, seed: int) -> list[tuple[str, ...]]:
    """The order of the arms in each block. With an odd number of blocks one order lacks its reverse."""
    if len(set(arms)) != len(arms) or len(arms) < 2:
        raise ValueError(f"an order needs at least two different arms, not {list(arms)}")
    generator = random.Random(seed)
    orders: list[tuple[str, ...]] = []
    while len(orders) < blocks:
        first_halves = [order for order in permutations(arms) if order < order[::-1]]
        for order in _shuffled(first_halves, generator):
            pair = [order, order[::-1]]
            orders += _shuffled(pair, generator)
    return _shuffled(orders[:blocks], generator)


def next_orders(arms: Sequence[str], already: int, more: int, seed: int) -> list[tuple[str, ...]]:
    """Orders of blocks `already` … `already + more - 1`: for resuming, extending, and `--until-decided`.

    Drawn in balanced batches of four blocks (six for three arms), each from its own seed, so that what has
    run never changes when more blocks are asked for.
    """
    batch = 4 if len(arms) == 2 else 6
    last = already + more
    orders: list[tuple[str, ...]] = []
    for number in range(-(-last // batch)):
        orders += block_orders(arms, batch, seed + 1_000_003 * (number + 1))
    return orders[already:last]


def _shuffled(items: Sequence[T], generator: random.Random) -> list[T]:
    """Fisher-Yates on `random()` alone, the one method whose sequence Python promises to keep."""
    result = list(items)
    for i in range(len(result) - 1, 0, -1):
        j = int(generator.random() * (i + 1))
        result[i], result[j] = result[j], result[i]
    return result
