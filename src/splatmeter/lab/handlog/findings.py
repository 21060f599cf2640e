"""The rules for written logs, in the order in which they are told."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from splatmeter.lab.compare.samples import Finding
from splatmeter.lab.handlog import arithmetic, evidence, memory, splits
from splatmeter.lab.handlog.values import HandLog

RULES: tuple[Callable[[HandLog], list[Finding]], ...] = (
    arithmetic.wrong_changes,
    splits.leaked_views,
    splits.mixed_counts,
    splits.changed_splits,
    evidence.too_small_for_single_runs,
    evidence.identical_metrics,
    evidence.baseline_from_a_candidate,
    memory.below_the_floor,
    memory.less_for_more_pixels,
    memory.differences_from_estimates,
)


def audit_log(log: HandLog, today: datetime.date | None = None) -> list[Finding]:
    """What the log's own numbers and words contradict, each with its arithmetic."""
    return [finding for rule in RULES for finding in rule(log)]
