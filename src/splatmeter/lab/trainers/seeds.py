"""Whether a trainer's seed can be set, and how: "over 6 seeds" is fiction where it takes none."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

SHIM = Path(__file__).with_name("seed_shim.py")
MARKS = ("{seed}", "{train}")
"""Words of a command that hand the seed on; {train} is everything that our own trainer is given."""


class Seeds(str, Enum):
    FLAG = "by a flag"
    """Our own trainer: --seed."""
    TEMPLATE = "by its command"
    """The command of the protocol or the phase holds {seed}."""
    SHIM = "by a start-up shim"
    """The original seeds itself with 0; `shift_seeds` moves that (seed_shim.py)."""
    NONE = "not at all"

    @property
    def can_be_set(self) -> bool:
        return self is not Seeds.NONE


OWN_WAY = {
    "splatmeter": Seeds.FLAG,
    "mip-splatting": Seeds.NONE,
    "3dgs": Seeds.NONE,
    "fork": Seeds.NONE,
    "gsplat": Seeds.NONE,
    "opensplat": Seeds.NONE,
    "generic": Seeds.NONE,
    "events": Seeds.NONE,
}
"""What a trainer does when nobody hands it a seed; the original's family calls `random.seed(0)` itself."""
SHIMMED = ("mip-splatting", "3dgs")
"""Trainers whose command the lab writes itself, so that it can put the shim before train.py."""


def seeds_of(trainer: str, command: Sequence[str], options: Sequence[str], shift_seeds: bool) -> Seeds:
    """`command` is the template that is used, empty where the lab writes the command itself."""
    if any(mark in word for word in (*command, *options) for mark in MARKS):
        return Seeds.TEMPLATE
    if command:
        return Seeds.NONE
    if shift_seeds and trainer in SHIMMED:
        return Seeds.SHIM
    return OWN_WAY.get(trainer, Seeds.NONE)


def seeds_text(how: Seeds, first: int, count: int) -> str:
    """For the log and the report."""
    if not how.can_be_set:
        return (
            "repeats of one seed: this trainer takes none, so its runs say nothing about other seeds"
            " ({seed} in its command, or shift_seeds in protocol.toml, changes that)"
        )
    through = "" if how in (Seeds.FLAG, Seeds.TEMPLATE) else f", set {how.value}"
    return f"{first} to {first + count - 1}, the same in both arms of a block{through}"
