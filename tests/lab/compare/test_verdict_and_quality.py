from __future__ import annotations

import dataclasses

import pytest

from splatmeter.lab.compare.assemble import Rules, compare
from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.metric import Quality, judge_metric
from splatmeter.lab.compare.noise import noise_floor, with_noise
from splatmeter.lab.compare.quality import compare_quality, suspicious_gains
from splatmeter.lab.compare.ratio import evidence
from splatmeter.lab.compare.sequential import evidence_so_far
from splatmeter.lab.compare.verdict import (
    declared,
    judge,
    may_stop,
    verify,
)
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import (
    Arm,
    Aspect,
    Evaluation,
    RunSample,
    SliceSample,
    Subject,
)
from splatmeter.lab.samples.verdict_kinds import VerdictKind

SAME_QUALITY = (judge_metric(("psnr", "test", 3100), [(26.0, 26.0)], True, 0.005),)
SUBJECT = Subject("p", ("x", "y"), (("a",), ("b",)))
CLEARLY_FASTER = [0.10, 0.11, 0.09, 0.10, 0.105, 0.095]


def comparison(differences: list[float], **changes) -> Comparison:
    plain = Comparison("parent", "candidate", evidence(differences), SAME_QUALITY)
    return dataclasses.replace(plain, **changes)


def psnr(before: list[float], after: list[float]):
    return judge_metric(("psnr", "test", 3100), list(zip(before, after, strict=True)), False, 0.005)


def test_a_clear_speed_up_with_equal_quality_is_faster() -> None:
    verdict = judge(comparison(CLEARLY_FASTER))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.FASTER, 0)
    assert "1.1052" in verdict.sentence and "6 blocks" in verdict.sentence


def test_a_clear_slow_down_is_slower() -> None:
    verdict = judge(comparison([-d for d in CLEARLY_FASTER]))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.SLOWER, 1)


def test_a_small_proved_difference_is_printed_as_below_the_tolerated_one() -> None:
    verdict = judge(comparison([0.010, 0.011, 0.009, 0.010, 0.0105]))
    assert verdict.kind is VerdictKind.FASTER and verdict.below_tolerated_difference
    assert "below the tolerated difference of 2 %" in verdict.sentence


def test_equal_within_the_tolerated_difference_is_a_finding_of_its_own() -> None:
    verdict = judge(comparison([0.004, -0.005, 0.003, -0.002, 0.001, -0.001]))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.NO_SPEED_UP, 0)


def test_noise_gives_undecided_with_the_number_of_missing_blocks() -> None:
    verdict = judge(comparison([0.06, -0.05, 0.08, -0.02, 0.05, -0.03]))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.UNDECIDED, 2)
    assert verdict.more_blocks is not None
    assert f"needs about {verdict.more_blocks} more blocks" in verdict.sentence
    command = f"`splatmeter lab ab parent candidate --blocks {6 + verdict.more_blocks}`"
    assert command in verdict.sentence, "advice that nobody can follow is none"


@pytest.mark.parametrize(("label", "word"), [("1", "aa"), ("unwatched", "overhead")])
def test_the_advice_for_an_a_a_is_another_a_a(label: str, word: str) -> None:
    unclear = comparison([0.06, -0.05, 0.08, -0.02], reference=f"p#{label}", candidate="p#2")
    assert f"`splatmeter lab {word} p --blocks" in judge(unclear).sentence


@pytest.mark.parametrize("sign", [1, -1])
def test_fewer_than_four_blocks_decide_nothing(sign: int) -> None:
    verdict = judge(comparison([sign * d for d in (0.100, 0.101, 0.1005)]))
    assert verdict.kind is VerdictKind.UNDECIDED and verdict.more_blocks == 1


def test_a_claim_must_be_larger_than_what_a_leaning_control_showed() -> None:
    control = noise_floor(evidence([0.030, 0.012, 0.021, 0.008, 0.026, 0.011]))
    assert control.leans and not control.failed
    for sign, kind in ((1, VerdictKind.FASTER), (-1, VerdictKind.SLOWER)):
        small = judge(comparison([sign * d for d in (0.024, 0.025, 0.023, 0.0245)], noise=control))
        assert small.kind is VerdictKind.UNDECIDED and "leaning A/A" in small.sentence
        large = judge(comparison([sign * d for d in CLEARLY_FASTER], noise=control))
        assert large.kind is kind and control.sentence in large.reasons


def test_a_control_that_does_not_lean_is_no_hurdle() -> None:
    control = noise_floor(evidence([0.04, -0.05, 0.03, -0.02, 0.045, -0.035]))
    assert control.floor > 0.03 and not control.leans
    assert judge(comparison([0.030, 0.031, 0.029, 0.0305], noise=control)).kind is VerdictKind.FASTER


