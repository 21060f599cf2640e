"""What the audit is told about a run: what it holds, on what, and how it went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_lab import add, carried_out, make_lab, trainer

from splatmeter.lab.audit.memory_figures import below_the_floor
from splatmeter.lab.judgement.gathering import to_sample
from splatmeter.lab.log import write_log
from splatmeter.lab.log.log_contents import document
from splatmeter.lab.record.result import result_from
from splatmeter.lab.report import report_contents as report
from splatmeter.lab.samples.run_sample import Arm, RunSample
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session.stage_peaks import memory_record
from splatmeter.lab.trainers.choose import Listening, adapter


def sampled(tmp_path: Path, trained_by: str, backend: str = "native", **facts: Any) -> RunSample:
    lab = make_lab(tmp_path, trainer=trained_by, scene="garden")
    plan = plans.make(lab, "record", ["baseline"], plans.Wishes())
    identity = {"arm": "baseline", "phase": "baseline", "block": 0, "place": 0, "seed": 0, "machine": "m"}
    result: dict[str, Any] = {
        "identity": identity, "timing": {"seconds": 10.0, "steps": 100}, "last_step": 200, "rates": [],
        "evaluations": [], "gaussians_start": 10**6, "gaussians_end": 10**6,
        "started": {"environment": {"backend": backend}}, **facts,
    }  # fmt: skip
    return to_sample("run", result_from(result), Arm("baseline"), plan)


PEAK: dict[str, Any] = {"peaks": [{"stage": "training", "process_bytes": 800_000_000}]}


def test_our_fused_step_is_not_asked_for_gradients_and_its_torch_twin_is(tmp_path: Path) -> None:
    """800 MB for a million Gaussians: more than 708 B each, less than 944 B."""
    fused = sampled(tmp_path / "a", "splatmeter", **PEAK)
    unfused = sampled(tmp_path / "b", "splatmeter", backend="reference", **PEAK)
    assert not fused.holds_gradients and below_the_floor(fused) == []
    assert unfused.holds_gradients and len(below_the_floor(unfused)) == 1


def test_what_a_run_tells_of_its_engine_counts_more_than_its_trainers_name(tmp_path: Path) -> None:
    told = {
        "backend": "new",
        "backend_device": "cuda:0",
        "backend_deterministic": False,
        "backend_fused": True,
    }
    run = sampled(tmp_path / "a", "splatmeter", started={"environment": told}, **PEAK)
    assert run.on_a_card and not run.deterministic and not run.holds_gradients
    assert run.peaks == ()  # memory of the host says nothing about a card
    older = sampled(tmp_path / "b", "splatmeter", **PEAK)
    assert older.deterministic and not older.on_a_card and len(older.peaks) == 1
    odd = {"backend": "new", "backend_deterministic": "yes", "backend_device": None}
    assert not sampled(tmp_path / "c", "events", started={"environment": odd}).deterministic


def test_photos_card_and_retries_of_a_trainer_on_a_card_reach_the_audit(tmp_path: Path) -> None:
    run = sampled(
        tmp_path, "mip-splatting", image_bytes_held=7_400_000_000, card_bytes=16 << 30, allocator_retries=3,
        memory={"device_peak_bytes": 1_870_000_000}, **PEAK,
    )  # fmt: skip
    assert (run.image_bytes_held, run.card_bytes, run.allocator_retries) == (7_400_000_000, 16 << 30, 3)
    assert run.on_a_card and [peak.device_bytes for peak in run.peaks] == [1_870_000_000]
    (finding,) = below_the_floor(run)
    assert "1.87 GB" in finding.sentence and "photos 7.40 GB" in finding.sentence


def test_an_older_result_without_these_facts_accuses_nobody(tmp_path: Path) -> None:
    run = sampled(tmp_path, "gsplat")
    assert (run.image_bytes_held, run.card_bytes, run.allocator_retries, run.peaks) == (0, None, 0, ())


def test_a_script_may_tell_the_allocators_retries() -> None:
    listener = adapter("fork", Listening())
    mark = '{"memory": {"stage": "training", "allocated": 5, "reserved": 6, "retries": 2}}'
    list(listener.line("stdout", f":::SPLATMETER {mark}", 0.0))
    (finished,) = listener.end(0, 1.0)
    record = memory_record([], None, None, finished.peak_memory_bytes, stages=True)  # type: ignore[union-attr]
    assert record["allocator_retries"] == 2
    assert [(peak.stage, peak.reserved_bytes) for peak in record["peaks"]] == [("training", 6)]


def test_the_log_names_the_machine_and_hides_where_the_scene_lies(tmp_path: Path) -> None:
    lab = make_lab(tmp_path, scene=str(tmp_path / "somewhere" / "garden"))
    add(lab, "candidate")
    carried_out(lab, "ab", ["baseline", "candidate"], trainer(), blocks=4, prime=False)
    text = write_log(document(lab))
    assert "- Dataset: garden\n" in text and "- Hardware: " in text and str(tmp_path) not in text


def test_a_report_says_how_many_runs_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate")
    carried_out(lab, "ab", ["baseline", "candidate"], trainer(), blocks=4, prime=False)
    assert not any("newest" in note for note in report.report(lab, tmp_path).notes)
    monkeypatch.setattr(report, "MOST_RUNS", 5)
    shown = report.report(lab, tmp_path)
    assert len(shown.runs) == 5 and any("newest 5 of 8 runs" in note for note in shown.notes)
