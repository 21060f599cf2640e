from __future__ import annotations

import pytest

from splatmeter.lab.compare.chance import claims
from splatmeter.lab.samples.verdict_kinds import VerdictKind


def test_twenty_phases_that_change_nothing_give_half_a_claim_and_one_in_two_labs_a_false_one() -> None:
    found = claims([VerdictKind.UNDECIDED] * 12 + [VerdictKind.NO_SPEED_UP] * 8)
    assert found.expected_false == pytest.approx(0.5)
    assert found.chance_of_any == pytest.approx(1 - 0.975**20)
    assert "up to 0.5 false 'faster'" in found.sentence and "40 % of such labs" in found.sentence


def test_what_was_never_run_had_no_chance_to_be_called_faster() -> None:
    found = claims([VerdictKind.PLANNED, VerdictKind.ON_HOLD])
    assert (found.tested, found.sentence, found.expected_false) == (0, "", 0.0)


def test_what_nobody_could_decide_had_its_chance() -> None:
    assert claims([VerdictKind.QUESTIONABLE, VerdictKind.QUALITY_LOST, VerdictKind.SLOWER]).tested == 3


def test_claims_are_counted_once_and_a_second_session_is_the_remedy() -> None:
    once = claims([VerdictKind.FASTER, VerdictKind.FASTER, VerdictKind.UNDECIDED])
    assert (once.faster, once.verified) == (2, 0)
    assert "3 phases were measured, 2 called faster, 0 of them verified" in once.sentence
    assert "repeating a session verifies it" in once.sentence
    twice = claims([VerdictKind.FASTER, VerdictKind.VERIFIED])
    assert "2 called faster, 1 of them verified" in twice.sentence
    assert twice.expected_false_verified == pytest.approx(2 * 0.025**2)
    assert "of those verified, 0.0013" in twice.sentence


def test_one_phase_is_told_in_the_singular() -> None:
    assert claims([VerdictKind.SLOWER]).sentence.startswith("1 phase was measured and none is called faster")


def test_a_phase_that_was_measured_again_and_again_had_a_chance_each_time() -> None:
    found = claims([VerdictKind.FASTER], sessions=20)
    assert found.expected_false == pytest.approx(0.5)
    assert found.sentence.startswith("1 phase was measured in 20 sessions, 1 called faster")