def test_blocks_that_agree_by_luck_are_given_the_noise_of_the_control() -> None:
    lucky, control = (
        evidence([0.021, 0.016, 0.020, 0.024]),
        noise_floor(evidence([0.01, -0.008, 0.009, -0.01])),
    )
    widened = with_noise(lucky, control)
    assert widened.main.half_width > lucky.main.half_width and "A/A" in widened.main.method
    quieter = noise_floor(evidence([0.0001, -0.0001, 0.0002, -0.0001]))
    assert with_noise(lucky, quieter) == lucky, "an A/A never makes an interval narrower"
    another_day = noise_floor(evidence([0.2, -0.3, 0.3, -0.2]))
    assert with_noise(lucky, another_day) == lucky, "plainly another noise"
    assert with_noise(lucky, None) == lucky


def test_until_decided_takes_the_noise_of_the_control_too() -> None:
    lucky = evidence_so_far([0.021, 0.016, 0.020, 0.024, 0.019, 0.018])
    control = noise_floor(evidence([0.01, -0.008, 0.009, -0.01, 0.004, -0.006]))
    assert with_noise(lucky, control).main.half_width > lucky.main.half_width


def test_a_failed_control_makes_everything_questionable() -> None:
    failed = noise_floor(evidence([0.02, 0.021, 0.019, 0.02]))
    verdict = judge(comparison(CLEARLY_FASTER, noise=failed))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.QUESTIONABLE, 3)
    assert "excludes 1" in verdict.sentence


def test_an_audit_flag_wins_over_lost_quality_and_a_note_over_nothing() -> None:
    lost = psnr([26.0, 26.1, 25.9, 26.0], [25.5, 25.6, 25.4, 25.5])
    flag = Finding("leak", "Views leaked.", Severity.WRONG)
    note = Finding("note", "Counts differ as declared.", Severity.NOTE)
    assert (
        judge(comparison(CLEARLY_FASTER, findings=(flag,), quality=(lost,))).kind is VerdictKind.QUESTIONABLE
    )
    assert (
        judge(comparison(CLEARLY_FASTER, findings=(note,), quality=(lost,))).kind is VerdictKind.QUALITY_LOST
    )
    noted = judge(comparison(CLEARLY_FASTER, findings=(note,)))
    assert noted.kind is VerdictKind.FASTER and note.sentence in noted.reasons


def test_estimates_that_disagree_are_questionable() -> None:
    lopsided = [0.010 + 0.0001 * (i % 5) for i in range(40)] + [-0.05] * 9
    assert judge(comparison(lopsided)).kind is VerdictKind.QUESTIONABLE


def test_lost_quality_wins_over_slower() -> None:
    lost = psnr([26.0, 26.1, 25.9, 26.0], [25.5, 25.6, 25.4, 25.5])
    verdict = judge(comparison([-d for d in CLEARLY_FASTER], quality=(lost,)))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.QUALITY_LOST, 1)
    assert "PSNR" in verdict.sentence


def test_nobody_is_faster_whose_quality_was_not_compared() -> None:
    verdict = judge(comparison(CLEARLY_FASTER, quality=()))
    assert verdict.kind is VerdictKind.UNDECIDED and "quality was not compared" in verdict.sentence


def test_unsettled_quality_keeps_a_speed_up_undecided() -> None:
    unsettled = psnr([26.0, 26.0, 26.0, 26.0], [25.7, 26.2, 25.6, 26.1])
    assert unsettled.quality is Quality.UNDECIDED
    verdict = judge(comparison(CLEARLY_FASTER, quality=(unsettled,)))
    assert verdict.kind is VerdictKind.UNDECIDED and "PSNR" in verdict.sentence
    assert verdict.more_seeds is not None and verdict.more_blocks is None
    command = f"`splatmeter lab quality candidate --against parent --pairs {verdict.more_seeds}`"
    assert command in verdict.sentence


def test_too_few_seeds_ask_for_the_missing_ones() -> None:
    verdict = judge(comparison(CLEARLY_FASTER, quality=(psnr([26.0, 26.1], [26.0, 26.1]),)))
    assert verdict.kind is VerdictKind.UNDECIDED and verdict.more_seeds == 2


