"""Which photos are compared with which: pure functions that give sorted pairs of places in a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]

MATCHINGS = ("auto", "exhaustive", "similar", "sequential")
EXHAUSTIVE_UP_TO = 100
"""Photos. 100 have 4950 pairs; beyond, time grows with the square, and most pairs share nothing."""
SIMILAR = 30
"""Partners by likeness that each photo asks for where photos are many."""
NEIGHBOURS_OF_MANY = 3
"""And the next ones by name: people walk while they photograph."""
OVERLAP = 10
"""Next frames of a video that each is compared with; and those 16, 32, 64 ... later."""
CLOSING = 5
"""Similar frames from elsewhere in a video: that is how a loop closes."""
BLOCK = 25
"""Photos; pairs are taken block by block, so that a photo's features stay in memory while they are needed."""


def chosen_matching(asked: str, photos: int, video: bool) -> str:
    if asked != "auto":
        return asked
    if video and photos > OVERLAP:
        return "sequential"
    return "exhaustive" if photos <= EXHAUSTIVE_UP_TO else "similar"


def exhaustive(count: int) -> list[Pair]:
    return in_blocks((one, other) for one in range(count) for other in range(one + 1, count))


def sequential(count: int, overlap: int = OVERLAP) -> list[Pair]:
    """The next `overlap`, then 16, 32, 64 ... ahead: far ones keep long sequences from drifting."""
    steps = [*range(1, overlap + 1)]
    step = 1
    while step < count:
        step *= 2
        if step > overlap:
            steps.append(step)
    return in_blocks((one, one + step) for step in steps for one in range(count - step))


def similar(likeness: NDArray[np.float32], partners: int, *, apart: int = 1) -> list[Pair]:
    """Each photo with the `partners` most alike [N, N], leaving out those nearer than `apart` by place."""
    count = len(likeness)
    scores = np.array(likeness, np.float32)  # [N, N] a copy
    places = np.arange(count)
    scores[np.abs(places[:, None] - places[None, :]) < apart] = -np.inf
    best = np.argsort(-scores, axis=1, kind="stable")[:, :partners]  # [N, partners]
    wanted = (
        (one, int(other)) for one in range(count) for other in best[one] if scores[one, other] > -np.inf
    )
    return in_blocks(wanted)


def in_blocks(pairs: Iterable[Pair]) -> list[Pair]:
    """Each pair once, smaller place first, ordered block by block."""
    distinct = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}
    return sorted(distinct, key=lambda pair: (pair[0] // BLOCK, pair[1] // BLOCK, pair))


def planned(matching: str, count: int, likeness: NDArray[np.float32] | None) -> list[Pair]:
    if matching == "exhaustive":
        return exhaustive(count)
    if likeness is None:
        raise ValueError(f"{matching} needs to know how alike photos are")
    if matching == "sequential":
        return in_blocks([*sequential(count), *similar(likeness, CLOSING, apart=OVERLAP + 1)])
    neighbours = (
        (one, one + step) for step in range(1, NEIGHBOURS_OF_MANY + 1) for one in range(count - step)
    )
    return in_blocks([*similar(likeness, SIMILAR), *neighbours])


def chunks(pairs: Sequence[Pair], size: int) -> list[Sequence[Pair]]:
    return [pairs[start : start + size] for start in range(0, len(pairs), size)]
