"""Several machines: each a stratum, pooled where they agree, told apart where they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripted_lab import carried_out, trainer
from several_machines import lab_on, measured, pretend

from splatmeter.lab.judgement.verdicts import Judgements, judged
from splatmeter.lab.log import write_log
from splatmeter.lab.log.log_contents import document
from splatmeter.lab.report.ratios import ratio_rows
from splatmeter.lab.samples.verdict_kinds import VerdictKind

ONE, OTHER = "aaaa11112222", "bbbb33334444"


def alternately(monkeypatch: pytest.MonkeyPatch):
    return lambda block: pretend(monkeypatch, (ONE, OTHER)[block % 2])


def test_machines_that_agree_are_pooled_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_on(tmp_path / "lab")
    measured(lab, alternately(monkeypatch), blocks=8)
    found = judged(lab, "baseline", "candidate")
    assert found.verdict.kind is VerdictKind.FASTER
    assert "on 2 machines that agree" in found.verdict.sentence
    assert [part.speed.main.blocks for part in found.comparison.machines] == [4, 4]
    assert found.comparison.speed.main.blocks == 8
    text = write_log(document(lab), "")
    assert "On machine aaaa against baseline" in text and "Machine bbbb33334444" in text
    assert len(ratio_rows(Judgements(lab))[0].machines) == 2


def test_machines_that_disagree_are_never_pooled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as fast on one machine, as fast on the other: the mean is a ratio that no machine has."""
    lab = lab_on(tmp_path / "lab", "100")
    plan = measured(lab, alternately(monkeypatch), blocks=8)
    for path in plan.folder(lab).glob("blocks/*/*-candidate"):
        if json.loads((path / "result.json").read_text())["identity"]["machine"] == ONE:
            twice_as_fast(path)
    found = judged(lab, "baseline", "candidate")
    assert found.verdict.kind is VerdictKind.UNDECIDED
    assert "disagree" in found.verdict.sentence and "on machine aaaa" in found.verdict.sentence
    assert found.comparison.speed.main.blocks == 0  # nobody can quote a ratio that there is not
    assert [row.label for row in ratio_rows(Judgements(lab))] == ["machine aaaa", "machine bbbb"]
    assert "has no ratio" in write_log(document(lab), "") or "disagree" in write_log(document(lab), "")


def twice_as_fast(folder: Path) -> None:
    """Evidence and result together, as if that machine had run it so."""
    events = folder / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    for line in lines:
        line["seconds"] /= 2
        if "clock_seconds" in line["line"]:
            line["line"]["clock_seconds"] /= 2
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    from splatmeter.lab.record.result import Window
    from splatmeter.lab.record.run_folder import arrivals
    from splatmeter.lab.record.summary import summarize

    result = json.loads((folder / "result.json").read_text())
    again = summarize(arrivals(folder), Window(**result["window"])).to_record()
    kept = ("timing", "clock_at", "rates", "first_iteration_seconds")
    result |= {key: again[key] for key in kept if key in again}
    (folder / "result.json").write_text(json.dumps(result))


def test_faster_on_every_machine_by_different_amounts_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_on(tmp_path / "lab")
    plan = measured(lab, alternately(monkeypatch), blocks=8)
    for path in plan.folder(lab).glob("blocks/*/*-candidate"):
        if json.loads((path / "result.json").read_text())["identity"]["machine"] == ONE:
            twice_as_fast(path)
    found = judged(lab, "baseline", "candidate").verdict
    assert found.kind is VerdictKind.FASTER
    assert "on each of 2 machines, which do not share one" in found.sentence


def test_a_machine_with_too_few_blocks_keeps_all_of_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_on(tmp_path / "lab")
    measured(lab, lambda block: pretend(monkeypatch, OTHER if block == 5 else ONE), blocks=6)
    found = judged(lab, "baseline", "candidate").verdict
    assert found.kind is VerdictKind.UNDECIDED and "too few to tell" in found.sentence


