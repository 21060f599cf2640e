"""A lab of 0.1.0: its evidence is whole, and gives the figures that it gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from splatmeter.cli.main import main
from splatmeter.lab.samples.verdict_kinds import VerdictKind


@pytest.fixture
def lab(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(kept)
    return kept / "lab"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["lab", *words]) == 0
    return capsys.readouterr().out


def test_every_run_counts_and_none_is_doubted(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = json.loads(said(capsys, "export"))["runs"]
    assert len(runs) == 8 and all(run["counted"] and run["status"] == "finished" for run in runs)
    assert "4/4" in said(capsys, "ls") and said(capsys, "rebuild")


def test_the_same_ratio_comes_out_of_the_same_evidence(
    lab: Path, capsys: pytest.CaptureFixture[str], figures: Any
) -> None:
    (found,) = json.loads(said(capsys, "compare", "baseline", "plain-loss", "--json"))
    told = figures["lab"]
    assert found["session"] == told["session"] and found["blocks"] == told["blocks"] == 4
    assert found["ratio"] == pytest.approx(told["ratio"], rel=1e-9)
    assert found["interval_95"] == pytest.approx(told["interval_95"], rel=1e-9)
    assert VerdictKind(found["verdict"])  # rules may become stricter, but the set of verdicts is closed


def test_log_report_and_a_persons_note(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "log")
    said(capsys, "report")
    log, report = (lab / "LOG.md").read_text("utf-8"), (lab / "report.html").read_text("utf-8")
    assert "A note." in log and "plain-loss" in log and "plain-loss" in report
    name = next((lab / "sessions").iterdir()).name
    assert name in said(capsys, "show", name)


def test_a_result_that_was_edited_is_still_found_out(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The kept evidence is judged as strictly as new one."""
    path = sorted(lab.glob("sessions/*/blocks/*/*/result.json"))[0]
    record = json.loads(path.read_text("utf-8"))
    record["timing"]["seconds"] /= 2
    path.write_text(json.dumps(record), "utf-8")
    runs = json.loads(said(capsys, "export"))["runs"]
    assert [run["run"] for run in runs if not run["counted"]] or len(runs) == 7
