"""Which adapter listens to which trainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from splatmeter.errors import UsageError
from splatmeter.lab.trainers.adapter import Adapter, EventLines
from splatmeter.lab.trainers.original import Fork, Original
from splatmeter.lab.trainers.others import Generic, Gsplat, OpenSplat


@dataclass(frozen=True, slots=True)
class Listening:
    """What an adapter must know beforehand, because trainers do not say it."""

    start_step: int = 0
    end_step: int = 0
    output: Path | None = None
    directory: Path | None = None
    patterns: Mapping[str, str] = field(default_factory=dict)


def adapter(trainer: str, listening: Listening) -> Adapter:
    """A new one for every run: adapters remember where they are."""
    steps = (listening.start_step, listening.end_step)
    if trainer in ("splatmeter", "events"):
        return EventLines()
    if trainer in ("mip-splatting", "3dgs"):
        return Original(*steps, output=listening.output)
    if trainer == "fork":
        return Fork(*steps, output=listening.output)
    if trainer == "gsplat":
        return Gsplat(*steps, output=listening.output)
    if trainer == "opensplat":
        return OpenSplat(*steps, directory=listening.directory)
    if trainer == "generic":
        return Generic(listening.patterns, *steps)
    raise UsageError(
        f"{trainer!r} is not a trainer the lab knows; correct `trainer` in protocol.toml or in the phase."
    )


def guessed(arguments: tuple[str, ...]) -> str:
    """For `lab run NAME -- COMMAND`: our own command, a train.py of the original's family, or marks only."""
    words = " ".join(arguments)
    if "splatmeter" in words and "--events-stdout" in words:
        return "splatmeter"
    if "simple_trainer" in words:
        return "gsplat"
    if "opensplat" in words:
        return "opensplat"
    return "fork"