def test_two_hosts_of_one_name_and_kind_are_two_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_on(tmp_path / "lab")
    measured(lab, lambda block: pretend(monkeypatch, ONE, ("h1", "h2")[block % 2]), blocks=8)
    assert len(judged(lab, "baseline", "candidate").comparison.machines) == 2


def test_a_block_of_which_half_ran_elsewhere_is_left_out_and_questions_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_on(tmp_path / "lab")
    plan = measured(lab, lambda block: pretend(monkeypatch, ONE), blocks=6)
    for name in ("result.json", "environment.json"):
        path = next(plan.folder(lab).glob(f"blocks/002.1/*-candidate/{name}"))
        path.write_text(path.read_text().replace(ONE, OTHER))
    found = judged(lab, "baseline", "candidate")
    assert found.verdict.kind is VerdictKind.QUESTIONABLE and "Block 3" in found.verdict.sentence
    assert found.comparison.speed.main.blocks == 5


@pytest.mark.parametrize("field", ["boot", "job"])
def test_so_is_one_with_a_restart_or_another_job_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    lab = lab_on(tmp_path / "lab")
    plan = measured(lab, lambda block: pretend(monkeypatch, ONE), blocks=6)
    path = next(plan.folder(lab).glob("blocks/002.1/*-candidate/result.json"))
    record = json.loads(path.read_text())
    record["identity"][field] = "another"
    path.write_text(json.dumps(record))
    assert judged(lab, "baseline", "candidate").verdict.kind is VerdictKind.QUESTIONABLE


def test_a_result_that_claims_another_machine_than_it_began_on_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_on(tmp_path / "lab")
    plan = measured(lab, lambda block: pretend(monkeypatch, ONE), blocks=6)
    for path in plan.folder(lab).glob("blocks/002.1/*/result.json"):
        path.write_text(path.read_text().replace(ONE, OTHER))
    verdict = judged(lab, "baseline", "candidate").verdict
    assert verdict.kind is VerdictKind.QUESTIONABLE and "began on" in " ".join(verdict.reasons)


def test_an_a_a_speaks_for_the_machine_it_ran_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_on(tmp_path / "lab")
    pretend(monkeypatch, OTHER)
    carried_out(lab, "aa", ["baseline", "baseline"], trainer(0.005), blocks=6, prime=False)
    measured(lab, lambda block: pretend(monkeypatch, ONE), blocks=6)
    assert judged(lab, "baseline", "candidate").comparison.noise is None
    measured(lab, alternately(monkeypatch), blocks=8, seed=3)
    parts = judged(lab, "baseline", "candidate").comparison.machines
    assert [part.noise is not None for part in parts] == [False, True]


def test_a_repetition_on_other_machines_verifies_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_on(tmp_path / "lab")
    measured(lab, alternately(monkeypatch), blocks=8)
    measured(lab, alternately(monkeypatch), blocks=8, seed=5)
    assert judged(lab, "baseline", "candidate").verdict.kind is VerdictKind.VERIFIED
    third = measured(lab, lambda block: pretend(monkeypatch, (ONE, "cccc")[block % 2]), blocks=8, seed=7)
    found = judged(lab, "baseline", "candidate")
    assert found.session == third.session and found.verdict.kind is VerdictKind.FASTER
    assert "not measured on the same machines" in " ".join(found.verdict.reasons)


def test_a_late_attempt_at_a_block_that_is_done_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was thought dead comes back and finishes its block a second time."""
    import shutil

    lab = lab_on(tmp_path / "lab")
    plan = measured(lab, lambda block: pretend(monkeypatch, ONE), blocks=6)
    blocks = plan.folder(lab) / "blocks"
    shutil.copytree(blocks / "002.1", blocks / "002.2")
    for path in (blocks / "002.2").glob("*/result.json"):
        path.write_text(path.read_text().replace('"attempt": 1', '"attempt": 2'))
    found = judged(lab, "baseline", "candidate").comparison
    assert found.speed.main.blocks == 6 and not any(".2/" in run for run in found.runs)
