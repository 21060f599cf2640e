"""Blocks that were disturbed are run again by a rule on covariates, fixed beforehand; nothing disappears."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_lab import add, carried_out, make_lab, trainer

from splatmeter.errors import UsageError
from splatmeter.lab.judgement.verdicts import judged
from splatmeter.lab.log.log_contents import document
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import Identity, RunResult, RunTiming
from splatmeter.lab.report.report_contents import report
from splatmeter.lab.session import run as runs
from splatmeter.lab.session.blocks import (
    attempts,
    disturbance,
    done_blocks,
    repetitions,
)
from splatmeter.lab.session.session_plan import SessionPlan


def carried_out_under_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: list[float], **settings: Any
) -> tuple[Lab, SessionPlan]:
    """`shares` are what others take during run after run; afterwards the machine is quiet."""
    lab = make_lab(tmp_path, **{"most_foreign_cpu": 0.05, "repeats": 2, **settings})
    add(lab, "candidate", "--speed", "110")
    left = list(shares)
    summary = runs.Run.summary

    def disturbed(self: runs.Run, *arguments: Any, **named: Any) -> RunResult:
        result = summary(self, *arguments, **named)
        return replace(result, foreign_cpu_share=left.pop(0) if left else 0.0)

    monkeypatch.setattr(runs.Run, "summary", disturbed)
    plan, _ = carried_out(lab, "ab", ["baseline", "candidate"], trainer(0.001), blocks=4, prime=False)
    return lab, plan


def test_a_disturbed_block_is_run_again_and_both_attempts_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, plan = carried_out_under_load(tmp_path, monkeypatch, [0.0, 0.2])
    folder = plan.folder(lab)
    assert sorted(attempts(folder)) == [(0, 1), (0, 2), (1, 1), (2, 1), (3, 1)]
    assert done_blocks(folder) == {0, 1, 2, 3}
    assert "20.0 % of the machine" in repetitions(folder)[0]["disturbed"]
    rows = Index(lab).rows("SELECT attempt, counted FROM runs WHERE block = 0 ORDER BY attempt")
    assert [tuple(row) for row in rows] == [(1, 0), (1, 0), (2, 1), (2, 1)]
    assert judged(lab, "baseline", "candidate").comparison.speed.main.blocks == 4
    assert any("1 such attempts" in note for note in document(lab).measurement_notes)
    (told,) = [item for item in report(lab, tmp_path).findings if item.kind == "repeated block"]
    assert "Block 1: others used 20.0 %" in told.sentence and not told.questions_the_verdict


def test_a_block_that_stays_disturbed_counts_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, plan = carried_out_under_load(tmp_path, monkeypatch, [0.5] * 100)
    assert sorted(attempts(plan.folder(lab))) == [(block, n) for block in range(4) for n in (1, 2, 3)]
    assert done_blocks(plan.folder(lab)) == {0, 1, 2, 3}


def test_without_a_declared_threshold_nothing_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, plan = carried_out_under_load(tmp_path, monkeypatch, [0.9] * 8, most_foreign_cpu=0.0)
    assert len(attempts(plan.folder(lab))) == 4


def test_the_rule_sees_throttling_and_never_the_times() -> None:
    rule = Protocol(most_foreign_cpu=0.05)
    quiet = RunResult(identity=Identity(arm="a"), foreign_cpu_share=0.01, throttled=0)
    throttled = replace(quiet, throttled=3)
    assert disturbance(rule, [quiet, replace(quiet, timing=RunTiming(seconds=1e9))]) == ""
    assert "throttled 3 times" in disturbance(rule, [quiet, throttled])
    assert disturbance(rule, [RunResult(identity=Identity(arm="a"))]) == ""
    assert disturbance(Protocol(), [throttled]) == ""


def test_the_monitor_itself_is_an_arm_that_can_be_measured(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    plan, _ = carried_out(lab, "overhead", ["baseline", "baseline"], trainer(), blocks=4)
    assert [(arm.label, arm.monitor) for arm in plan.arms] == [
        ("baseline#unwatched", False), ("baseline#watched", True),
    ]  # fmt: skip
    found = judged(lab, "baseline", "baseline", plan.session)
    assert found.comparison.candidate == "baseline#watched" and found.verdict.exit_code == 0
    for wish in ({"slices": 1.0}, {"monitor": False}):
        with pytest.raises(UsageError, match="whole runs"):
            carried_out(lab, "overhead", ["baseline", "baseline"], trainer(), blocks=4, **wish)


def test_a_recorded_run_may_be_longer_than_the_protocol_and_no_other(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    plan, _ = carried_out(lab, "record", ["baseline"], trainer(), iterations=700)
    assert plan.protocol["iterations"] == 700
    with pytest.raises(UsageError, match="recorded"):
        carried_out(lab, "aa", ["baseline", "baseline"], trainer(), iterations=700)


def test_until_decided_ends_at_the_largest_number_of_blocks_it_was_given(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate")
    arms = ["baseline", "candidate"]
    plan, _ = carried_out(lab, "ab", arms, trainer(0.1), until_decided=True, blocks=5, prime=False)
    assert done_blocks(plan.folder(lab)) == {0, 1, 2, 3, 4}
