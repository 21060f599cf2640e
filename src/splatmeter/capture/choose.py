"""Which frames of a video become photos: the sharpest of each stretch, stretches equal in motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

STILL = 0.4
"""Mean change of grey values between candidates below which it is noise: nobody moved."""
SHARE_OF_TIME = 0.15
"""How much of a stretch's length is time rather than motion: a slow pan still gets its frames."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A frame that was looked at."""

    index: int
    """Among decoded frames."""
    time: float
    sharpness: float
    motion: float
    """Since the candidate before."""


def choose_by_count(candidates: Sequence[Candidate], frames: int) -> list[int]:
    """Indices of at most so many frames; fewer where the camera stood still or the video is short."""
    if not candidates:
        return []
    moved = np.array([c.motion if c.motion > STILL else 0.0 for c in candidates])
    moved[0] = 0.0
    moved = np.minimum(moved, 5 * np.median(moved[moved > 0])) if (moved > 0).any() else moved  # cuts
    if not moved.any():
        return [_sharpest(candidates).index]
    moving = moved > 0
    length = np.cumsum(moved / moved.sum() * (1 - SHARE_OF_TIME) + moving / moving.sum() * SHARE_OF_TIME)
    stretch = np.minimum((length * frames).astype(int), frames - 1)  # [candidates]
    return _best_of_each(candidates, stretch.tolist())


def choose_by_time(candidates: Sequence[Candidate], every: float) -> list[int]:
    """The sharpest of every `every` seconds."""
    if not candidates:
        return []
    begin = candidates[0].time
    return _best_of_each(candidates, [int((c.time - begin) / every) for c in candidates])


def _best_of_each(candidates: Sequence[Candidate], stretches: Sequence[int]) -> list[int]:
    groups: dict[int, list[Candidate]] = {}
    for candidate, stretch in zip(candidates, stretches, strict=True):
        groups.setdefault(stretch, []).append(candidate)
    return sorted(_sharpest(group).index for group in groups.values())


def _sharpest(candidates: Sequence[Candidate]) -> Candidate:
    return max(candidates, key=lambda c: (c.sharpness, -c.index))
