"""What a phase is meant to gain: speed unless it says otherwise."""

from __future__ import annotations

from enum import Enum


class Aim(str, Enum):
    """As a phase declares it."""

    SPEED = "speed"
    MEMORY = "memory"
    BOTH = "both"
    """Speed and memory."""
    TIME = "time-to-quality"
    QUALITY = "quality-after-time"

    @property
    def of_memory(self) -> bool:
        return self in (Aim.MEMORY, Aim.BOTH)

    @property
    def of_a_trajectory(self) -> bool:
        """Judged from evaluations along the run."""
        return self in (Aim.TIME, Aim.QUALITY)


AIMS = tuple(aim.value for aim in Aim)


def aim_of(word: str) -> Aim:
    """What a phase aims at; one that says nothing aims at speed."""
    return Aim(word) if word else Aim.SPEED
