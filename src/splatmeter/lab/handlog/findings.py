"""The rules for written logs, in the order in which they are told."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from splatmeter.lab.handlog import (
    arithmetic,
    chronology,
    evidence,
    memory_claims,
    quality_claims,
    ranges,
    reasoning,
    restated,
    splits,
    statements,
    timing,
)
from splatmeter.lab.handlog.values import HandLog
from splatmeter.lab.samples.finding import Finding

RULES: tuple[Callable[[HandLog], list[Finding]], ...] = (
    arithmetic.wrong_changes,
    statements.not_unchanged,
    statements.wrong_directions,
    statements.wrong_ranks,
    restated.tables_against_sections,
    restated.restated_figures,
    restated.two_speeds,
    timing.times_against_speeds,
    quality_claims.quality_claims,
    ranges.impossible_figures,
    chronology.two_parents,
    splits.leaked_views,
    splits.mixed_counts,
    splits.changed_splits,
    evidence.too_small_for_single_runs,
    evidence.identical_metrics,
    evidence.baseline_from_a_candidate,
    memory_claims.above_the_card,
    memory_claims.claimed_below_the_floor,
    memory_claims.less_for_more_pixels,
    memory_claims.differences_from_estimates,
    reasoning.already_below,
    reasoning.spilled_below_the_card,
    reasoning.outdated_current,
    reasoning.equal_to_nothing,
    reasoning.not_the_full_run,
    reasoning.memory_by_count,
    reasoning.quality_of_another_run,
    reasoning.judged_too_early,
    reasoning.success_without_quality,
)
DATED: tuple[Callable[[HandLog, datetime.date], list[Finding]], ...] = (
    chronology.impossible_days,
    chronology.older_than_its_parent,
)


def audit_log(log: HandLog, today: datetime.date | None = None) -> list[Finding]:
    """What the log's own numbers and words contradict, each with its arithmetic."""
    day = today or datetime.datetime.now(tz=datetime.timezone.utc).date()
    found = [finding for rule in RULES for finding in rule(log)]
    found += [finding for rule in DATED for finding in rule(log, day)]
    return list(dict.fromkeys(found))
