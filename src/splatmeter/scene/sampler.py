"""Which view comes next: the original's order exactly, from CPython's own generator."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from splatmeter.errors import CheckpointError

WIDE_SHARE = 0.3
"""How often `sample_more_highres` replaces the drawn view by a wide one."""
WIDE_PIXELS = 800
"""From this width on a camera counts as wide."""
REMEMBERED = 128
"""Draws that can be taken back."""


class ViewSampler:
    """Draws without replacement, refilling from a list shuffled once at the start.

    Restoring a state continues the sequence exactly, however many of the next views were already peeked at.
    """

    def __init__(self, count: int, seed: int, wide: Sequence[int] = ()) -> None:
        if count < 1:
            raise ValueError("there must be at least one view to sample from")
        self._seed = seed
        self._random = random.Random(seed)
        self._order = list(range(count))
        self._random.shuffle(self._order)
        chosen = frozenset(wide)
        self._wide = [index for index in self._order if index in chosen]
        self._left: list[int] = []
        self._peeked: deque[int] = deque()
        self._drawn: deque[int] = deque(maxlen=REMEMBERED)

    def next(self) -> int:
        self.peek()
        self._drawn.append(self._peeked.popleft())
        return self._drawn[-1]

    def back(self, count: int) -> None:
        """As if the last `count` draws had not been made; they come again."""
        if count > len(self._drawn):
            raise ValueError(f"{count} draws cannot be taken back: only {len(self._drawn)} are remembered")
        for _ in range(count):
            self._peeked.appendleft(self._drawn.pop())

    def peek(self, ahead: int = 0) -> int:
        """What `next` will return after so many others; asking changes nothing."""
        while len(self._peeked) <= ahead:
            self._peeked.append(self._draw())
        return self._peeked[ahead]

    def state(self) -> dict[str, Any]:
        """Plain JSON: exact on any machine."""
        version, words, _ = self._random.getstate()
        return {
            "count": len(self._order),
            "seed": self._seed,
            "random": [version, list(words)],
            "left": list(self._left),
            "peeked": list(self._peeked),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Changes nothing unless the whole state is sound."""
        count = len(self._order)
        try:
            same = (state["count"], state["seed"]) == (count, self._seed)
            version, words = state["random"]
            left = [_index(value, count) for value in state["left"]]
            peeked = deque(_index(value, count) for value in _peeked_views(state["peeked"]))
            fresh = random.Random()
            fresh.setstate((version, tuple(words), None))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise CheckpointError(
                "The checkpoint's order of views is damaged. Resume from an earlier checkpoint."
            ) from None
        if not same:
            raise CheckpointError(
                f"The checkpoint was drawing from {state['count']} views with seed {state['seed']}, this run "
                f"from {count} with seed {self._seed}. Resume with the scene, split and seed it began with."
            )
        self._random, self._left, self._peeked = fresh, left, peeked
        self._drawn.clear()

    def _draw(self) -> int:
        if not self._left:
            self._left = list(self._order)
        index = self._left.pop(self._random.randint(0, len(self._left) - 1))
        # The original draws this number in every step, wanted or not: leaving it out would change the order.
        if self._random.random() < WIDE_SHARE and self._wide:
            index = self._wide[self._random.randint(0, len(self._wide) - 1)]
        return index


def _peeked_views(value: Any) -> list[Any]:
    """Earlier checkpoints hold one view or none."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _index(value: Any, count: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
        raise ValueError
    return value
