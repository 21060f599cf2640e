"""Sessions: order, priming, resuming, verdicts, all without a clock."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from scripted_lab import add, carried_out, make_lab, option, trainer

from splatmeter.errors import MissingFile, OutputError, SplatmeterError, UsageError
from splatmeter.lab.executor import ChildProcess
from splatmeter.lab.judgement.gathering import arm_of
from splatmeter.lab.judgement.verdicts import judged, phase_verdict, state_of
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.result import RunEvaluation, preferred
from splatmeter.lab.record.run_folder import arrivals
from splatmeter.lab.samples.run_sample import Aspect
from splatmeter.lab.samples.verdict_kinds import VerdictKind
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session.blocks import attempts, done_blocks
from splatmeter.lab.session.session import Session
from splatmeter.lab.session.session_plan import Wishes


def test_an_ab_session_runs_each_arm_once_a_block_in_random_order(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate", "--speed", "110")
    executor = trainer()
    plan, beats = carried_out(lab, "ab", ["baseline", "candidate"], executor, blocks=6)
    assert len(executor.commands) == 2 + 12  # priming first
    orders = [tuple(arm.label for arm in plan.order(block)) for block in range(6)]
    assert {len(set(order)) for order in orders} == {2} and len(set(orders)) == 2
    assert [beat.block for beat in beats if beat.stage == "block done"] == list(range(6))
    assert done_blocks(plan.folder(lab)) == set(range(6))


def test_both_arms_of_a_block_have_the_same_seed_and_blocks_go_through_the_seeds(tmp_path: Path) -> None:
    lab = make_lab(tmp_path, seed=5, seeds=3)
    add(lab, "candidate")
    executor = trainer()
    carried_out(lab, "ab", ["baseline", "candidate"], executor, blocks=4, prime=False)
    seeds = [option(command, "--seed", -1) for command in executor.commands]
    assert seeds == [5, 5, 6, 6, 7, 7, 5, 5]


def test_a_faster_arm_is_found_and_repeating_it_verifies_it(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate", "--speed", "110")
    carried_out(lab, "ab", ["baseline", "candidate"], trainer(0.005), blocks=6)
    found = judged(lab, "baseline", "candidate")
    assert found.verdict.kind is VerdictKind.FASTER
    assert found.comparison.speed.main.ratio == pytest.approx(1.1, rel=0.02)
    assert phase_verdict(lab, lab.phases.get("candidate")) == found.verdict
    assert state_of(lab, lab.phases.get("candidate")) == "measured"
    carried_out(lab, "ab", ["baseline", "candidate"], trainer(0.005, seed=7), blocks=6)
    assert judged(lab, "baseline", "candidate").verdict.kind is VerdictKind.VERIFIED


def test_a_planted_slow_down_is_found(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate", "--speed", "97")
    carried_out(lab, "ab", ["baseline", "candidate"], trainer(0.005), blocks=10)
    assert judged(lab, "baseline", "candidate").verdict.kind is VerdictKind.SLOWER


def test_a_planted_loss_of_quality_is_found_however_fast(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate", "--speed", "200", "--psnr", "25.7")
    carried_out(lab, "ab", ["baseline", "candidate"], trainer(0.005), blocks=6)
    verdict = judged(lab, "baseline", "candidate").verdict
    assert verdict.kind is VerdictKind.QUALITY_LOST and verdict.exit_code == 1


def test_an_aa_gives_no_speed_up_and_the_noise_floor(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate", "--speed", "101")
    plan, _ = carried_out(lab, "aa", ["baseline", "baseline"], trainer(0.005), blocks=10)
    assert [arm.label for arm in plan.arms] == ["baseline#1", "baseline#2"]
    assert judged(lab, "baseline", "baseline").verdict.kind is VerdictKind.NO_SPEED_UP
    carried_out(lab, "ab", ["baseline", "candidate"], trainer(0.005, seed=2), blocks=6)
    assert judged(lab, "baseline", "candidate").comparison.noise is not None


def test_run_measures_against_parent_and_baseline_in_the_same_blocks(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "one", "--speed", "110")
    add(lab, "two", "--speed", "120", parent="one")
    carried_out(lab, "run", ["baseline", "one", "two"], trainer(0.003), blocks=6)
    assert judged(lab, "one", "two").comparison.speed.main.ratio == pytest.approx(120 / 110, rel=0.02)
    assert judged(lab, "baseline", "two").comparison.speed.main.ratio == pytest.approx(1.2, rel=0.02)


def test_until_decided_stops_when_it_is(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate", "--speed", "150")
    from splatmeter.lab.compare.verdict import may_stop
    from splatmeter.lab.judgement.comparisons import comparison

    plan, _ = carried_out(
        lab, "ab", ["baseline", "candidate"], trainer(0.005), until_decided=True,
        decided=lambda plan: may_stop(comparison(lab, "baseline", "candidate", plan.session)),
    )  # fmt: skip
    assert 5 <= len(done_blocks(plan.folder(lab))) <= 8


def test_a_failed_run_ends_the_session_stays_visible_and_is_tried_again(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate", "--fail-at", "150")
    with pytest.raises(SplatmeterError, match="ran out of luck"):
        carried_out(lab, "ab", ["baseline", "candidate"], trainer(), blocks=4, prime=False)
    index = Index(lab)
    assert [row["counted"] for row in index.rows("SELECT counted FROM runs WHERE status = 'failed'")] == [0]
    session = plans.unfinished(lab)[0]
    with pytest.raises(SplatmeterError):
        list(Session(lab, plans.load(lab, session), trainer()).beats())
    assert sorted(attempts(lab.sessions / session)) == [(0, 1), (0, 2)]
    verdict = phase_verdict(lab, lab.phases.get("candidate"))
    assert (
        verdict
        and verdict.kind is VerdictKind.QUESTIONABLE
        and "all of its 2 runs failed" in verdict.sentence
    )


def test_leaving_in_the_middle_loses_only_the_block_under_way(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "candidate")
    plan = plans.make(lab, "ab", ["baseline", "candidate"], Wishes(blocks=4, seed=1, prime=False))
    beats = Session(lab, plan, trainer()).beats()
    for beat in beats:
        if beat.block == 2 and beat.arrival is not None:
            break
    beats.close()  # type: ignore[attr-defined]
    assert done_blocks(plan.folder(lab)) == {0, 1}
    resumed = list(Session(lab, plans.load(lab, plan.session), trainer()).beats())
    assert {beat.block for beat in resumed} == {2, 3} and plans.unfinished(lab) == []


def test_editing_the_protocol_does_not_change_a_session_under_way(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    plan = plans.make(lab, "record", ["baseline"], Wishes())
    lab.protocol_file.write_text(lab.protocol_file.read_text().replace("seed = 0", "seed = 9"))
    executor = trainer()
    list(Session(lab, plans.load(lab, plan.session), executor).beats())
    assert option(executor.commands[0], "--seed", -1) == 0


def test_a_session_in_use_is_refused(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    plan = plans.make(lab, "record", ["baseline"], Wishes())
    first = Session(lab, plan, trainer()).beats()
    next(first)
    with pytest.raises(OutputError, match="in use"):
        next(Session(lab, plan, trainer()).beats())
    first.close()  # type: ignore[attr-defined]


def test_the_folder_of_a_run_is_the_evidence(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    plan, _ = carried_out(lab, "record", ["baseline"], trainer())
    folder = plan.folder(lab) / "blocks" / "000.1" / "0-baseline"
    assert {"command.json", "environment.json", "events.jsonl", "result.json"} <= {
        path.name for path in folder.iterdir()
    }
    result = json.loads((folder / "result.json").read_text())
    assert result["timing"]["steps"] == 150 and result["timing"]["steps_per_second"] == pytest.approx(100.0)
    assert result["memory"]["device"] == "not observable" and result["memory"]["total_peak_bytes"] is None
    assert len(arrivals(folder)) == 1 + 20 + 2 + 1
    with (folder / "events.jsonl").open("a") as file:
        file.write('{"seconds":1.0,"line":{"event":"prog')
    assert len(arrivals(folder)) == 24  # the line a kill cut off is left out
    with pytest.raises(MissingFile, match="lab ab"):
        judged(lab, "baseline", "baseline")


def test_too_few_blocks_and_slices_of_three_are_refused(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "one")
    add(lab, "two", parent="one")
    with pytest.raises(UsageError, match="at least 4"):
        plans.make(lab, "ab", ["baseline", "one"], Wishes(blocks=3))
    with pytest.raises(UsageError, match="two arms"):
        plans.make(lab, "run", ["baseline", "one", "two"], Wishes(slices=1.0))
    for name in ("../x", "", ".hidden"):
        with pytest.raises(UsageError):
            plans.load(lab, name)


def test_slices_alternate_two_living_processes_and_time_the_same_steps(tmp_path: Path) -> None:
    stand_in = str(Path(__file__).parent / "stand_in.py")
    words = (
        sys.executable,
        "-S",
        stand_in,
        "events",
        "--steps",
        "200",
        "--seconds",
        "0.0005",
        "--seed",
        "{seed}",
    )
    lab = make_lab(tmp_path, command=words, evaluate_at=0)
    plan = plans.make(lab, "aa", ["baseline", "baseline"], Wishes(blocks=4, seed=3, prime=False, slices=0.02))
    beats = Session(lab, plan, ChildProcess()).beats()
    assert next(beat for beat in beats if beat.stage == "block done")
    beats.close()  # type: ignore[attr-defined]
    record = json.loads((plan.folder(lab) / "blocks" / "000.1" / "slices.json").read_text())
    steps = {arm: [(s["first_step"], s["last_step"]) for s in record["slices"] if s["arm"] == arm] for arm in
             ("baseline#1", "baseline#2")}  # fmt: skip
    assert steps["baseline#1"] == steps["baseline#2"] and len(steps["baseline#1"]) >= 1
    assert all(piece["seconds"] > 0 for piece in record["slices"])
    results = [
        json.loads(p.read_text()) for p in (plan.folder(lab) / "blocks" / "000.1").glob("*/result.json")
    ]
    assert all(result["status"] == "finished" and result["peaks"] == [] for result in results)


def test_our_own_judgement_comes_before_what_a_trainer_printed() -> None:
    printed = RunEvaluation(10, "test", {"psnr": 1.0})
    ours = RunEvaluation(10, "test", {"psnr": 2.0}, judged_by="splatmeter eval")
    other = RunEvaluation(20, "test", {"psnr": 3.0})
    assert preferred([printed, ours, other]) == [ours, other] == preferred([ours, printed, other])


def test_another_program_declares_itself() -> None:
    plain = arm_of(Phase("a", options=("--lr", "1")), "a")
    assert plain.declares == frozenset() and plain.speed_only
    threads = arm_of(Phase("a", options=("--threads", "1"), changes=("quality",)), "a")
    assert threads.declares == {Aspect.ENVIRONMENT} and not threads.speed_only
    parent = Phase("p", revision="HEAD")
    another = {Aspect.ENVIRONMENT, Aspect.BACKEND, Aspect.CODE}
    assert arm_of(Phase("c", parent="p"), "c", [parent]).declares == another


def test_the_log_says_how_many_claims_chance_alone_explains(tmp_path: Path) -> None:
    from splatmeter.lab.log.log_contents import document

    lab = make_lab(tmp_path)
    add(lab, "candidate", "--speed", "110")
    assert not any("Chance" in note for note in document(lab).measurement_notes)
    for _ in range(2):
        carried_out(lab, "ab", ["baseline", "candidate"], trainer(0.005), blocks=4)
    note = next(note for note in document(lab).measurement_notes if "Chance" in note)
    assert "1 phase was measured in 2 sessions" in note and "up to 0.05 false 'faster'" in note