def test_a_repetition_is_verified_when_it_is_independent_later_and_agrees() -> None:
    first = comparison(CLEARLY_FASTER, runs=("a1", "b1"), sequence=1, subject=SUBJECT)
    second = comparison([d + 0.002 for d in CLEARLY_FASTER], runs=("a2", "b2"), sequence=2, subject=SUBJECT)
    assert verify(first, second).kind is VerdictKind.VERIFIED
    assert verify(first, second).exit_code == 0
    for spoiled in (
        dataclasses.replace(second, runs=("a1", "b2")),
        dataclasses.replace(second, sequence=1),
        dataclasses.replace(second, subject=dataclasses.replace(SUBJECT, code=(("a",), ("c",)))),
        dataclasses.replace(second, subject=dataclasses.replace(SUBJECT, code=(("a",), ("b", "c")))),
        dataclasses.replace(second, subject=dataclasses.replace(SUBJECT, code=(("a",), ("",)))),
        dataclasses.replace(second, subject=dataclasses.replace(SUBJECT, definitions=("x", "z"))),
        dataclasses.replace(second, subject=dataclasses.replace(SUBJECT, protocol="q")),
        dataclasses.replace(second, speed=evidence([d + 0.5 for d in CLEARLY_FASTER])),
        dataclasses.replace(second, candidate="another"),
    ):
        verdict = verify(first, spoiled)
        assert verdict.kind is VerdictKind.FASTER
        assert verdict.reasons[-1].startswith("Not verified")


def test_a_repetition_that_fails_keeps_its_own_verdict() -> None:
    first = comparison(CLEARLY_FASTER, runs=("a1",), sequence=1, subject=SUBJECT)
    second = comparison([-d for d in CLEARLY_FASTER], runs=("a2",), sequence=2, subject=SUBJECT)
    assert verify(first, second).kind is VerdictKind.SLOWER


def test_planned_and_on_hold_are_declared_with_a_reason() -> None:
    assert declared(VerdictKind.ON_HOLD, "Phase 2d removed the spike").exit_code == 2
    assert declared(VerdictKind.PLANNED, "next week.").sentence == "Planned: next week."
    with pytest.raises(ValueError, match="reason"):
        declared(VerdictKind.PLANNED, " ")
    with pytest.raises(ValueError, match="measured"):
        declared(VerdictKind.FASTER, "I feel it")


def test_an_experiment_until_decided_stops_on_a_verdict_only() -> None:
    early = dataclasses.replace(comparison(CLEARLY_FASTER), speed=evidence_so_far(CLEARLY_FASTER[:4]))
    late = dataclasses.replace(early, speed=evidence_so_far(CLEARLY_FASTER))
    assert not may_stop(early) and "no interval yet" in judge(early).sentence
    assert may_stop(late) and judge(late).kind is VerdictKind.FASTER


# Quality


def test_higher_is_better_for_psnr_and_lower_is_better_for_lpips() -> None:
    assert psnr([25.0] * 4, [26.0] * 4).gain == pytest.approx(0.04)
    lpips = judge_metric(("lpips", "test", 1), [(0.20, 0.21)] * 4, False, 0.005)
    assert lpips.gain == pytest.approx(-0.05) and lpips.quality is Quality.LOST


def test_one_seed_cannot_settle_quality_unless_the_models_are_bit_identical() -> None:
    assert judge_metric(("ssim", "test", 1), [(0.79, 0.79)], False, 0.005).quality is Quality.UNDECIDED
    assert judge_metric(("ssim", "test", 1), [(0.79, 0.79)], True, 0.005).quality is Quality.IDENTICAL


def test_a_loss_within_the_tolerance_is_non_inferior() -> None:
    result = psnr([26.0, 26.1, 25.9, 26.0], [25.97, 26.08, 25.86, 25.97])
    assert result.quality is Quality.NON_INFERIOR and "held" in result.sentence


def test_not_a_number_is_a_loss() -> None:
    assert psnr([26.0] * 4, [26.0, 26.0, 26.0, float("nan")]).quality is Quality.LOST


