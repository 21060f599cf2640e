"""The order of views is the original's, and survives being written down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splatmeter.errors import CheckpointError
from splatmeter.scene.sampler import ViewSampler

# The first twelve views of the original with seed 0, for scenes of 161 and 100 training views.
ORIGINAL = {
    161: [158, 6, 131, 45, 154, 83, 109, 46, 145, 108, 59, 152],
    100: [63, 87, 48, 51, 60, 33, 89, 93, 79, 0, 3, 38],
}


@pytest.mark.parametrize("count", ORIGINAL)
def test_the_order_is_the_originals(count: int) -> None:
    sampler = ViewSampler(count, 0)
    assert [sampler.next() for _ in range(12)] == ORIGINAL[count]


@given(st.integers(1, 30), st.integers(0, 2**40))
def test_each_round_shows_every_view_once(count: int, seed: int) -> None:
    sampler = ViewSampler(count, seed)
    for _ in range(3):
        assert sorted(sampler.next() for _ in range(count)) == list(range(count))


def test_seeds_differ_and_repeat() -> None:
    first, again, other = ViewSampler(50, 3), ViewSampler(50, 3), ViewSampler(50, 4)
    rounds = [[sampler.next() for _ in range(50)] for sampler in (first, again, other)]
    assert rounds[0] == rounds[1] != rounds[2]


@given(st.lists(st.integers(0, 5), max_size=60))
def test_peeking_tells_the_next_views_and_changes_nothing(peeks: list[int]) -> None:
    quiet, curious = ViewSampler(7, 1, wide=[2]), ViewSampler(7, 1, wide=[2])
    coming = [quiet.next() for _ in range(70)]
    for step, ahead in enumerate(peeks):
        assert [curious.peek(k) for k in range(ahead)] == coming[step : step + ahead]
        assert curious.next() == coming[step]


@given(st.integers(0, 40), st.integers(0, 5), st.booleans())
def test_a_restored_sampler_continues_exactly(steps: int, peeks: int, wide: bool) -> None:
    sampler = ViewSampler(9, 5, wide=[0, 4] if wide else ())
    for _ in range(steps):
        sampler.next()
    for ahead in range(peeks):
        sampler.peek(ahead)
    state = json.loads(json.dumps(sampler.state()))
    restored = ViewSampler(9, 5, wide=[0, 4] if wide else ())
    restored.restore(state)
    assert restored.state() == sampler.state()
    assert [restored.next() for _ in range(30)] == [sampler.next() for _ in range(30)]


@pytest.mark.parametrize("peeks", [0, 1])
def test_states_that_peek_at_one_view_or_none_are_still_understood(peeks: int) -> None:
    sampler = ViewSampler(9, 5)
    coming = [ViewSampler(9, 5).peek(ahead) for ahead in range(9)]
    state = sampler.state()
    if peeks:
        sampler.peek()
        state = sampler.state() | {"peeked": sampler.peek()}
    else:
        state["peeked"] = None
    restored = ViewSampler(9, 5)
    restored.restore(state)
    assert [restored.next() for _ in range(9)] == coming


def test_wide_views_take_three_tenths_of_the_draws_besides_their_own() -> None:
    sampler = ViewSampler(40, 0, wide=[7])
    drawn = [sampler.next() for _ in range(8000)]
    # 0.3 + 0.7 / 40 = 0.3175; the standard deviation of the share is about 0.005, five of them are allowed.
    assert drawn.count(7) / len(drawn) == pytest.approx(0.3175, abs=0.026)


def test_a_state_of_another_scene_is_refused() -> None:
    with pytest.raises(CheckpointError, match="9 views with seed 1, this run from 8"):
        ViewSampler(8, 1).restore(ViewSampler(9, 1).state())


@pytest.mark.parametrize(
    "damage",
    [
        {"random": None},
        {"random": [3, [1, 2]]},
        {"left": [99]},
        {"left": [True]},
        {"peeked": "x"},
        {"peeked": ["x"]},
        {"peeked": [8]},
        {"left": 3},
    ],
)
def test_a_damaged_state_is_refused_and_leaves_the_sampler_alone(damage: dict[str, Any]) -> None:
    sampler, twin = ViewSampler(8, 1), ViewSampler(8, 1)
    with pytest.raises(CheckpointError, match="damaged"):
        sampler.restore({**sampler.state(), **damage})
    assert [sampler.next() for _ in range(20)] == [twin.next() for _ in range(20)]


def test_there_is_no_sampling_from_nothing() -> None:
    with pytest.raises(ValueError):
        ViewSampler(0, 0)


def test_draws_that_were_taken_back_come_again() -> None:
    sampler, twin = ViewSampler(7, 3), ViewSampler(7, 3)
    drawn = [sampler.next() for _ in range(20)]
    sampler.peek(4)
    sampler.back(5)
    assert [sampler.next() for _ in range(30)] == [twin.next() for _ in range(45)][15:]
    assert drawn[15:] != []
    sampler.back(0)
    with pytest.raises(ValueError, match="cannot be taken back"):
        sampler.back(1000)


def test_what_was_drawn_before_a_restored_state_cannot_be_taken_back() -> None:
    sampler = ViewSampler(7, 3)
    sampler.next()
    sampler.restore(sampler.state())
    with pytest.raises(ValueError, match="only 0"):
        sampler.back(1)
