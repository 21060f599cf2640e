"""Figures of two protocols of exposure are never compared with each other."""

from __future__ import annotations

from dataclasses import replace

from splatmeter.lab.audit.metrics import (
    different_that_should_be_equal,
    judged_twice,
    printed_and_computed,
)
from splatmeter.lab.compare.assemble import Rules, compare
from splatmeter.lab.compare.verdict import judge
from splatmeter.lab.record.intact import _figures
from splatmeter.lab.record.result import RunEvaluation
from splatmeter.lab.samples.run_sample import Arm, Evaluation, RunSample
from splatmeter.lab.samples.verdict_kinds import VerdictKind


def judged(psnr: float, *exposures: str, judged_by: str = "splatmeter") -> tuple[Evaluation, ...]:
    return tuple(
        Evaluation(100, "test", {"psnr": psnr + 4 * (rule != "none")}, (), "", judged_by, rule)
        for rule in exposures
    )


def runs(arm: str, seconds: float, *exposures: str) -> list[RunSample]:
    return [
        RunSample(
            Arm(arm), block, arm == "new", seconds * (1 + 0.001 * block), 100, 1000, 1000, f"{arm} {block}",
            seed=block, last_step=100, evaluations=judged(26 + 0.001 * block, *exposures),
        )
        for block in range(6)
    ]  # fmt: skip


RULES = Rules(evaluations=(("test", 100),))


def test_a_mismatch_is_undecided_and_has_a_name() -> None:
    found = compare([*runs("old", 10, "none"), *runs("new", 9, "left-half")], "old", "new", RULES)
    verdict = judge(found)
    assert verdict.kind is VerdictKind.UNDECIDED and found.quality == ()
    assert "different protocols of exposure (old by none, new by left-half)" in verdict.sentence


def test_one_protocol_compares_as_ever() -> None:
    for rule in ("none", "left-half"):
        verdict = judge(compare([*runs("old", 10, rule), *runs("new", 9, rule)], "old", "new", RULES))
        assert verdict.kind is VerdictKind.FASTER


def test_of_two_protocols_the_shared_one_is_compared() -> None:
    both, one = runs("old", 10, "left-half", "none"), runs("new", 9, "none")
    found = compare([*both, *one], "old", "new", RULES)
    assert judge(found).kind is VerdictKind.FASTER
    assert all(abs(result.reference - 26) < 0.1 for result in found.quality)


def test_two_protocols_of_one_model_do_not_contradict_each_other() -> None:
    twice = runs("old", 10, "none", "left-half")[0]
    assert judged_twice(twice) == []
    model = "9" * 64
    first, second = (
        RunSample(Arm(arm), 0, 0, 1.0, 1, 1, 1, evaluations=(
            Evaluation(100, "test", {"psnr": psnr}, (), model, "splatmeter", rule),
        ))
        for arm, psnr, rule in (("old", 26.0, "none"), ("new", 30.0, "left-half"))
    )  # fmt: skip
    assert different_that_should_be_equal([first, second]) == []
    printed = judged(26.0, "none") + judged(26.0, "left-half", judged_by="splatmeter eval")
    assert printed_and_computed([RunSample(Arm("old"), 0, 0, 1.0, 1, 1, 1, evaluations=printed)]) == []


def test_a_protocol_that_was_rewritten_is_another_figure() -> None:
    item = RunEvaluation(1, "test", {"psnr": 26.0})
    assert _figures(item) == _figures(replace(item, exposure="none"))
    assert _figures(item) != _figures(replace(item, exposure="left-half"))