def run(arm: Arm, block: int, seconds: float, value: float, **changes) -> RunSample:
    plain = RunSample(
        arm, block, 0, seconds, 950, 1000, 1000, seed=block, first_step=3000, last_step=4000,
        evaluations=(Evaluation(3100, "test", {"psnr": value, "l1": 0.9 / value}),),
        train_images=("a", "b"), test_images=("c",),
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


PARENT, CANDIDATE = Arm("parent"), Arm("candidate")


def blocks(count: int, **changes) -> list[RunSample]:
    arm = changes.pop("arm", CANDIDATE)
    runs = []
    for k in range(count):
        wobble = 0.001 * (k % 3)
        runs.append(run(PARENT, k, 10 + wobble, 26 + 0.01 * k))
        runs.append(run(arm, k, 9 - wobble, 26.004 + 0.01 * k, **changes))
    return runs


def test_a_metric_that_the_candidate_lacks_is_not_overlooked() -> None:
    runs = blocks(6, evaluations=(Evaluation(3100, "test", {"l1": 0.03}),))
    runs = [dataclasses.replace(r, model_sha256=str(i)) for i, r in enumerate(runs)]
    missing = [r for r in compare_quality(runs, "parent", "candidate") if r.metric == "psnr"]
    assert [r.quality for r in missing] == [Quality.UNDECIDED] and "has no value" in missing[0].sentence
    verdict = judge(comparison(CLEARLY_FASTER, quality=tuple(missing)))
    assert verdict.kind is VerdictKind.UNDECIDED and verdict.more_blocks is None


def test_repeating_one_seed_adds_no_evidence_on_quality() -> None:
    repeated = [dataclasses.replace(r, seed=1) for r in blocks(6)]
    assert {r.seeds for r in compare_quality(repeated, "parent", "candidate")} == {1}
    assert {r.seeds for r in compare_quality(blocks(6), "parent", "candidate")} == {6}


def test_identical_model_hashes_settle_quality_at_once() -> None:
    same = [
        dataclasses.replace(r, seed=1, model_sha256="f" * 64, evaluations=blocks(1)[0].evaluations)
        for r in blocks(4)
    ]
    assert {r.quality for r in compare_quality(same, "parent", "candidate")} == {Quality.IDENTICAL}


def test_a_gain_from_a_change_declared_as_speed_only_is_flagged() -> None:
    gained = [psnr([26.0, 26.1, 25.9, 26.0], [26.5, 26.6, 26.4, 26.5])]
    findings = suspicious_gains(gained, CANDIDATE)
    assert len(findings) == 1 and "changes more than speed" in findings[0].sentence
    assert suspicious_gains(gained, Arm("candidate", speed_only=False)) == []


def test_runs_become_a_verdict_in_one_call() -> None:
    result = compare(blocks(6), "parent", "candidate")
    assert judge(result).kind is VerdictKind.FASTER
    assert len(result.runs) == 12


def test_a_planted_loss_of_one_percent_fails_the_gate() -> None:
    """Seeds spread by 0.1 dB, as on garden; the loss is the same for each."""
    runs = [run(PARENT, k, 10 + 0.001 * (k % 3), 26 + 0.03 * k) for k in range(6)]
    runs += [run(CANDIDATE, k, 9.0, 0.99 * (26 + 0.03 * k) + 0.01 * (k % 2)) for k in range(6)]
    verdict = judge(compare(runs, "parent", "candidate"))
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.QUALITY_LOST, 1)


def test_parent_and_baseline_are_compared_from_the_same_blocks() -> None:
    third = [run(Arm("baseline"), k, 20 + 0.001 * k, 26 + 0.01 * k) for k in range(6)]
    runs = [*blocks(6), *third]
    assert compare(runs, "parent", "candidate").speed.main.ratio == pytest.approx(10 / 9, rel=1e-3)
    assert compare(runs, "baseline", "candidate").speed.main.ratio == pytest.approx(20 / 9, rel=1e-3)


def test_a_declared_change_of_the_split_forbids_a_comparison_of_quality() -> None:
    arm = Arm("candidate", declares=frozenset({Aspect.SPLIT}))
    runs = blocks(6, arm=arm, train_images=("a",), test_images=("b", "c"))
    result = compare(runs, "parent", "candidate")
    assert result.quality == () and judge(result).kind is VerdictKind.UNDECIDED


def test_an_undeclared_change_of_the_split_is_questionable() -> None:
    runs = blocks(6, train_images=("a",), test_images=("b", "c"))
    assert judge(compare(runs, "parent", "candidate")).kind is VerdictKind.QUESTIONABLE


def test_slices_give_the_speed_where_there_are_any() -> None:
    slices = [
        SliceSample(arm, k, i, 100 * i, 100 * i + 100, (1 + i) * factor * (1 + 0.001 * k))
        for k in range(6)
        for i in range(5)
        for arm, factor in (("parent", 2.0), ("candidate", 1.0))
    ]
    assert compare(blocks(6), "parent", "candidate", slices=slices).speed.main.ratio == pytest.approx(2.0)


def test_until_decided_uses_the_wider_interval() -> None:
    fixed = compare(blocks(6), "parent", "candidate").speed.main
    peeked = compare(blocks(6), "parent", "candidate", Rules(until_decided=True)).speed.main
    assert peeked.half_width > fixed.half_width


def test_an_arm_is_not_compared_with_itself_under_one_name() -> None:
    with pytest.raises(ValueError, match="another name"):
        compare(blocks(4), "parent", "parent")
