from __future__ import annotations

import dataclasses
import random

import pytest

from splatmeter.lab.audit import audit
from splatmeter.lab.audit.hidden_time import hidden_time
from splatmeter.lab.audit.metrics import printed_and_computed
from splatmeter.lab.audit.speed import collapse
from splatmeter.lab.audit.untold_memory import untold_memory
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.memory_floor import (
    floats_per_gaussian,
    held_bytes_per_gaussian,
    step_bytes_per_gaussian,
)
from splatmeter.lab.samples.run_sample import (
    Arm,
    Aspect,
    Clocks,
    Evaluation,
    RatePoint,
    RunSample,
    StagePeak,
)

GB = 10**9
PARENT, CANDIDATE = Arm("parent"), Arm("candidate")


def run(arm: Arm = PARENT, **changes) -> RunSample:
    plain = RunSample(
        arm, 0, 0, 90.0, 950, 1_000_000, 1_000_000, first_step=3000, last_step=4000,
        scene="garden", resolution="-r 4", train_images=("b", "c", "d"), test_images=("a",),
        ancestor_images=("b", "c"),
        start_sha256="1" * 64, backend="native", machine="two cores", environment={"compiler": "gcc 13"},
        evaluations=(Evaluation(3100, "test", {"psnr": 26.01, "l1": 0.035384}),),
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def pair(**changes) -> list[RunSample]:
    """Two arms that are fine, but for the changes to the candidate."""
    better = (Evaluation(3100, "test", {"psnr": 26.02, "l1": 0.035311}),)
    arm = changes.pop("arm", CANDIDATE)
    return [run(), run(arm, **{"evaluations": better, **changes})]


def kinds(findings: list[Finding]) -> list[str]:
    return [finding.kind for finding in findings]


def test_two_clean_arms_raise_no_objection() -> None:
    assert audit(pair()) == []


def test_no_runs_raise_no_objection() -> None:
    assert audit([]) == []


# Memory


def test_the_floor_is_59_floats_and_708_or_944_bytes_a_gaussian() -> None:
    assert (floats_per_gaussian(), held_bytes_per_gaussian(), step_bytes_per_gaussian()) == (59, 708, 944)


def peaked(**peak) -> list[RunSample]:
    return pair(
        gaussians_start=1_811_372,
        gaussians_end=1_811_372,
        arm=Arm("candidate", frozenset({Aspect.GAUSSIANS})),
        peaks=(StagePeak("training", **peak),),
    )


def only(findings: list[Finding], kind: str) -> Finding:
    found = [finding for finding in findings if finding.kind == kind]
    assert len(found) == 1, findings
    return found[0]


def test_a_peak_below_what_training_must_hold_is_shown_with_its_sum() -> None:
    finding = only(audit(peaked(allocated_bytes=int(1.6 * GB))), "memory below the floor")
    assert "1,811,372 Gaussians × 944 B = 1.71 GB" in finding.sentence
    assert finding.severity is Severity.WRONG


def test_a_believable_peak_raises_no_objection() -> None:
    assert "memory below the floor" not in kinds(audit(peaked(allocated_bytes=int(1.8 * GB))))


def test_held_photos_raise_the_floor() -> None:
    runs = [
        dataclasses.replace(r, image_bytes_held=7_376_000_000) for r in peaked(allocated_bytes=int(1.87 * GB))
    ]
    sentence = only(audit(runs), "memory below the floor").sentence
    assert "photos 7.38 GB" in sentence and "9.09 GB" in sentence


def test_a_fused_step_need_not_hold_all_gradients() -> None:
    runs = [dataclasses.replace(r, holds_gradients=False) for r in peaked(process_bytes=int(1.5 * GB))]
    assert "memory below the floor" not in kinds(audit(runs))


def test_ordinary_memory_says_nothing_about_gaussians_on_a_card() -> None:
    runs = peaked(process_bytes=1 * GB, allocated_bytes=2 * GB)
    assert "memory below the floor" not in kinds(audit(runs))


@pytest.mark.parametrize(
    ("peak", "words"),
    [
        ({"taken_after_stage": True}, "after evaluation had ended"),
        ({"samples": 1}, "1 samples"),
        (
            {"samples": 9, "stage_seconds": 2.0, "sampler_seconds": 5.0},
            "every 5 s of a stage that lasted 2 s",
        ),
    ],
)
def test_peaks_that_nobody_could_have_seen_are_doubted(peak: dict, words: str) -> None:
    runs = pair(peaks=(StagePeak("evaluation", process_bytes=GB, **peak),))
    assert words in only(audit(runs), "doubtful evaluation peak").sentence


def test_a_high_water_mark_is_not_doubted_for_lack_of_samples() -> None:
    assert audit(pair(peaks=(StagePeak("evaluation", process_bytes=GB, stage_seconds=0.1),))) == []


@pytest.mark.parametrize(
    ("peak", "words"),
    [
        ({"allocated_bytes": 3 * GB, "reserved_bytes": 2 * GB}, "less than the allocated"),
        ({"device_bytes": 2 * GB, "reserved_bytes": 3 * GB}, "less than the reserved"),
        ({"device_bytes": 2**64 - 1}, "2^63"),
        ({"device_bytes": 40 * GB}, "more than twice the card"),
    ],
)
def test_impossible_values_are_wrong(peak: dict, words: str) -> None:
    runs = pair(peaks=(StagePeak("evaluation", **peak),), card_bytes=16 * GB)
    assert words in only(audit(runs), "impossible memory value").sentence


# Arms


@pytest.mark.parametrize(
    ("aspect", "changes", "words"),
    [
        (Aspect.SCENE, {"scene": "bicycle"}, "garden against bicycle"),
        (Aspect.RESOLUTION, {"resolution": "-r 2"}, "-r 4 against -r 2"),
        (Aspect.SEED, {"seed": 5}, "0 against 5"),
        (Aspect.ITERATIONS, {"last_step": 30_000}, "3000→4000 against 3000→30000"),
        (Aspect.START, {"start_sha256": "2" * 64}, "in start"),
        (Aspect.BACKEND, {"backend": "reference"}, "native against reference"),
        (Aspect.MACHINE, {"machine": "another"}, "two cores against another"),
        (Aspect.ENVIRONMENT, {"environment": {"compiler": "clang"}}, "compiler gcc 13 against clang"),
    ],
)
def test_an_undeclared_difference_is_told_and_a_declared_one_is_not(
    aspect: Aspect, changes: dict, words: str
) -> None:
    finding = only(audit(pair(**changes)), "undeclared difference")
    assert words in finding.sentence and f"in {aspect.value}:" in finding.sentence
    assert audit(pair(arm=Arm("candidate", frozenset({aspect})), **changes)) == []


def test_a_few_timed_steps_more_are_no_other_iterations() -> None:
    assert audit(pair(timed_steps=947)) == []


def test_other_images_and_another_split_are_told_apart() -> None:
    moved = audit(pair(train_images=("a", "b", "c"), test_images=("d",)))
    assert [f.sentence for f in moved if "in images" in f.sentence] == []
    assert any("in split: 3 train + 1 test views against 3 train + 1 test views" in f.sentence for f in moved)
    added = audit(pair(train_images=("b", "c", "d", "e")))
    assert any("4 images against 5, 1 of them in only one arm" in f.sentence for f in added)


def test_a_declared_split_is_noted_as_forbidding_quality() -> None:
    arm = Arm("candidate", frozenset({Aspect.SPLIT}))
    finding = only(audit(pair(arm=arm, train_images=("a", "b", "c"), test_images=("d",))), "declared split")
    assert finding.severity is Severity.NOTE and "forbids" in finding.sentence


def test_unknown_facts_accuse_nobody() -> None:
    found = audit(pair(machine="", backend="", environment={}, train_images=(), test_images=()))
    assert kinds(found) == ["unchecked views"] and not found[0].questions_the_verdict


def test_runs_of_one_arm_must_agree_among_themselves() -> None:
    runs = [*pair(), dataclasses.replace(pair()[1], block=1, seed=1, machine="another")]
    sentences = [finding.sentence for finding in audit(runs)]
    assert any("differ among themselves in machine" in sentence for sentence in sentences)


def test_another_count_gives_gaussian_iterations_per_second() -> None:
    undeclared = only(audit(pair(gaussians_end=1_200_000)), "undeclared difference")
    assert "20.0 % apart" in undeclared.sentence and "(+10.0 %)" in undeclared.sentence
    declared = audit(pair(gaussians_end=1_200_000, arm=Arm("candidate", frozenset({Aspect.GAUSSIANS}))))
    assert only(declared, "declared count").severity is Severity.NOTE
    assert audit(pair(gaussians_end=1_009_000)) == []


# Views and metrics


def test_test_views_that_trained_an_ancestor_are_leaked() -> None:
    finding = only(audit(pair(ancestor_images=("a", "b", "c", "d"))), "leaked test views")
    assert "1 of the 1 test views" in finding.sentence and "first: a" in finding.sentence


def test_test_views_that_trained_the_run_itself_are_leaked() -> None:
    assert "the run itself" in only(audit([run(train_images=("a", "b"))]), "leaked test views").sentence


def test_an_ancestor_that_held_the_same_views_out_leaks_nothing() -> None:
    assert audit(pair(ancestor_images=("b", "c", "d"))) == []


def test_views_that_were_never_judged_leak_nothing() -> None:
    assert audit([run(ancestor_images=("a",), evaluations=())]) == []


def test_metrics_equal_to_the_last_digit_are_doubted_when_losses_differ() -> None:
    runs = pair(evaluations=run().evaluations, loss=0.0559)
    runs[0] = dataclasses.replace(runs[0], loss=0.0558)
    assert "losses differ (0.0558, 0.0559)" in only(audit(runs), "identical metrics").sentence


def test_metrics_equal_before_deterministic_arms_begin_to_differ_are_right() -> None:
    """Pruning that first happens after the evaluation at 3100 leaves it as it was, to the last bit."""
    runs = pair(evaluations=run().evaluations, loss=0.0559, deterministic=True)
    runs[0] = dataclasses.replace(runs[0], loss=0.0558, deterministic=True)
    assert audit(runs) == []
    at_the_end = (Evaluation(4000, "test", {"psnr": 26.01, "l1": 0.035384}),)
    ended = [dataclasses.replace(item, evaluations=at_the_end) for item in runs]
    assert "losses differ" in only(audit(ended), "identical metrics").sentence


def test_metrics_equal_to_the_last_digit_are_right_for_one_model() -> None:
    same = (Evaluation(3100, "test", {"psnr": 26.01, "l1": 0.035384}, model_sha256="9" * 64),)
    assert audit([run(evaluations=same), run(CANDIDATE, evaluations=same)]) == []


def test_metrics_that_differ_for_one_model_are_wrong() -> None:
    first = (Evaluation(3100, "test", {"psnr": 26.01}, model_sha256="9" * 64),)
    second = (Evaluation(3100, "test", {"psnr": 26.02}, model_sha256="9" * 64),)
    findings = audit([run(evaluations=first), run(CANDIDATE, evaluations=second)])
    assert only(findings, "different metrics").severity is Severity.WRONG


def test_a_deterministic_run_that_ends_in_two_models_is_doubted() -> None:
    runs = [run(deterministic=True, model_sha256=c * 64, block=i) for i, c in enumerate("ab")]
    runs = [dataclasses.replace(r, evaluations=()) for r in runs]
    assert kinds(audit(runs)) == ["different models"]


# Speed


def stretches(*speeds: float) -> tuple[RatePoint, ...]:
    return tuple(RatePoint(100 * (i + 1), 1000 + i, speed) for i, speed in enumerate(speeds))


COLLAPSED = stretches(*[11.0] * 8, *[2.5] * 4)


def test_a_collapse_of_speed_that_lasts_is_told_with_its_share_of_time() -> None:
    found = only(audit(pair(rates=COLLAPSED)), "speed collapse").sentence
    assert "4.4-fold" in found and "69 % of its time" in found and "no counter shows why" in found


def test_a_cause_is_named_only_where_a_counter_shows_it() -> None:
    def told(**counters) -> str:
        return only(audit(pair(rates=COLLAPSED, **counters)), "speed collapse").sentence

    assert "no counter shows why" in told(on_a_card=True, spill="not observable", foreign_cpu_share=0.02)
    assert "spilled over (shared memory rose by 1 GB)" in told(spill="shared memory rose by 1 GB")
    assert "others used 40 % of the machine" in told(foreign_cpu_share=0.4)
    assert "throttled 3 times" in told(throttled=3)


@pytest.mark.parametrize(
    "rates",
    [
        stretches(*[11.0] * 9, 0.5, *[11.0] * 10),  # one stretch, and most of the time
        stretches(*[11.0] * 12, 2.0, *[11.0] * 3, 2.0, *[11.0] * 3),
        stretches(11.0, 11.0, 60.0, *[11.0] * 17),  # one fast frame is no standard
        stretches(*[2.0] * 5, *[11.0] * 15),  # slow at first is no collapse
        stretches(11.0, 2.0, 2.0),
    ],
)
def test_what_does_not_last_is_no_collapse(rates: tuple[RatePoint, ...]) -> None:
    assert audit(pair(rates=rates)) == []


def test_slow_stretches_by_chance_spoil_hardly_any_comparison() -> None:
    """0.3 % of stretches are ten times slower: 240 of them in a comparison of twelve runs."""
    draw = random.Random(1)
    spoiled = 0
    for _ in range(300):
        runs = [stretches(*(1.0 if draw.random() < 0.003 else 10.0 for _ in range(20))) for _ in range(12)]
        spoiled += any(collapse(run(rates=rates)) for rates in runs)
    assert spoiled <= 3


def test_more_gaussians_may_be_slower() -> None:
    counts = [1000] * 8 + [9000] * 8
    rates = tuple(
        RatePoint(100 * i, count, 11.0 if count == 1000 else 2.5) for i, count in enumerate(counts, 1)
    )
    assert audit(pair(rates=rates)) == []


def test_allocator_retries_inside_the_timed_window_are_told() -> None:
    assert "2 allocator retries" in only(audit(pair(allocator_retries=2)), "allocator retries").sentence


def test_the_same_objection_to_every_block_is_told_once() -> None:
    runs = [dataclasses.replace(r, block=k) for k in range(6) for r in pair(allocator_retries=1)]
    assert kinds(audit(runs)).count("allocator retries") == 1


def test_a_model_that_is_worse_than_its_trainer_printed_is_found() -> None:
    printed = Evaluation(3100, "test", {"psnr": 27.0}, judged_by="splatmeter")
    computed = Evaluation(3100, "test", {"psnr": 26.0}, judged_by="splatmeter eval")
    agreeing = Evaluation(3100, "test", {"psnr": 26.001}, judged_by="splatmeter")
    foreign = Evaluation(3100, "test", {"psnr": 27.0}, judged_by="mip-splatting")
    assert kinds(printed_and_computed([run(evaluations=(printed, computed))])) == ["printed metrics"]
    others = dataclasses.replace(printed, images=("x",))  # of other views: no contradiction
    for honest in (agreeing, foreign, others):
        assert printed_and_computed([run(evaluations=(honest, computed))]) == []


def timed(arm: Arm, block: int, **changes: float) -> RunSample:
    clocks = {
        "start_up_seconds": 1.0,
        "wall_seconds": 12.0,
        "on_clock_seconds": 10.0,
        "covered": 1.0,
        **changes,
    }
    return run(arm, block=block, clocks=Clocks(**clocks))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, []),
        ({"on_clock_seconds": 5.0, "wall_seconds": 7.0}, []),  # twice as fast, evaluated as long as before
        ({"on_clock_seconds": 5.0}, ["hidden time"]),
        ({"start_up_seconds": 6.0}, ["hidden time"]),
        ({"covered": 0.6}, ["untimed steps"]),
        ({"on_clock_seconds": 1.0, "wall_seconds": 3.5}, ["hidden time"]),  # half a second of one second
    ],
)
def test_time_is_hidden_where_seconds_go_missing(changes: dict[str, float], kind: list[str]) -> None:
    runs = [timed(PARENT, block) for block in range(4)] + [timed(CANDIDATE, b, **changes) for b in range(4)]
    assert kinds(hidden_time(runs)) == kind
    told = Arm("candidate", frozenset({Aspect.START_UP, Aspect.EVALUATION}))
    declared = [timed(PARENT, block) for block in range(4)] + [timed(told, b, **changes) for b in range(4)]
    doubts = [f for f in hidden_time(declared) if f.questions_the_verdict]
    assert kinds(doubts) == [k for k in kind if k == "untimed steps"]


def test_a_stage_that_tells_less_than_was_seen_of_it_is_doubted() -> None:
    """Only where memory is what is claimed, and only beyond what two ways of looking differ by."""
    honest = StagePeak("evaluation", 800_000_000, seen_bytes=805_000_000)
    freed = StagePeak("evaluation", 400_000_000, seen_bytes=800_000_000)
    vague = StagePeak("loading", 100_000_000, seen_bytes=200_000_000)
    assert untold_memory([run(peaks=(honest, vague))]) == []
    found = untold_memory([run(peaks=(freed,)), run(peaks=(freed,))])
    assert len(found) == 1 and found[0].questions_the_verdict
    words = "tells 400 MB as its evaluation peak; seen from outside it held 800 MB in that stage"
    assert words in found[0].sentence
