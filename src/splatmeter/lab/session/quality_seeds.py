"""Pairs of runs made for quality alone: as many seeds as it takes, without blocks, priming or a clock.

A speed takes few blocks on a quiet machine, quality takes seeds; so they are asked for apart. Such runs may
go on while others use the machine. They count only for the very comparison they repeat: the same protocol,
phases declared as they were, the same code.
"""

from __future__ import annotations

from collections.abc import Sequence

from splatmeter.errors import UsageError
from splatmeter.lab.plan.commands import seeds
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import result_from_text

FOR_QUALITY = "quality"
"""The kind of a session whose runs nobody times."""


def first_seed(lab: Lab, phases: Sequence[str]) -> int:
    """The first that no run of these phases has had; refuses where a seed would change nothing."""
    protocol = lab.protocol()
    for phase in phases:
        if not seeds(protocol, lab.phases.lineage(phase)).can_be_set:
            raise UsageError(
                f"The trainer of {phase} takes no seed, so more runs would repeat the same one; put {{seed}} "
                "into its command, or set shift_seeds in protocol.toml (mip-splatting and 3dgs)."
            )
    used = protocol.seed + protocol.seeds - 1  # what a session on speed will go through
    for row in Index(lab).rows("SELECT phase, result FROM runs WHERE counted = 1"):
        if row["phase"] in phases:
            used = max(used, result_from_text(row["result"]).identity.seed)
    return used + 1
